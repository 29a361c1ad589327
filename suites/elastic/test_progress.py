"""What a disturbance costs in steps and samples, and what it does to what is learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.faults.base import Fault
from chaos.processes import Which
from oracles.progress import Event, ProgressLine
from suites.elastic import checks, trainer
from suites.elastic.disturbing import measure_cost
from suites.elastic.stage import GOES_ON, Stage

#: global steps of both runs: two epochs of 29, and one checkpoint more
STEPS = 60
CASES: dict[str, Callable[[Stage], Fault]] = {
    "worker process killed": lambda stage: stage.signal(1, Which.WORKER),
    "agent killed": lambda stage: stage.kill_agent(1),
    "pod deleted": lambda stage: stage.delete_pod(1),
}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=case.replace(" ", "-"), marks=pytest.mark.behaviour("E14", case=case))
        for case, make in CASES.items()
    ],
)
def test_a_disturbed_run_learns_what_an_undisturbed_one_does(
    stage: Stage, make: Callable[[Stage], Fault]
) -> None:
    """Two workers, one of which is disturbed, against one that trains in peace."""
    peace = replace(stage, job="undisturbed")
    peace.start(1, 1, 1, steps=STEPS, step_ms=0)
    training = stage.start(2, 2, 2, steps=STEPS, step_ms=200)
    with stage.expect("two workers train"):
        training.wait_steps(12, world=2, deadline=trainer.STARTED)
    before = stage.agents()
    proof = stage.inject(make(stage))
    for it in (stage, peace):
        with it.expect(f"job {it.job} trains to its end"):
            it.ends("Succeeded", trainer.STARTED + GOES_ON)
    measure_cost(stage, before, proof.t, victims=[stage.worker(1)])
    ours, theirs = training.lines(), peace.training.lines()
    stage.measure("largest difference of a step's loss", checks.furthest(ours, theirs), "1")
    stage.sound()
    wrong = checks.unlike(ours, theirs)
    assert not wrong, "; ".join(wrong)
    assert _accuracy(ours) == _accuracy(theirs)


def _accuracy(lines: list[ProgressLine]) -> float:
    found = {round(x.accuracy, 3) for x in lines if x.event is Event.END and x.accuracy is not None}
    assert len(found) == 1, f"ranks end with accuracies {sorted(found)}"
    return found.pop()
