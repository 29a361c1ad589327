"""Counts in the status against the pods."""

from __future__ import annotations

from tests.oracles.build import History, Job, Pod, broken, each, exercised, names

RULE = "replica-counts"
DISAGREE = "replica counts disagree with the pods"


def _running(n: int = 2, **job: object) -> tuple[History, Job, list[Pod]]:
    h = History()
    made = h.job(Worker=n, **job)  # type: ignore[arg-type]
    made.says("Created", counts={"Worker": (0, 0, 0)}, start=0)
    pods = [made.pod("Worker", i) for i in range(n)]
    each(pods, lambda pod: pod.bind("n1"))
    each(pods, lambda pod: pod.run())
    h.after(1)
    made.says("Created", "Running", counts={"Worker": (n, 0, 0)})
    return h, made, pods


def test_a_count_that_stays_wrong_is_told() -> None:
    h, job, _ = _running()
    wrong = job.says("Created", "Running", counts={"Worker": (3, 0, 0)})
    h.after(11)
    right = job.says("Created", "Running", counts={"Worker": (2, 0, 0)})

    assert broken(h) == [(RULE, DISAGREE, (wrong, right))]
    assert "status active=3 succeeded=0 failed=0, pods active=2" in h.judge().violations[0].message


def test_the_thread_s_status_that_went_unknown_is_told() -> None:
    """A worker failed at admission, and the status counted it neither active nor failed."""
    h, _, pods = _running(7)
    failed = pods[6].fail()
    h.after(30)

    [(name, signature, events)] = broken(h)
    assert (name, signature) == (RULE, DISAGREE)
    assert events == (failed,)


def test_counts_that_go_blank_are_told_at_once() -> None:
    h, job, _ = _running()
    before = h.seq
    blank = job.says("Created", "Running", counts=None)
    job.says("Created", "Running", counts={"Worker": (2, 0, 0)})

    found = broken(h)
    assert [(n, s) for n, s, _ in found] == [(RULE, "replica counts went blank")]
    assert found[0][2][-1] == blank
    assert before < blank


def test_a_finished_job_that_goes_on_counting_pods_is_told() -> None:
    """As training-operator 1.8.1 does when the backoff limit is reached."""
    h, job, pods = _running()
    job.says("Created", "-Running", "Failed", end=1)
    each(pods, lambda pod: pod.deleting())
    each(pods, lambda pod: pod.gone())
    h.after(30)

    assert {(n, s) for n, s, _ in broken(h)} == {
        (RULE, "a finished job goes on counting active pods")
    }


def test_counts_that_follow_a_moment_later_are_fine() -> None:
    h, job, pods = _running(3)
    for n, pod in enumerate(pods):
        h.after(20)
        pod.succeed()
        h.after(4)
        job.says("Created", "Running", counts={"Worker": (2 - n, n + 1, 0)})
    job.says("Created", "-Running", "Succeeded", end=60)
    h.after(20)
    each(pods, lambda pod: pod.gone())
    h.after(100)

    assert names(h) == set()
    assert exercised(h, RULE) > 6


def test_a_running_pod_that_is_told_to_stop_may_be_counted_either_way() -> None:
    h, job, pods = _running()
    pods[1].deleting()
    h.after(15)
    job.says("Created", "Restarting", counts={"Worker": (1, 0, 1)})
    h.after(15)
    job.says("Created", "Restarting", counts={"Worker": (1, 0, 0)})
    h.after(15)

    assert names(h) == set()


def test_a_suspended_job_need_not_remember() -> None:
    h, job, pods = _running(run={"suspend": True})
    each(pods, lambda pod: pod.deleting())
    job.says("Created", "-Running", "Suspended", counts={"Worker": (0, 0, 2)})
    each(pods, lambda pod: pod.gone())
    h.after(100)

    assert names(h) == set()


def test_while_the_operator_is_away_the_clock_stands_still() -> None:
    h, job, pods = _running()
    h.fault("inject", "kill-operator", id="f1", pauses=["operator"])
    pods[0].succeed()
    h.after(60)
    h.fault("recover", "kill-operator", id="f1", pauses=["operator"])
    h.after(5)
    job.says("Created", "Running", counts={"Worker": (1, 1, 0)})
    assert names(h) == set()

    pods[1].succeed()
    h.after(60)
    assert names(h) == {RULE}


def test_a_disagreement_over_a_gap_is_not_sure() -> None:
    h, job, pods = _running()
    pods[0].succeed()
    h.gap("PyTorchJob", 30)
    job.says("Created", "Running", counts={"Worker": (1, 1, 0)})

    judgement = h.judge()
    assert not judgement.violations
    assert [v.invariant for v in judgement.unsure] == [RULE]
    assert judgement.outcome == "INCONCLUSIVE"
