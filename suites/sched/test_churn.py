"""GPUs are given once, whatever comes and goes."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from clusters.errors import Expired, Unreachable
from clusters.kube import PODS, Kube, Object
from clusters.resources import is_bound
from oracles.errors import HarnessError, InvariantViolation
from oracles.relations import TERMINAL
from suites import pods
from suites.gangs import Gang
from suites.stage import Stage, gpus_by_node

#: gangs and single pods; together they ask for about five times the room of 8 GPUs
GANGS, SINGLES = 6, 12
#: seconds until all of them have run
ALL_DONE = 180.0
#: seconds after which the server ends a watch, at whose end the next one begins
TURN = 2.0


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
    order = list(stage.gangs)
    rng.shuffle(order)
    count = sum(map(len, shapes))

    def ended(found: list[Object]) -> bool:
        return len([p for p in found if p["status"].get("phase") in TERMINAL]) == count

    with watching(stage.kube) as (running, events):
        for name in order:
            stage.group(name)
            stage.pods(name)
        stage.wait(f"all {count} pods run to their end", ended, deadline=ALL_DONE)
    most = most_bound(running, events, have)
    stage.measure("most GPUs bound at once", sum(most.values()), "1")
    failed = [p for p in stage.kube.find(PODS, stage.ns) if p["status"]["phase"] == "Failed"]
    assert not failed, f"refused or failed on their nodes: {pods.names(failed)}"
    assert sum(most.values()) > sum(have.values()) // 2, f"there was no churn: at most {most}"


@contextmanager
def watching(kube: Kube) -> Iterator[tuple[list[Object], list[Object]]]:
    """The pods of all namespaces as they are, and all events of theirs until the block ends.

    Read as they come: who asks for them at the end may be told that the first ones are gone.

    Raises:
        HarnessError: the watch broke, so that something may be missing.
    """
    running, since = kube.list_with_version(PODS)
    events: list[Object] = []
    done, broken = threading.Event(), list[str]()

    def follow() -> None:
        version = since
        try:
            while not done.is_set():  # the server ends a watch after some seconds
                for event in kube.watch(PODS, since=version, timeout=TURN):
                    version = event["object"]["metadata"]["resourceVersion"]
                    events.append(event)
        except (Expired, Unreachable) as error:
            broken.append(str(error))

    thread = threading.Thread(target=follow, name="bindings", daemon=True)
    thread.start()
    try:
        yield running, events
    finally:
        done.set()
        thread.join(TURN + 10)
    if broken or thread.is_alive():
        raise HarnessError(f"nobody can say what was bound: {broken or 'the watch does not end'}")


def most_bound(running: list[Object], events: list[Object], have: dict[str, int]) -> Counter[str]:
    """Replay all bindings; node -> the most GPUs that were bound to it.

    Raises:
        InvariantViolation: more were than it has.
    """
    held = {p["metadata"]["uid"]: p for p in running if is_bound(p)}
    most: Counter[str] = Counter()
    for event in events:
        pod = event["object"]
        if event["type"] == "BOOKMARK":
            continue
        if event["type"] == "DELETED" or not is_bound(pod):
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
    return most
