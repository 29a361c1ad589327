"""A job that starts with its minimum and grows as room appears."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from clusters.kube import PODS, PYTORCHJOBS, conditions
from clusters.resources import is_bound
from suites import pods
from suites.elastic import trainer
from suites.elastic.stage import GOES_ON, Stage

#: GPUs of the topology `thread`; the job's minimum and maximum, of one GPU each
ROOM, LOW, HIGH = 8, 2, 4


@pytest.mark.behaviour("E02")
def test_it_starts_at_its_minimum_and_grows_to_its_maximum(
    stage: Stage, gpus: Callable[[int], int]
) -> None:
    """All but two GPUs are taken at first; its group asks for the minimum only."""
    gpus(ROOM)
    kube, namespace = stage.kube, stage.namespace
    blockers = pods.block_gpus(kube, namespace, ROOM - LOW)
    training = stage.start(
        HIGH, LOW, HIGH, gpus=1, run_policy={"schedulingPolicy": {"minAvailable": LOW}}
    )
    with stage.expect("the minimum of workers trains"):
        training.wait_steps(5, world=LOW, deadline=trainer.STARTED)
    first = stage.agents()
    waiting = [pod for pod in stage.pods() if not is_bound(pod)]
    assert len(waiting) == HIGH - LOW, f"no room was left, but only {pods.names(waiting)} wait"

    for name in blockers:
        kube.delete(PODS, name, namespace, grace=0)
    freed = time.time()
    with stage.expect("as room appears, the maximum of workers trains"):
        group = stage.trains(world=HIGH, since=freed, deadline=GOES_ON)
    stage.measure("full world trains after", group[0].t - freed, "s")
    again = stage.agents().restarted_since(first)
    stage.measure("agents restarted", len(again), "agents")
    job = kube.get(PYTORCHJOBS, stage.job, namespace)
    assert job is not None
    assert conditions(job).get("Restarting") != "True", "the job restarts because it grew"
    stage.sound(group)
