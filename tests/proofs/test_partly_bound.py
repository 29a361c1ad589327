"""Schedulers that leave a part of a gang bound, or bind it slowly: what is read from the watch."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from chaos.faults.api import ApiTrouble, held
from chaos.faults.systems import KillSystem
from chaos.injecting import Injector
from chaos.site import Site
from chaos.target import Target
from clusters.cluster import Capability
from clusters.errors import ApiError
from clusters.kube import PODS, Kube, Object
from clusters.resources import is_bound
from fixtures.plugin.clusters import SystemUnderTest
from oracles.errors import NotApplicable
from suites import pods
from suites.gang import test_atomicity
from suites.gangs import Block, gang
from suites.routes import through_proxy
from suites.stage import gpus_by_node
from tests.proofs import breaking, naive, plain
from tests.proofs.naive import Instead
from tests.proofs.staging import OnStage

pytestmark = pytest.mark.proof

#: seconds between two bindings of the scheduler that takes its time, once that was long enough
QUICK = 0.5


def stays(system: SystemUnderTest, ns: str, bound: int, what: str) -> None:
    """Wait until so many pods of the gang are bound, and hold that for longer than the grace."""
    kube, labels = system.cluster.kube, "app=a"

    def so(found: list[Object]) -> bool:
        return sum(map(is_bound, found)) == bound

    kube.wait(
        PODS, lambda found: True if so(found) else None, namespace=ns, labels=labels,
        deadline=pods.ADMISSION, why=what,
    )  # fmt: skip

    def own(found: list[Object]) -> bool:
        return so([pod for pod in found if pod["metadata"]["labels"].get("app") == "a"])

    seconds = breaking.grace(system, "gang_partial") + breaking.OVER
    breaking.hold(kube, PODS, ns, seconds, own, what)


@pytest.mark.proves(
    "G16", by="the default scheduler in place of a gang scheduler", rule="gang-atomicity"
)
def test_what_fits_is_bound(
    on_stage: OnStage, system: SystemUnderTest, ns: str, gpus: Callable[[int], int], tmp_path: Path
) -> None:
    total = gpus(system.cluster.topology.gpus)
    instead = Instead(system.scheduler, plain.NAME)
    with (
        plain.running(system.cluster, tmp_path),
        on_stage(scheduler=instead) as stage,
    ):
        stage.block([Block(), Block()])
        stage.gangs = {"a": gang("a", total - 1)}
        stage.group("a")
        stage.pods("a")
        stays(system, ns, total - 2, f"{total - 2} of a gang of {total - 1} are bound")


@pytest.mark.proves(
    "G16",
    by="a scheduler that compares sums of GPUs, as the source thread's did",
    rule="gang-atomicity",
)
def test_what_is_there_is_bound(
    on_stage: OnStage, system: SystemUnderTest, ns: str, gpus: Callable[[int], int]
) -> None:
    if Capability.CONTAINERS in system.cluster.capabilities:
        raise NotApplicable(
            "it also takes the node without GPUs, where a real kubelet refuses the pod: no gang is"
            " left in part then, and S01 is what breaks"
        )
    gpus(2)
    instead = Instead(system.scheduler, naive.NAME)
    with (
        naive.running(system.cluster),
        on_stage(scheduler=instead) as stage,
    ):
        stage.gangs = {"a": gang("a", 3)}
        stage.group("a")
        stage.pods("a", 2)  # the third one never comes
        stays(system, ns, 2, "two of a gang of three are bound")


@pytest.mark.proves(
    "G16", by="a scheduler that binds one pod every other second", shows="were bound within"
)
def test_gangs_are_bound_slowly(
    on_stage: OnStage, system: SystemUnderTest, ns: str, gpus: Callable[[int], int]
) -> None:
    """One pod of each gang after the other, so that no gang is bound within the grace."""
    instead = Instead(system.scheduler, breaking.NOBODY)
    pause = (breaking.grace(system, "gang_partial") + 4) / test_atomicity.GANGS
    with (
        dawdling(system.cluster.kube, ns, pause),
        on_stage(scheduler=instead) as stage,
    ):
        test_atomicity.test_no_gang_is_bound_in_part(stage, gpus, Random(1))


@contextmanager
def dawdling(kube: Kube, ns: str, pause: float) -> Iterator[None]:
    """Somebody binds the pods of a namespace, the first of each gang before any second one.

    Only where there is room: a kubelet refuses what is too much, and a pod refused never ends well.

    Args:
        pause: seconds between two bindings, until one gang has its second pod.
    """
    ended = threading.Event()
    have = gpus_by_node(kube)

    def bind_next() -> bool:
        found = kube.find(PODS, ns)
        room = Counter(have)
        for pod in found:
            if is_bound(pod):
                room[pod["spec"]["nodeName"]] -= pods.gpus_of(pod)
        waiting = [p["metadata"]["name"] for p in found if not p["spec"].get("nodeName")]
        node, free = room.most_common(1)[0]
        if not waiting or free < 1:
            return False
        name = min(waiting, key=lambda name: int(name.rpartition("-")[2]))
        with suppress(ApiError):
            breaking.bind(kube, ns, name, node)
            return True
        return False

    def run() -> None:
        bound = 0
        # the pause is what is broken here, not a wait for something
        while not ended.wait(pause if bound <= test_atomicity.GANGS + 1 else QUICK):
            bound += bind_next()

    thread = threading.Thread(target=run, name="dawdling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.exclusive
@pytest.mark.proves(
    "G16", by="a scheduler killed between reserve and bind, and again", rule="gang-atomicity"
)
def test_a_scheduler_dies_between_reserve_and_bind(
    on_stage: OnStage, system: SystemUnderTest, ns: str
) -> None:
    """Two of four bindings get through, then it is killed; its successor binds nobody either.

    Nobody tells the judges of the faults: a time in which the scheduler is known to be broken does
    not count.
    """
    system.cluster.require(Capability.OWN_CLUSTER)
    site = Site.of(system.cluster)
    target = Target.scheduler(system.scheduler)
    inject = Injector(site)
    try:
        route = through_proxy(system, target)
        inject(route)
        rest = ApiTrouble(route, held("create", "/binding$", after=2), acts=0)
        inject(rest)
        with on_stage() as stage:
            stage.gangs = {"a": gang("a", 4)}
            stage.group("a")
            stage.pods("a")
            rest.wait_held(1, deadline=pods.ADMISSION)
            inject(KillSystem(site, target))
            stays(system, ns, 2, "two of a gang of four are bound")
    finally:
        inject.close()
