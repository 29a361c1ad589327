"""Whether training goes on after a fault."""

from __future__ import annotations

from tests.oracles.build import History, Job, Pod, broken, exercised, names

RULE = "recovery"
NEVER = "no recovery within the bound"


def _job() -> tuple[History, Job, Pod]:
    h = History()
    job = h.job(Worker=1)
    pod = job.pod("Worker", 0)
    pod.run()
    job.says("Created", "Running", counts={"Worker": (1, 0, 0)}, start=0)
    for step in range(1, 4):
        _step(pod, step)
    return h, job, pod


def _step(pod: Pod, step: int, generation: str = "a") -> int:
    return pod.line("step", rank=0, world=1, generation=generation, step=step)


def _fault(h: History, within: float | None = 60, by: str = "progress") -> int:
    wanted = {"kind": "PyTorchJob", "namespace": "t", "name": "train", "by": by}
    if within is not None:
        wanted["within_s"] = within  # type: ignore[assignment]
    h.fault("inject", id="f1")
    return h.fault("proven", id="f1", recovers=wanted)


def test_training_that_never_goes_on_is_told() -> None:
    h, _, pod = _job()
    fault = _fault(h)
    _step(pod, 4)  # was under way
    h.after(61)

    assert broken(h) == [(RULE, NEVER, (fault,))]
    assert h.judge().violations[0].lasting


def test_training_that_goes_on_too_late_is_told() -> None:
    h, _, pod = _job()
    fault = _fault(h)
    h.after(61)
    step = _step(pod, 3, "b")
    h.after(100)

    assert broken(h) == [(RULE, NEVER, (fault, step))]
    assert "61.0 s after the fault kill f1 there was progress again" in (
        h.judge().violations[0].message
    )


def test_a_job_that_must_end_and_does_not_is_told() -> None:
    h, job, pod = _job()
    _fault(h, by="terminal")
    _step(pod, 9)
    h.after(61)
    job.says("Created", "-Running", "Failed", counts={"Worker": (0, 0, 0)}, end=61)

    assert names(h) == {RULE}


def test_a_new_process_group_or_two_steps_ahead_are_progress() -> None:
    for step, generation in ((3, "b"), (5, "a")):
        h, _, pod = _job()
        _fault(h)
        h.after(50)
        _step(pod, step, generation)
        h.after(100)

        assert names(h) == set()
        assert exercised(h, RULE) == 1


def test_success_is_progress_and_failure_is_an_end() -> None:
    for by, end in (("progress", "Succeeded"), ("terminal", "Failed"), ("any", "Failed")):
        h, job, _ = _job()
        _fault(h, by=by)
        h.after(50)
        job.says("Created", "-Running", end, counts={"Worker": (1, 0, 0)}, end=50)
        h.after(100)

        assert names(h) == set()
        assert exercised(h, RULE) == 1


def test_before_the_bound_is_over_there_is_no_verdict() -> None:
    h, _, _ = _job()
    _fault(h, within=None)
    h.after(179)
    assert names(h) == set()
    assert exercised(h, RULE) == 0

    h.after(2)
    assert names(h) == {RULE}


def test_a_deleted_job_need_not_recover_nor_one_that_is_not_named() -> None:
    h, job, _ = _job()
    _fault(h)
    h.fault("proven", id="f2")
    h.fault("unproven", id="f3", recovers={"kind": "PyTorchJob", "namespace": "t", "name": "train"})
    job.gone()
    h.after(19)

    assert RULE not in names(h)
    assert exercised(h, RULE) == 0
