"""One measurement: one scheduler, one size, one set of limits, on a cluster of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from clusters.cluster import Cluster, ClusterSpec
from clusters.errors import ClusterError
from clusters.kube import NODES, PODS, SERVICE_ACCOUNTS, Kube, Object, until_true
from clusters.progress import say, step
from clusters.providers import embedded
from clusters.topology import load as topology
from fixtures.systems import registry
from fixtures.systems.protocols import GangScheduler
from fixtures.workloads import gang_pods
from oracles.graces import graces
from oracles.invariants.gang import GangAtomicity
from oracles.invariants.placement import GpuCapacity
from oracles.judging import judge
from oracles.ordering import ordered
from tests.bench.scale import settings, usage
from tests.bench.scale.load import GPUS, SIZE, Load
from tests.bench.scale.measures import Timeline, timeline
from tests.bench.scale.settings import Limits, Setup
from tests.bench.scale.watching import Watch

NAMESPACE = "scale"
#: connections that make pods at the same time: webhooks make each of them wait
WRITERS = 32
#: seconds without any pod bound after which a scheduler is taken to have stopped
QUIET = 300.0
#: seconds beyond the grace for which the end is held: a gang bound in part by then is partial
MARGIN = 3.0
#: cores below which a control plane has nothing left to do, and seconds to get there
CALM, CALM_WITHIN = 0.2, 60.0


@dataclass(frozen=True)
class Cell:
    """What is to be measured.

    Attributes:
        within: seconds after the arrival at which to stop, whatever still waits.
        quiet: seconds to wait at the most for others on this machine to leave it alone.
    """

    scheduler: str
    nodes: int
    limits: Limits
    permit_wait: int = settings.PERMIT_WAIT
    within: float = 900.0
    quiet: float = 0.0

    @property
    def title(self) -> str:
        """For lines of progress."""
        return f"{self.scheduler}, {self.nodes} nodes, limits {self.limits.name}"


def measure(cell: Cell) -> dict[str, Any]:
    """Measure it; the record of it. Raises HarnessError."""
    load, setup = Load(cell.nodes), settings.SETUPS[cell.scheduler]
    scheduler = registry.scheduler(cell.scheduler)
    provider = embedded.EmbeddedProvider()
    provider.prepare([setup.kubernetes], scheduler.programs)
    name = f"scale-{os.getpid()}"
    layout = topology(f"scale-{cell.nodes}")
    with step(f"measure {cell.title}") as detail:
        try:
            cluster = provider.create(ClusterSpec(name, layout, setup.kubernetes, "bench"))
            detail("scheduler")
            scheduler.install(cluster)
            _room(cluster, scheduler, load)
            told = settings.limit(cluster, scheduler, setup, cell.limits, cell.permit_wait)
            record = _play(Play(cluster, scheduler, setup, cell, load), detail)
        finally:
            provider.delete(name)
    return {
        "scheduler": cell.scheduler,
        "version": scheduler.version if cell.scheduler != "native" else setup.kubernetes,
        "kubernetes": setup.kubernetes,
        "nodes": cell.nodes,
        "limits": cell.limits.name,
        "settings": told,
        "gangs": load.gangs,
        "room": load.fit,
        **record,
    }


def _room(cluster: Cluster, scheduler: GangScheduler, load: Load) -> None:
    """A namespace, and in it pods that have all GPUs of some nodes."""
    kube = cluster.kube
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    kube.wait(
        SERVICE_ACCOUNTS, lambda found: True if found else None, namespace=NAMESPACE,
        fields="metadata.name=default", deadline=60.0, why="its service account",
    )  # fmt: skip
    scheduler.prepare(cluster, NAMESPACE)
    blockers = gang_pods("blocker", load.blocked, gpus=GPUS, image="none")
    _make(kube, blockers)
    kube.wait(
        PODS,
        lambda found: True if all(p["spec"].get("nodeName") for p in found) else None,
        namespace=NAMESPACE, deadline=120.0, why=f"{len(blockers)} pods have their nodes",
    )  # fmt: skip


@dataclass(frozen=True)
class Play:
    """What takes part."""

    cluster: Cluster
    scheduler: GangScheduler
    setup: Setup
    cell: Cell
    load: Load


def _play(play: Play, detail: Callable[[str], None]) -> dict[str, Any]:
    cluster, load = play.cluster, play.load
    kube = cluster.kube
    watch = Watch(kube, NAMESPACE, play.scheduler.group_resource(), load.names)
    for node in kube.find(NODES):
        watch.know(node, "Node")
    begun = time.monotonic()
    with settings.held(cluster, play.setup) as release:
        detail("pods")
        _arrive(kube, play.scheduler, load, watch)
        made = time.monotonic() - begun
        detail("calm")
        _wait(cluster, "the control plane is calm", CALM_WITHIN, lambda own, _: own < CALM)
        if play.cell.quiet:
            detail("quiet")
            _wait(
                cluster, "nobody else works on this machine", play.cell.quiet,
                lambda _, others: others < usage.ALONE,
            )  # fmt: skip
        before, quiet = usage.now(cluster), os.getloadavg()[0]
        detail("admission")
        watch.arrived()
        release()
    end = time.monotonic() + play.cell.within
    gave_up = watch.wait(load.fit, end=end, quiet=QUIET)
    looked = watch.now - watch.start
    after = usage.now(cluster)
    figures = graces([play.scheduler.name])
    held = figures["gang_partial"] + MARGIN
    watch.wait(load.gangs + 1, end=time.monotonic() + held, quiet=2 * held)  # looks on, no more
    seen = timeline(watch.changes(), gangs=load.gangs, room=load.room, until=looked)
    judgement = judge(
        ordered(watch.events()),
        invariants=lambda world, given: [GangAtomicity(world, given), GpuCapacity(world, given)],
        figures=figures, now=watch.now,
    )  # fmt: skip
    broken = [f"{f.invariant}: {v.message}" for f in judgement.findings for v in f.violations]
    return {
        "measured": time.strftime("%Y-%m-%d %H:%M"),
        **_figures(seen, load, looked),
        "gave_up": gave_up,
        "partial_at_end": list(seen.partial),
        "violations": broken[:5],
        "violations_found": len(broken),
        "judged": {f.invariant: f.judged for f in judgement.findings},
        "peak_mib": usage.peaks(cluster),
        "usage": usage.between(before, after),
        "load_before": round(quiet, 2),
        "load_after": round(os.getloadavg()[0], 2),
        "watch_lag_s": round(watch.lag, 2),
        "making_pods_s": round(made, 1),
        "whole_at": [round(moment, 2) for moment in seen.whole],
    }


def _figures(seen: Timeline, load: Load, looked: float) -> dict[str, Any]:
    last = seen.whole[-1] if seen.whole else None
    span = last if len(seen.whole) == load.fit and last else looked
    return {
        "admitted": len(seen.whole),
        "pods_bound": seen.bound,
        "gangs_per_second": round(len(seen.whole) / span, 4),
        "first_s": round(seen.whole[0], 2) if seen.whole else None,
        "last_s": round(last, 2) if last is not None else None,
        "idle_gpu_s": round(seen.idle),
        "idle_share": round(seen.idle / (load.room * span), 3),
        "longest_binding_s": round(seen.longest, 2),
    }


def _arrive(kube: Kube, scheduler: GangScheduler, load: Load, watch: Watch) -> None:
    """All groups, then all pods, gang after gang."""
    if not scheduler.makes_groups:
        _make(kube, [scheduler.group(name, NAMESPACE, SIZE) for name in load.names])
    for name in load.names:
        pods = gang_pods(name, SIZE, gpus=1, image="none")
        for pod in pods:
            scheduler.join(pod, name, SIZE)
        for item in _make(kube, pods):
            watch.know(item)


def _make(kube: Kube, items: Sequence[Object]) -> list[Object]:
    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(lambda item: kube.create(item, namespace=NAMESPACE), items))


def _wait(
    cluster: Cluster, why: str, within: float, enough: Callable[[float, float], bool]
) -> None:
    """Wait until the cores that the cluster uses, and that others use, are *enough*; not for ever.

    What controllers and webhooks have to do about new objects is done before the arrival.
    """
    last = usage.now(cluster)

    def check() -> bool:
        nonlocal last
        new = usage.now(cluster)
        seconds = new.at - last.at
        own = sum(used - last.cpu.get(name, 0.0) for name, used in new.cpu.items())
        others = new.machine - last.machine - own
        last = new
        return enough(own / seconds, others / seconds)

    try:
        until_true(check, deadline=within, why=why, every=3.0)
    except ClusterError as error:
        say(f"{error}; measured all the same")
