"""Processes that are frozen, and thaw."""

from __future__ import annotations

import pytest

from chaos.processes import Which
from suites.elastic import disturbing, trainer
from suites.elastic.stage import FROZEN, GOES_ON, Stage

CASES = {"agent": Which.AGENT, "worker process": Which.WORKER, "whole pod": Which.ALL}


@pytest.mark.parametrize(
    "which",
    [
        pytest.param(
            which, id=case.replace(" ", "-"), marks=pytest.mark.behaviour("E09", case=case)
        )
        for case, which in CASES.items()
    ],
)
def test_a_frozen_pod_is_survived_and_does_no_harm_when_it_thaws(
    stage: Stage, which: Which
) -> None:
    """Worker 1 of 3 is frozen for longer than an agent counts as alive without a heartbeat."""
    training = stage.start(3, 2, 3)
    with stage.expect("three workers train"):
        training.wait_steps(12, world=3, deadline=trainer.STARTED)
    before = stage.agents()
    proof = stage.inject(stage.freeze(1, which), within=FROZEN + GOES_ON)
    trained = disturbing.stay_frozen(stage, proof.t)
    thawed = proof.t + FROZEN
    group = stage.goes_on("the thaw", since=thawed + 1.0)
    stage.measure("training again after the thaw", group[0].t - thawed, "s")
    stage.measure("steps while frozen", trained, "steps")
    stage.measure("world after", group[0].world or 0, "ranks")
    disturbing.measure_cost(stage, before, proof.t, victims=[stage.worker(1)])
    stage.sound(group)
