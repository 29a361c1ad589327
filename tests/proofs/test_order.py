"""Pods that are bound in the wrong order or place, and nodes that are not used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import cast

import pytest

from clusters.cluster import Cluster, ClusterProvider
from clusters.kube import NODES, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems.protocols import GangScheduler
from suites.sched import test_nodes, test_placement, test_priority
from suites.stage import Stage, gpus_by_node
from tests.proofs.naive import Instead
from tests.proofs.staging import SOON, OnStage

pytestmark = pytest.mark.proof

TAINT = {"key": "muster.dev/proof", "effect": "NoSchedule"}


class Exchanged(Stage):
    """Who asks for the class of the important pods gets that of the others."""

    def priority_class(self, word: str | None) -> str | None:
        """The other one."""
        return super().priority_class({"high": "low", "low": "high"}.get(word or "", word))


@pytest.mark.proves("S06", by="pods whose priorities were exchanged", shows="bound first: ")
def test_workers_come_first(on_stage: OnStage, gpus: Callable[[int], int]) -> None:
    with on_stage(kind=Exchanged) as stage:
        test_priority.test_the_important_pods_of_a_job_come_first(stage, gpus)


class Dealing(Instead):
    """A scheduler that deals the pods of a gang out to the nodes in turn.

    It is in no list of what schedulers do not promise, so it promises everything.
    """

    name = "dealing"

    def __init__(self, real: GangScheduler, nodes: list[str]) -> None:
        super().__init__(real, real.scheduler_name)
        self._nodes = cycle(nodes)

    def join(self, pod: Object, group: str, members: int | None = None) -> None:
        """Puts it on the next node."""
        super().join(pod, group, members)
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": next(self._nodes)}


@pytest.mark.proves(
    "S10", by="a scheduler that deals pods out to the nodes in turn", shows="spread over"
)
def test_a_job_is_spread(
    on_stage: OnStage, system: SystemUnderTest, gpus: Callable[[int], int]
) -> None:
    instead = Dealing(system.scheduler, list(gpus_by_node(system.cluster.kube)))
    with on_stage(scheduler=instead) as stage:
        test_placement.test_the_pods_of_a_job_share_a_node_when_they_fit(stage, gpus)


class Tainting:
    """A provider whose nodes are tainted by somebody while they are away."""

    def __init__(self, real: ClusterProvider) -> None:
        self._real = real
        self.tainted: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def start_node(self, cluster: Cluster, node: str) -> None:
        """Too late: from before it is Ready, nothing may be bound there."""
        now = cluster.kube.get(NODES, node)
        assert now is not None
        taints = [*(now["spec"].get("taints") or []), TAINT]
        cluster.kube.patch(NODES, node, {"spec": {"taints": taints}})
        self.tainted.append(node)
        self._real.start_node(cluster, node)


@contextmanager
def tainting(system: SystemUnderTest, real: ClusterProvider) -> Iterator[Tainting]:
    """Such a provider; its taints are taken away at the end."""
    kube, instead = system.cluster.kube, Tainting(real)
    try:
        yield instead
    finally:
        for node in instead.tainted:
            now = kube.get(NODES, node)
            assert now is not None
            left = [t for t in now["spec"].get("taints") or [] if t["key"] != TAINT["key"]]
            kube.patch(NODES, node, {"spec": {"taints": left}})


@pytest.mark.exclusive
@pytest.mark.proves(
    "S09", by="a node that came back with a taint of somebody else's", shows="bound: "
)
def test_a_node_comes_back_tainted(
    on_stage: OnStage, system: SystemUnderTest, provider: ClusterProvider, step: Expecting
) -> None:
    with (
        tainting(system, provider) as instead,
        on_stage(admission=SOON) as stage,
    ):
        test_nodes.test_a_node_that_was_lost_is_used_again(
            stage, cast("ClusterProvider", instead), step
        )
