"""A worker process that fails beside an agent that lives."""

from __future__ import annotations

import pytest

from chaos.processes import Which
from fixtures.workloads import order
from oracles.progress import Event
from suites.elastic import trainer
from suites.elastic.agents import torchrun_restarts
from suites.elastic.disturbing import measure_cost
from suites.elastic.stage import GOES_ON, Stage


@pytest.mark.behaviour("E08", case="restarted once")
def test_a_killed_worker_process_is_restarted_once(stage: Stage) -> None:
    """SIGKILL to the training process of worker 1: its agent counts one restart; then success."""
    training = stage.start(2, 2, 2, max_restarts=3)
    with stage.expect("two workers train"):
        training.wait_steps(12, world=2, deadline=trainer.STARTED)
    before = stage.agents()
    proof = stage.inject(stage.signal(1, Which.WORKER))
    group = stage.goes_on(proof.what, since=proof.t + 1.0, world=2)
    stage.measure("training again after", group[0].t - proof.t, "s")
    measure_cost(stage, before, proof.t, victims=[])
    counts = {line.pod: line.restart for line in group}
    once = counts[stage.worker(1)] == 1 == max(count or 0 for count in counts.values())
    assert once, f"agents count {counts} restarts; {stage.symptoms()}"
    assert not stage.agents().restarted_since(before), "an agent was restarted with its worker"
    stage.finish()
    stage.sound(group)


@pytest.mark.behaviour("E08", case="exhausted")
def test_a_worker_process_that_always_fails_fails_the_job(stage: Stage) -> None:
    """maxRestarts 1 and restartPolicy Never: rank 1 exits each time, and the job becomes Failed."""
    training = stage.start(2, 2, 2, max_restarts=1, restart_policy="Never")
    with stage.expect("two workers train"):
        training.wait_steps(5, world=2, deadline=trainer.STARTED)
    stage.tell(order("exit", 3, rank=1))
    with stage.expect("the job fails once the restarts are used up"):
        stage.ends("Failed", GOES_ON)
    lines = training.lines()
    stage.measure("restarts by torchrun", torchrun_restarts(lines), "1")
    exits = [line for line in lines if line.event is Event.ERROR and line.code == 3]
    stage.measure("exits of the worker process", len(exits), "1")
    assert torchrun_restarts(lines) == 1, "an agent did not restart its workers once"
