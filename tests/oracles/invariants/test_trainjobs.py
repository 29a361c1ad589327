"""TrainJobs: their pods are a Job's, which is a JobSet's, which is theirs."""

from __future__ import annotations

import pytest

from tests.oracles.build import History, Pod, Thing, broken, exercised, names


class Chain:
    """A TrainJob with all that is made for it."""

    def __init__(self, h: History) -> None:
        self.h = h
        self.job = h.thing("TrainJob", "train")
        self.group = h.group("train", 1, owner=self.job)
        self.set = h.thing("JobSet", "train", owner=self.job)
        self.service = h.thing("Service", "train", owner=self.set)
        self.batch = h.thing("Job", "train-node-0", owner=self.set)
        self.pod = self.node("abcde")

    def node(self, suffix: str) -> Pod:
        """A pod of its Job."""
        return self.h.pod(f"train-node-0-0-{suffix}", owner=self.batch)

    def says(self, *conditions: str) -> int:
        """Another status of the TrainJob."""
        told = [{"type": name, "status": "True"} for name in conditions]
        return self.job.change(status={"conditions": told})

    def children(self) -> list[Thing]:
        return [self.group, self.set, self.service, self.batch, self.pod]


@pytest.mark.parametrize(
    ("versions", "signature"),
    [
        (["", "Complete Failed"], "Complete and Failed are both true"),
        (["Complete", "Complete Failed"], "Complete and Failed are both true"),
        (["Failed", ""], "Failed was taken back"),
        (["Complete", "Complete Suspended"], "Suspended after Complete"),
    ],
)
def test_illegal_transitions(versions: list[str], signature: str) -> None:
    h = History()
    chain = Chain(h)
    seqs = [chain.says(*version.split()) for version in versions]

    # a version that says nothing new proves nothing
    proof = tuple(seqs[-2:]) if versions[0] else (chain.job.added, seqs[-1])
    (found,) = [each for each in broken(h) if each[0] == "condition-transitions"]
    assert found[1] == signature
    assert found[2][-1] == proof[-1]
    assert h.judge().violations[0].behaviour == "T02"
    assert h.judge().violations[0].subject == "TrainJob t/train"


def test_a_life_is_judged_and_fine() -> None:
    h = History()
    chain = Chain(h)
    for version in ("Suspended", "", "Complete"):
        h.after(1)
        chain.says(*version.split())
    h.after(100)

    assert names(h) == set()
    assert exercised(h, "condition-transitions") == 3


@pytest.mark.parametrize("stays", ["PodGroup", "JobSet", "Service", "Job", "Pod"])
def test_whatever_stays_of_a_deleted_trainjob_is_told(stays: str) -> None:
    h = History()
    chain = Chain(h)
    gone = chain.job.gone()
    h.after(1)
    (left,) = [thing for thing in chain.children() if thing.kind == stays]
    for thing in chain.children():
        if thing is not left:
            thing.gone()
    h.after(60)
    h.node("n1")

    assert broken(h) == [("leftovers", f"{stays} left behind by a deleted job", (left.added, gone))]
    assert h.judge().violations[0].subject == "TrainJob t/train"


def test_what_is_made_for_a_trainjob_that_was_deleted_before_is_told() -> None:
    h = History()
    job = h.thing("TrainJob", "train")
    gone = job.gone()
    h.after(1)
    late = h.thing("JobSet", "train", owner=job)
    pod = h.pod("train-node-0-0-abcde", owner=h.thing("Job", "train-node-0", owner=late))
    h.after(100)
    h.node("n1")

    found = [each for each in broken(h) if each[0] == "leftovers"]
    assert {events for _, _, events in found} >= {(gone, late.added), (gone, pod.added)}


def test_what_is_made_for_a_trainjob_that_was_deleted_before_may_go_in_time() -> None:
    h = History()
    for number in range(3):
        job = h.thing("TrainJob", f"train-{number}")
        job.gone()
        late = h.thing("JobSet", f"train-{number}", owner=job)
        h.after(2)
        late.gone()
        h.after(100)

    assert names(h) == set()
    assert exercised(h, "leftovers") == 3


def test_a_trainjob_whose_children_go_with_it_is_judged_and_fine() -> None:
    h = History()
    chain = Chain(h)
    chain.job.gone()
    h.after(2)
    for thing in chain.children():
        thing.gone()
    h.after(100)

    assert names(h) == set()
    assert exercised(h, "leftovers") == 1


def test_a_pod_that_is_made_after_the_end_is_told() -> None:
    h = History()
    chain = Chain(h)
    ended = chain.says("Failed")
    h.after(30)
    late = chain.node("fghij")
    h.after(1)

    assert broken(h) == [
        ("finished-stays", "Pod made for a job that has ended", (ended, late.added))
    ]
    assert h.judge().violations[0].subject == "TrainJob t/train"


def test_jobs_of_nobody_are_no_trainjobs() -> None:
    h = History()
    batch = h.thing("Job", "batch")
    h.pod("batch-abcde", owner=batch)
    batch.gone()
    h.after(100)
    h.node("n1")

    assert names(h) == set()
    assert exercised(h, "leftovers") == 0


def test_a_jobset_that_is_made_and_deleted_in_a_loop_is_told() -> None:
    h = History()
    job = h.thing("TrainJob", "train")
    for _ in range(6):
        h.after(1)
        h.thing("JobSet", "train", owner=job).gone()

    assert {(n, s) for n, s, _ in broken(h)} == {
        ("churn", "JobSet made and deleted again and again")
    }


def test_nobody_judges_whether_a_trainjob_recovers() -> None:
    h = History()
    Chain(h)
    h.fault("proven", id="f", recovers={"kind": "TrainJob", "namespace": "t", "name": "train"})

    (finding,) = [f for f in h.judge().findings if f.invariant == "recovery"]
    assert "TrainJob" in finding.failed
