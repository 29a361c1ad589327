"""A real HorizontalPodAutoscaler, fed by a real metrics server."""

from __future__ import annotations

import time
from typing import Any

import pytest

from clusters.kube import PYTORCHJOBS, Object, Resource
from fixtures.systems import metrics
from fixtures.workloads import order
from oracles import progress
from oracles.progress import ProgressLine
from suites import jobs, pods
from suites.elastic import trainer
from suites.elastic.stage import GOES_ON, Stage

AUTOSCALERS = Resource("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LOW, HIGH = 1, 3
#: CPU per worker that the autoscaler aims at. A worker that trains without a pause uses a whole
#: core; one that waits for orders next to nothing
TARGET = "150m"
POLICY: dict[str, Any] = {
    "metrics": [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": TARGET}},
        }
    ]
}
#: seconds until it grows: two readings of 15 s, one look every 15 s; measured 60
GROWS = 180.0
#: seconds until it shrinks: what the clusters of this harness set as the time for which it looks
#: back (30; Kubernetes' default is 300), the readings and the looks
SHRINKS = 240.0
#: the same, where Kubernetes' default may count
SHRINKS_ELSEWHERE = 480.0
SETTLED = 60.0


@pytest.mark.behaviour("E13")
@pytest.mark.alone  # it measures CPU, which all tests of a host share
def test_an_autoscaler_changes_the_number_of_workers(stage: Stage) -> None:
    """Under load from 1 to 3 workers, idle back to 1; suspended and deleted it goes."""
    metrics.install(stage.cluster)
    kube, namespace, measure = stage.kube, stage.namespace, stage.measure
    training = stage.start(LOW, LOW, HIGH, step_ms=0, policy=POLICY)
    started = time.time()
    with stage.expect("the operator makes an autoscaler with the policy's bounds"):
        found = kube.wait(
            AUTOSCALERS, lambda items: items[0] if items else None,
            namespace=namespace, deadline=SETTLED, why="an autoscaler",
        )  # fmt: skip
    _is_the_policys(stage, found)

    with stage.expect("under load it asks for the maximum of workers"):
        _wait_workers(stage, HIGH, GROWS)
    measure("grown after", time.time() - started, "s")
    with stage.expect("a larger world trains"):
        world = training.wait(_larger, deadline=trainer.STARTED, why="a world of more workers")
    measure("world under load", world, "ranks")

    stage.tell(order("hang"))
    idle = time.time()
    ours = stage.cluster.provider == "kind"
    with stage.expect("idle it asks for the minimum of workers again"):
        _wait_workers(stage, LOW, SHRINKS if ours else SHRINKS_ELSEWHERE)
    measure("shrunk after", time.time() - idle, "s")

    stage.tell()
    kube.patch(PYTORCHJOBS, stage.job, {"spec": {"runPolicy": {"suspend": True}}}, namespace)
    with stage.expect("suspended, the job has no autoscaler and no pods"):
        _wait_no_autoscaler(stage)
        pods.wait_created(kube, namespace, 0, labels=jobs.of(stage.job), deadline=SETTLED)
    kube.patch(PYTORCHJOBS, stage.job, {"spec": {"runPolicy": {"suspend": False}}}, namespace)
    with stage.expect("resumed, it has one again"):
        kube.wait(
            AUTOSCALERS, lambda items: True if items else None,
            namespace=namespace, deadline=SETTLED, why="an autoscaler",
        )  # fmt: skip
    kube.delete(PYTORCHJOBS, stage.job, namespace)
    with stage.expect("it goes away with the job"):
        _wait_no_autoscaler(stage, deadline=GOES_ON)


def _larger(lines: list[ProgressLine]) -> int | None:
    """The size of a world that did steps with more than the fewest workers.

    Which size it is when, is the autoscaler's to say: on a busy host three get little to do.
    """
    return max((x.world or 0 for x in progress.steps(lines) if (x.world or 0) > LOW), default=None)


def _is_the_policys(stage: Stage, autoscaler: Object) -> None:
    spec = autoscaler["spec"]
    bounds = (spec.get("minReplicas"), spec.get("maxReplicas"))
    assert bounds == (LOW, HIGH), f"the autoscaler's bounds are {bounds}, the policy's {LOW, HIGH}"
    target = (spec["scaleTargetRef"]["kind"], spec["scaleTargetRef"]["name"])
    assert target == ("PyTorchJob", stage.job), f"the autoscaler scales {target}"


def _wait_workers(stage: Stage, count: int, deadline: float) -> None:
    """Wait until the job's spec asks for *count* workers."""
    jobs.wait(
        stage.kube, PYTORCHJOBS, stage.namespace, stage.job,
        lambda job: job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == count,
        deadline=deadline, why=f"the autoscaler asks for {count} workers",
    )  # fmt: skip


def _wait_no_autoscaler(stage: Stage, *, deadline: float = SETTLED) -> None:
    stage.kube.wait(
        AUTOSCALERS, lambda items: None if items else True,
        namespace=stage.namespace, deadline=deadline, why="no autoscaler",
    )  # fmt: skip
