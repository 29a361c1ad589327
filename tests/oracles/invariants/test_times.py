"""When a job started and ended."""

from __future__ import annotations

from tests.oracles.build import History, broken, exercised, names

RULE = "start-and-completion"


def test_a_start_time_that_changes_is_told() -> None:
    h = History()
    job = h.job(Worker=1)
    first = job.says("Created", "Running", start=1)
    h.after(10)
    second = job.says("Created", "Running", start=11)

    assert broken(h) == [(RULE, "startTime changed", (first, second))]


def test_a_completion_time_that_is_taken_back_is_told() -> None:
    h = History()
    job = h.job(Worker=1)
    job.says("Created", "Running", start=1)
    first = job.says("Created", "Succeeded", start=1, end=9)
    second = job.change(status={"completionTime": None})

    assert broken(h)[0] == (RULE, "completionTime was taken back", (first, second))


def test_an_end_before_the_start_is_told() -> None:
    h = History()
    job = h.job(Worker=1)
    seq = job.says("Created", "Succeeded", start=9, end=3)

    assert broken(h) == [(RULE, "completionTime before startTime", (seq,))]


def test_a_failed_job_without_a_completion_time_is_told() -> None:
    """As training-operator 1.8.1 leaves it after a permanent exit code."""
    h = History()
    job = h.job(Worker=1)
    job.says("Created", "Running", start=1)
    seq = job.says("Created", "Failed")
    h.after(11)

    assert broken(h) == [(RULE, "it has ended, but has no completionTime", (seq,))]
    assert h.judge().violations[0].lasting


def test_a_completion_time_without_an_end_and_running_without_a_start_are_told() -> None:
    h = History()
    one = h.job("one", Worker=1)
    one.says("Created", "Running", start=1, end=5)
    two = h.job("two", Worker=1)
    two.says("Created", "Running")
    h.after(30)

    assert {signature for _, signature, _ in broken(h)} == {
        "it has a completionTime, but has not ended",
        "it is Running, but has no startTime",
    }


def test_a_life_with_a_suspension_sets_the_start_anew() -> None:
    h = History()
    job = h.job(Worker=1, run={"suspend": False})
    job.says("Created", "Running", start=1)
    job.change(spec={"runPolicy": {"suspend": True}})
    h.after(20)
    job.says("Created", "-Running", "Suspended")
    h.after(20)
    job.change(spec={"runPolicy": {"suspend": False}})
    job.says("Created", "-Suspended", start=41)
    job.says("Created", "-Suspended", "Running")
    h.after(20)
    job.says("Created", "-Running", "Succeeded", end=61)
    h.after(100)

    assert names(h) == set()
    assert exercised(h, RULE) == 3


def test_what_is_set_a_moment_later_is_fine() -> None:
    h = History()
    job = h.job(Worker=1)
    job.says("Created", "Running")
    h.after(5)
    job.says("Created", "Running", start=1)
    job.says("Created", "Failed")
    h.after(5)
    job.says("Created", "Failed", end=7)
    h.after(100)

    assert names(h) == set()
