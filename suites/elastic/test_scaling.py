"""Workers added to a job that trains, and taken away."""

from __future__ import annotations

import time

import pytest

from clusters.kube import PODS, PYTORCHJOBS, Object, conditions
from suites import pods
from suites.elastic import trainer
from suites.elastic.disturbing import measure_cost
from suites.elastic.stage import Stage

#: seconds until the larger or smaller world trains
RESIZED = 120.0
#: seconds until a worker that is told to go is gone: it has 30 to end
GONE = 60.0


@pytest.mark.e2e
@pytest.mark.behaviour("E03")
def test_a_larger_world_trains_right(stage: Stage) -> None:
    """From 2 to 3 workers: ranks 0 to 2, each once, and one loss for all."""
    training = stage.start(2, 2, 4)
    with stage.expect("two workers train"):
        training.wait_steps(5, world=2, deadline=trainer.STARTED)

    scaled = time.time()
    stage.scale(3)
    with stage.expect("three workers train"):
        group = stage.trains(world=3, since=scaled, deadline=RESIZED)
    stage.measure("larger world trains after", group[0].t - scaled, "s")
    assert {line.pod for line in group} == {stage.worker(i) for i in range(3)}
    stage.sound(group)


@pytest.mark.behaviour("E04")
def test_a_smaller_world_trains_on(stage: Stage) -> None:
    """From 3 to 2 workers: worker 2 goes, whose agent ends with an error, as on every SIGTERM."""
    training = stage.start(3, 1, 3)
    with stage.expect("three workers train"):
        training.wait_steps(12, world=3, deadline=trainer.STARTED)
    before = stage.agents()
    leaver = stage.worker(2)

    scaled = time.time()
    stage.scale(2)
    with stage.expect("worker 2 goes"):
        code = _left(stage, leaver)
    with stage.expect("two workers train on"):
        group = stage.trains(world=2, since=scaled, deadline=RESIZED)
    stage.measure("smaller world trains after", group[0].t - scaled, "s")
    if code is not None:
        stage.measure("exit code of the leaver", code, "1")
    measure_cost(stage, before, scaled, victims=[leaver])

    stay = [stage.worker(0), stage.worker(1)]
    now = stage.agents()
    assert pods.names(stage.pods()) == stay
    assert all(now.by_pod[name].uid == before.by_pod[name].uid for name in stay), (
        "a worker of the lower indexes was replaced"
    )
    job = stage.kube.get(PYTORCHJOBS, stage.job, stage.namespace)
    assert job is not None
    assert conditions(job).get("Failed") != "True", "the job failed because a worker left"
    stage.sound(group)


def _left(stage: Stage, pod: str) -> int | None:
    """Wait until a pod is gone; the exit code that was seen of its agent, None for none."""
    codes: list[int] = []

    def gone(found: list[Object]) -> bool | None:
        for item in found:
            for status in item["status"].get("containerStatuses") or []:
                ended = (status.get("state") or {}).get("terminated")
                if ended:
                    codes.append(int(ended["exitCode"]))
        return None if found else True

    stage.kube.wait(
        PODS, gone, namespace=stage.namespace, fields=f"metadata.name={pod}", deadline=GONE,
        why=f"{pod} is gone",
    )  # fmt: skip
    return codes[-1] if codes else None
