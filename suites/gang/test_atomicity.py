"""All or nothing, under churn: gangs of random sizes that come at once and contend for the room."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from clusters.kube import PODS, Object, epoch
from oracles.graces import graces
from suites.gangs import Gang
from suites.stage import Stage

#: gangs; together they ask for three to four times the room of 8 GPUs
GANGS = 8
#: seconds until all of them have run, one or two at a time
ALL_DONE = 180.0


@pytest.mark.core
@pytest.mark.behaviour("G16")
def test_no_gang_is_bound_in_part(
    stage: Stage, gpus: Callable[[int], int], rng: random.Random
) -> None:
    """Every gang runs once, whole; how long one was partly bound is judged on the history too."""
    total = gpus(stage.cluster.topology.gpus)
    sizes = [rng.randint(2, min(5, total)) for _ in range(GANGS)]
    stage.gangs = {
        f"gang-{n}": Gang(f"gang-{n}", (1,) * size, seconds=1) for n, size in enumerate(sizes)
    }
    order = list(stage.gangs)
    rng.shuffle(order)
    for name in order:
        stage.group(name)
        stage.pods(name)

    def ended(found: list[Object]) -> bool:
        done = [p for p in found if p["status"].get("phase") == "Succeeded"]
        return len(done) == sum(sizes)

    stage.wait(f"all {len(sizes)} gangs run to their end", ended, deadline=ALL_DONE)
    grace = graces([stage.system.combination.scheduler_label])["gang_partial"]
    found = stage.kube.find(PODS, stage.ns)
    for name in order:
        moments = [_scheduled(p) for p in found if p["metadata"]["labels"]["app"] == name]
        spread = max(moments) - min(moments)
        assert spread <= grace, f"{name}: its pods were bound within {spread:.0f} s of each other"


def _scheduled(pod: Object) -> float:
    """When it was bound, in seconds of the epoch, as its condition says (whole seconds)."""
    condition = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    return epoch(condition["lastTransitionTime"])
