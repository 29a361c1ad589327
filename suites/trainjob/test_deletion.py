"""What is left of a TrainJob that was deleted, and of one that has ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.kube import JOBSETS, PODS, Object
from fixtures.plugin.given import Expecting
from fixtures.workloads import Program
from suites import tables
from suites.trainjob.stage import KIND, TrainJobs, names, of

pytestmark = pytest.mark.jobs(KIND)

#: seconds until the garbage collector has removed all of a chain of four owners, pods' grace of 5
#: and their Job's finalizer included
GONE = 45.0
#: seconds for which nothing may come back
HOLD = 4.0
#: seconds until jobs have come into their states
STATES_REACHED = 90.0

State = Callable[[TrainJobs, str], None]


def _running(trainjobs: TrainJobs, name: str) -> None:
    trainjobs.add(name)


def _pending(trainjobs: TrainJobs, name: str) -> None:
    trainjobs.add(name, node_selector={"muster.dev/nowhere": "yes"})


def _ending(code: int) -> State:
    """A job whose pods all end after a second."""

    def add(trainjobs: TrainJobs, name: str) -> None:
        program = Program(seconds=1, code=code)
        trainjobs.add(name, program=program, restart_policy="Never", backoff_limit=0)

    return add


def _suspended(trainjobs: TrainJobs, name: str) -> None:
    trainjobs.add(name, spec={"suspend": True})


#: state -> how a job comes into it, and the condition that tells that it is; "": its pods tell
STATES: dict[str, tuple[State, str]] = {
    "running": (_running, ""),
    "pending": (_pending, ""),
    "complete": (_ending(0), "Complete"),
    "failed": (_ending(1), "Failed"),
    "suspended": (_suspended, "Suspended"),
}


@pytest.mark.behaviour("C03", case="TrainJob")
@pytest.mark.usefixtures("collected")
def test_a_trainjob_deleted_in_any_state_leaves_nothing(
    trainjobs: TrainJobs, expect: Expecting
) -> None:
    """One job per state, deleted as soon as it is in it, and one as soon as it is submitted."""
    kube, ns = trainjobs.kube, trainjobs.namespace
    trainjobs.add("submitted")
    trainjobs.delete("submitted")
    del trainjobs.nodes["submitted"]
    for name, (come, _) in STATES.items():
        come(trainjobs, name)
    trainjobs.run("running")
    with expect("the pods of a job that fits nowhere are made"):
        kube.wait(
            PODS, lambda found: True if found else None, namespace=ns, labels=of("pending"),
            deadline=STATES_REACHED, why="pods of the pending job",
        )  # fmt: skip
    wanted = {name: tables.true(told) for name, (_, told) in STATES.items() if told}
    late = trainjobs.reach(wanted, deadline=STATES_REACHED)
    assert not late, f"jobs did not come into their states: {late}"
    for name in STATES:
        trainjobs.delete(name)
    for what in trainjobs.children():
        with expect(f"no {what.plural} of deleted jobs are left"):
            kube.wait(
                what, lambda items: None if items else True, namespace=ns, deadline=GONE,
                why=f"{what.plural} gone",
            )  # fmt: skip
    with tables.judged() as table:
        for what in trainjobs.children()[:2]:
            back = tables.held(kube, what, ns, names, seconds=HOLD)
            table.hold(what.plural, not back, f"made again after their job was deleted: {back}")


def _leaving(item: Object) -> bool:
    return "deletionTimestamp" in item["metadata"]


@pytest.mark.behaviour("C04")
@pytest.mark.parametrize("code", [0, 1], ids=["TrainJob, success", "TrainJob, failure"])
def test_a_finished_trainjob_does_not_start_again(
    trainjobs: TrainJobs, expect: Expecting, code: int
) -> None:
    """Its pods, Job, service, JobSet and group are deleted in turn, and it is written to.

    kubeflow/trainer#3779: later releases made another JobSet for a job that had failed.
    """
    end = "Failed" if code else "Complete"
    _ending(code)(trainjobs, "done")
    late = trainjobs.reach({"done": tables.true(end)}, deadline=STATES_REACHED)
    assert not late, f"its pods ended with {code}, and it is {late}"
    for what in trainjobs.children():
        for item in trainjobs.kube.find(what, trainjobs.namespace):
            name = item["metadata"]["name"]
            trainjobs.kube.delete(what, name, trainjobs.namespace, grace=0)
    with expect("what was deleted of a finished job is gone"):
        trainjobs.kube.wait(
            JOBSETS, lambda found: None if any(map(_leaving, found)) else True,
            namespace=trainjobs.namespace, deadline=GONE, why="no JobSet is being deleted",
        )  # fmt: skip
    trainjobs.patch("done", {"labels": {"muster.dev/touched": "yes"}})
    for what in (JOBSETS, PODS):
        back = tables.held(trainjobs.kube, what, trainjobs.namespace, names, seconds=HOLD)
        assert not back, f"it was {end}, and these {what.plural} were made again: {back}"
    now = tables.told(trainjobs.job("done"))
    assert now == end, f"it was {end}, and is {now}"
