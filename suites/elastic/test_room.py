"""A worker that is added and finds no room."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from clusters.kube import PODS, Object
from suites import jobs, pods
from suites.elastic import trainer
from suites.elastic.stage import GOES_ON, Stage

#: GPUs of the topology `thread`, and those of each worker: two fit, one on each node
ROOM, EACH = 8, 4
#: seconds until the pod that waits is gone after its job ended
CLEANED = 60.0


@pytest.mark.behaviour("E10")
def test_an_added_worker_without_room_does_not_stop_the_others(
    stage: Stage, gpus: Callable[[int], int]
) -> None:
    """A third worker of 4 GPUs where 8 are: the two train on, finish, and it goes with the job."""
    gpus(ROOM)
    kube = stage.kube
    training = stage.start(2, 2, 3, gpus=EACH, run_policy={"cleanPodPolicy": "Running"})
    with stage.expect("two workers train"):
        group = training.wait_steps(12, world=2, deadline=trainer.STARTED)
    generation = group[0].generation

    scaled = time.time()
    stage.scale(3)
    third = stage.worker(2)
    with stage.expect("a third pod is made"):
        pods.wait_created(kube, stage.namespace, 3, labels=jobs.of(stage.job))
    pods.hold_unbound(
        kube, stage.namespace, labels=f"{jobs.of(stage.job)},{jobs.INDEX_LABEL}=2",
        seconds=pods.HOLD, least=1,
    )  # fmt: skip
    group = stage.goes_on("a worker that finds no room was added", since=scaled + pods.HOLD / 2)
    assert group[0].generation == generation, "the others began again because of a pod that waits"
    stage.sound(group)

    stage.finish()
    with stage.expect("the pod that waited goes with the job"):
        kube.wait(
            PODS, _none, namespace=stage.namespace, fields=f"metadata.name={third}",
            deadline=min(CLEANED, GOES_ON), why=f"{third} is gone",
        )  # fmt: skip


def _none(found: list[Object]) -> bool | None:
    return None if found else True
