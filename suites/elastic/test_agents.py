"""An agent lost above the minimum, or the one that hosts the rendezvous: training goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from chaos.faults.base import Fault
from suites.elastic import trainer
from suites.elastic.disturbing import measure_cost
from suites.elastic.stage import GOES_ON, Stage

#: seconds until an agent that was told to stop, and that its kubelet starts again, is let in
REJOINS = 90.0


@pytest.mark.e2e
@pytest.mark.behaviour("E05", case="agent killed")
def test_training_goes_on_after_an_agent_was_killed(stage: Stage) -> None:
    """SIGKILL to the agent of worker 1 of 3 (minimum 2); its pod stays."""
    _survives(stage, 1, lambda: stage.kill_agent(1))


@pytest.mark.e2e
@pytest.mark.behaviour("E05", case="pod deleted")
def test_training_goes_on_after_a_pod_was_deleted(stage: Stage) -> None:
    """The pod of worker 1 of 3 (minimum 2) is deleted without grace."""
    _survives(stage, 1, lambda: stage.delete_pod(1))


@pytest.mark.behaviour("E06")
def test_an_agent_told_to_stop_leaves_the_rendezvous_open(stage: Stage) -> None:
    """SIGTERM to the agent of worker 1 of 3: the others go on, and it is let in again."""
    _survives(stage, 1, lambda: stage.kill_agent(1, signal.SIGTERM), returns=True)


@pytest.mark.behaviour("E07", case="agent killed")
def test_training_goes_on_after_the_host_agent_was_killed(stage: Stage) -> None:
    """SIGKILL to the agent of worker 0, which hosts the rendezvous. Its pod stays, so it returns.

    A c10d rendezvous has no other host, so that all agents have to come back; what restarts them
    is the job's restart policy. The documentation promises no more than that nothing hangs.
    """
    _survives(stage, 0, lambda: stage.kill_agent(0), by="any")


@pytest.mark.behaviour("E07", case="pod deleted")
def test_training_goes_on_after_the_host_pod_was_deleted(stage: Stage) -> None:
    """The pod of worker 0 is deleted without grace; its successor has its name."""
    _survives(stage, 0, lambda: stage.delete_pod(0), by="any")


def _survives(
    stage: Stage,
    victim: int,
    make: Callable[[], Fault],
    *,
    returns: bool = False,
    by: str = "progress",
) -> None:
    training = stage.start(3, 2, 3)
    with stage.expect("three workers train"):
        training.wait_steps(12, world=3, deadline=trainer.STARTED)
    before = stage.agents()

    proof = stage.inject(make(), by=by)
    group = stage.goes_on(proof.what, since=proof.t + 1.0, deadline=GOES_ON)
    stage.measure("training again after", group[0].t - proof.t, "s")
    stage.measure("world before", 3, "ranks")
    stage.measure("world after", group[0].world or 0, "ranks")
    if returns:
        with stage.expect("the agent that left is let in again"):
            group = stage.trains(world=3, since=proof.t + 1.0, deadline=REJOINS)
        stage.measure("whole again after", group[0].t - proof.t, "s")
    measure_cost(stage, before, proof.t, victims=[stage.worker(victim)])
    stage.sound(group)
    if returns:
        stage.open_to_all(but=stage.worker(victim))
