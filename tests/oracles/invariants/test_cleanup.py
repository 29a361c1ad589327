"""What is made again and again, what is made too late, and what stays behind."""

from __future__ import annotations

import pytest

from tests.oracles.build import History, Job, broken, each, exercised, names

AGAIN = "PodGroup made and deleted again and again"


def _loop(h: History, job: Job | None, times: int, pause: float = 2.0) -> list[int]:
    seqs = []
    for _ in range(times):
        group = h.group("train", 2, owner=job)
        h.after(pause / 2)
        seqs += [group.added, group.gone()]
        h.after(pause / 2)
    return seqs


@pytest.mark.parametrize("owned", [True, False])
def test_a_group_that_is_made_in_a_loop_is_told_once(owned: bool) -> None:
    h = History()
    job = h.job(Worker=2)
    seqs = _loop(h, job if owned else None, 12)

    # the first life, and the four that came back
    assert broken(h) == [("churn", AGAIN, tuple(seqs[1:9]))]
    assert h.judge().violations[0].behaviour == "G15"


def test_a_loop_of_services_is_told() -> None:
    h = History()
    job = h.job(Worker=2)
    for _ in range(6):
        h.after(1)
        h.thing("Service", "train-worker-0", owner=job).gone()

    assert {(n, s) for n, s, _ in broken(h)} == {
        ("churn", "Service made and deleted again and again")
    }


def test_pods_that_are_made_and_taken_away_while_they_wait_are_told() -> None:
    h = History()
    job = h.job(Worker=2)
    for _ in range(6):
        h.after(1)
        job.pod("Worker", 0).gone()

    assert names(h) == {"churn"}


def test_slow_loops_new_jobs_and_restarts_are_fine() -> None:
    h = History()
    _loop(h, h.job("slow", Worker=1), 10, pause=40)
    for _ in range(10):  # submitted again and again
        job = h.job("train", Worker=1)
        h.group("train", 2, owner=job).gone()
        job.gone()
        h.after(1)
    job = h.job("restarted", Worker=1)
    for _ in range(10):
        pod = job.pod("Worker", 0)
        pod.run()
        pod.fail()
        pod.gone()
        h.after(1)
    suspended = h.job("suspended", Worker=1, run={"suspend": True})
    _loop(h, suspended, 10)

    assert names(h) == set()
    assert exercised(h, "churn") > 0


def test_pods_that_we_kill_ourselves_are_fine() -> None:
    h = History()
    job = h.job(Worker=2)
    for n in range(6):
        pod = job.pod("Worker", 0)
        pod.run()
        h.fault("inject", "delete-pod", name=pod.name, id=f"f{n}")
        pod.gone()
        h.after(3)

    assert names(h) == set()


def test_a_list_that_shows_the_same_objects_again_is_no_birth() -> None:
    h = History()
    job = h.job(Worker=2)
    group = h.group("train", 2, owner=job)
    for _ in range(10):
        group.send("ADDED")
        h.after(1)

    assert names(h) == set()


# finished jobs


def test_a_pod_that_is_made_for_a_finished_job_is_told() -> None:
    h = History()
    job = h.job(Worker=1)
    ended = job.says("Created", "-Running", "Succeeded", start=0, end=0)
    h.after(30)
    pod = job.pod("Worker", 0)
    h.after(1)

    assert broken(h) == [
        ("finished-stays", "Pod made for a job that has ended", (ended, pod.added))
    ]


def test_a_group_that_is_made_for_a_finished_job_is_told() -> None:
    h = History()
    job = h.job(Worker=1)
    job.says("Created", "Failed", start=0, end=0)
    h.after(30)
    h.group("train", 1, owner=job)

    assert names(h) == {"finished-stays"}


def test_what_was_on_its_way_or_is_only_listed_again_is_fine() -> None:
    h = History()
    job = h.job(Worker=1)
    service = h.thing("Service", "train", owner=job)
    pod = job.pod("Worker", 0)
    job.says("Created", "Succeeded", start=0, end=0)
    h.after(3)
    late = h.group("train", 1, owner=job)
    h.after(60)
    each([service, late, pod], lambda thing: thing.send("ADDED"))

    assert names(h) == set()
    assert exercised(h, "finished-stays") == 1


# leftovers


def test_a_service_that_stays_is_told_with_the_job_s_end() -> None:
    h = History()
    job = h.job(Worker=1)
    service = h.thing("Service", "train-worker-0", owner=job).added
    gone = job.gone()
    h.after(30)
    h.node("n1")

    assert broken(h) == [("leftovers", "Service left behind by a deleted job", (service, gone))]
    assert h.judge().violations[0].lasting


def test_a_pod_that_goes_too_late_is_told() -> None:
    h = History()
    job = h.job(Worker=1)
    pod = job.pod("Worker", 0, terminationGracePeriodSeconds=5)
    gone = job.gone()
    h.after(26)
    last = pod.gone()

    assert broken(h) == [("leftovers", "Pod left behind by a deleted job", (pod.added, gone, last))]


def test_what_goes_in_time_is_fine() -> None:
    h = History()
    job = h.job(Worker=1)
    things = [
        h.thing("Service", "train-worker-0", owner=job),
        h.thing("HorizontalPodAutoscaler", "train", owner=job),
        h.group("train", 1, owner=job),
    ]
    pod = job.pod("Worker", 0)  # has 30 s to stop
    job.gone()
    h.after(10)
    each(things, lambda thing: thing.gone())
    h.after(30)
    pod.gone()
    h.after(100)

    assert names(h) == set()
    assert exercised(h, "leftovers") == 1


def test_a_history_that_ends_early_gives_no_verdict() -> None:
    h = History()
    job = h.job(Worker=1)
    h.thing("Service", "train-worker-0", owner=job)
    job.gone()
    h.after(10)

    assert names(h) == set()
    assert exercised(h, "leftovers") == 0


def test_nobody_can_say_that_a_pod_of_a_lost_node_is_gone() -> None:
    h = History()
    node = h.node("n1")
    job = h.job(Worker=1)
    job.pod("Worker", 0).bind("n1")
    node.change(status={"conditions": [{"type": "Ready", "status": "Unknown"}]})
    job.gone()
    h.after(300)

    assert names(h) == set()
