"""Restarts, and their limits."""

from __future__ import annotations

from tests.oracles.build import History, Job, Pod, broken, exercised, names

RULE = "restarts"


def _job(limit: int | None = 2, **job: object) -> tuple[History, Job, Pod]:
    h = History()
    run = {} if limit is None else {"backoffLimit": limit}
    made = h.job(Worker=1, run=run, **job)  # type: ignore[arg-type]
    pod = made.pod("Worker", 0)
    pod.run()
    made.says("Created", "Running", counts={"Worker": (1, 0, 0)}, start=0)
    return h, made, pod


def test_a_job_that_is_not_failed_above_its_limit_is_told() -> None:
    """As training-operator 1.8.1 goes on for ever under ExitCode."""
    h, _, pod = _job()
    seqs = [pod.run(restarts=n) for n in (1, 2, 3)]
    h.after(20)

    assert broken(h) == [(RULE, "restarted above the backoff limit", tuple(seqs))]


def test_pods_that_are_made_again_count_as_well_as_containers() -> None:
    h, job, pod = _job(limit=1)
    seqs = []
    for _ in range(2):
        seqs.append(pod.fail())
        pod.gone()
        pod = job.pod("Worker", 0)
        pod.run()
        job.says("Created", "Restarting")
        job.says("Created", "Running")
    h.after(20)

    [(name, signature, events)] = broken(h)
    assert (name, signature, events) == (RULE, "restarted above the backoff limit", tuple(seqs))


def test_a_job_that_fails_before_its_limit_is_told() -> None:
    h, job, pod = _job(limit=3)
    failed = pod.run(restarts=1)
    text = "Job train has failed because it has reached the specified backoff limit"
    ended = job.says("Created", "-Running", "Failed", end=1, message=text)

    [(name, signature, events)] = broken(h)
    assert (name, signature) == (RULE, "failed before the backoff limit was reached")
    assert events == (failed, ended)


def test_a_job_that_fails_at_its_limit_or_one_later_is_fine() -> None:
    text = "it has reached the specified backoff limit"
    for failures in (2, 3):
        h, job, pod = _job(limit=2)
        for n in range(1, failures + 1):
            pod.run(restarts=n)
        h.after(3)
        job.says("Created", "Failed", counts={"Worker": (0, 0, 0)}, end=1, message=text)
        h.after(100)

        assert names(h) == set()
        assert exercised(h, RULE) > 2


def test_pods_that_are_told_to_stop_did_not_fail() -> None:
    h, job, pod = _job(limit=0)
    pod.deleting()
    pod.fail()
    pod.gone()
    job.pod("Worker", 0).run()
    h.after(100)

    assert names(h) == set()


def test_an_agent_above_its_maximum_is_told() -> None:
    h, _, pod = _job(None, elastic={"maxRestarts": 1})
    common = {"rank": 0, "world": 1}
    pod.line("start", restart=0, **common)
    pod.line("start", restart=1, **common)
    seq = pod.line("start", restart=2, **common)

    assert broken(h) == [(RULE, "restarted above maxRestarts", (seq,))]
    assert h.judge().violations[0].behaviour == "E08"


def test_an_agent_whose_count_goes_back_is_told() -> None:
    h, _, pod = _job(None, elastic={"maxRestarts": 5})
    first = pod.line("start", restart=2)
    second = pod.line("start", restart=1)

    assert broken(h) == [(RULE, "an agent's count of restarts went back", (first, second))]


def test_a_new_agent_in_the_same_pod_counts_from_nought() -> None:
    h, _, pod = _job(None, elastic={"maxRestarts": 2})
    for restart in (0, 1, 2, 0, 1):
        pod.line("start", restart=restart)
    for restart in (1, 2):
        pod.line("start", restart=restart, agent_start=77)

    assert names(h) == set()
    assert exercised(h, RULE) == 7


def test_a_count_that_goes_back_to_nought_is_told_where_it_is_the_same_agent() -> None:
    h, _, pod = _job(None, elastic={"maxRestarts": 5})
    first = pod.line("start", restart=1, agent_start=77)
    second = pod.line("start", restart=0, agent_start=77)

    assert broken(h) == [(RULE, "an agent's count of restarts went back", (first, second))]
