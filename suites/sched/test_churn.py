"""GPUs are given once, whatever comes and goes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from clusters.errors import Expired, Unreachable
from clusters.kube import PODS, Kube, Object
from oracles.errors import HarnessError, InvariantViolation
from suites import pods
from suites.stage import Gang, Stage, gpus_by_node

#: gangs and single pods; together they ask for about five times the room of 8 GPUs
GANGS, SINGLES = 6, 12
#: seconds until all of them have run
ALL_DONE = 180.0


@pytest.mark.core
@pytest.mark.behaviour("S01")
def test_a_node_never_has_more_gpus_bound_than_it_has(
    stage: Stage, gpus: Callable[[int], int], rng: random.Random
) -> None:
    """Gangs (where the scheduler knows any) and single pods of 1 to 3 GPUs come at once and end."""
    gpus(stage.cluster.topology.gpus)
    have = gpus_by_node(stage.kube)
    gangs = GANGS if stage.scheduler.group_resource() is not None else 0
    shapes = [(rng.randint(1, 2),) * rng.randint(2, 3) for _ in range(gangs)]
    shapes += [(rng.randint(1, 3),) for _ in range(SINGLES)]
    stage.gangs = {f"g{n}": Gang(f"g{n}", asks, seconds=1) for n, asks in enumerate(shapes)}
    running, since = stage.kube.list_with_version(PODS)
    order = list(stage.gangs)
    rng.shuffle(order)
    for name in order:
        stage.group(name)
        stage.pods(name)
    count = sum(map(len, shapes))

    def ended(found: list[Object]) -> bool:
        return len([p for p in found if p["status"].get("phase") in pods.TERMINAL]) == count

    stage.wait(f"all {count} pods run to their end", ended, deadline=ALL_DONE)
    most = most_bound(stage.kube, running, since, have)
    stage.measure("most GPUs bound at once", sum(most.values()), "1")
    failed = [p for p in stage.kube.find(PODS, stage.ns) if p["status"]["phase"] == "Failed"]
    assert not failed, f"refused or failed on their nodes: {pods.names(failed)}"
    assert sum(most.values()) > sum(have.values()) // 2, f"there was no churn: at most {most}"


def most_bound(
    kube: Kube, pods_now: list[Object], since: str, have: dict[str, int]
) -> Counter[str]:
    """Replay all bindings after a version; node -> the most GPUs that were bound to it.

    Raises:
        InvariantViolation: more were than it has.
        HarnessError: the server no longer has all changes.
    """
    held = {p["metadata"]["uid"]: p for p in pods_now if pods.bound(p)}
    most: Counter[str] = Counter()
    try:
        for event in kube.watch(PODS, since=since, timeout=1):
            pod = event["object"]
            if event["type"] == "BOOKMARK":
                continue
            if event["type"] == "DELETED" or not pods.bound(pod):
                held.pop(pod["metadata"]["uid"], None)
                continue
            held[pod["metadata"]["uid"]] = pod
            node = pod["spec"]["nodeName"]
            bound = sum(pods.gpus_of(p) for p in held.values() if p["spec"]["nodeName"] == node)
            most[node] = max(most[node], bound)
            if bound > have.get(node, 0):
                raise InvariantViolation(
                    f"{bound} GPUs were bound to {node}, which has {have.get(node, 0)}, when"
                    f" {pod['metadata']['name']} was bound"
                )
    except (Expired, Unreachable) as error:
        raise HarnessError(f"nobody can say what was bound: {error}") from error
    return most
