"""GPUs of a node: taken away, or ill."""

from __future__ import annotations

import time
from collections.abc import Sequence

from chaos.errors import FaultError
from chaos.faults.base import Proof
from chaos.faults.nodes import NodeFault
from chaos.site import Site
from chaos.undo.steps import OfferGpus, Patch, Step
from clusters import deviceplugin, fakegpus
from clusters.cluster import Capability
from clusters.deviceplugin import Offer
from clusters.fakegpus import allocatable
from clusters.kube import NODES
from clusters.topology import GPU


class GpuFault(NodeFault):
    """Something about the GPUs of a node."""

    def _given_back(self, count: int) -> None:
        """Wait until the API shows so many again.

        Only a kubelet tells of a plugin's: where none is at work, whoever starts it waits for them
        (:class:`chaos.undo.steps.PowerOn`, :class:`chaos.undo.steps.StartKubelet`).
        """
        if deviceplugin.used(self.site.cluster) and not self._kubelet_works():
            return
        self._wait(lambda n: allocatable(n) == count, 30.0, f"with {count} GPUs again")

    def _kubelet_works(self) -> bool:
        if not self.site.answers(self.node):
            return False
        return self.site.unit(self.node, "kubelet") in ("active", "activating")


class TakeGpus(GpuFault):
    """Take GPUs of a node away: its capacity says so from now on, and pods that have them run on.

    In the GPU mode ``device-plugin`` by the plugin, which offers fewer devices.

    Args:
        left: how many it has left.
    """

    name = "take GPUs"

    def __init__(self, site: Site, node: str, *, left: int = 0) -> None:
        super().__init__(site, node)
        site.cluster.require(Capability.OWN_CLUSTER)
        self.left = left
        self._before = 0

    def look(self) -> Sequence[Step]:
        """How many it has; they are given back."""
        self._before = allocatable(self.site.node(self.node))
        if self._before <= self.left:
            raise FaultError(
                f"{self.node} has {self._before} GPUs: none to take down to {self.left}"
            )
        if deviceplugin.used(self.site.cluster):
            return [_offers(self.site, self.node)]
        body = fakegpus.written(self._before)
        return [Patch.of(NODES, self.node, body, subresource="status")]

    def inject(self) -> None:
        """Take them."""
        self.plan()
        self._done = time.time()
        fakegpus.change(self.site.cluster, self.node, self.left)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The API shows it. Raises NotProven."""
        self._seen(lambda n: allocatable(n) == self.left, deadline, f"with {self.left} GPUs")
        return Proof(
            f"{self.node} has {self.left} GPUs of {self._before}",
            {"GPUs before": str(self._before), "GPUs now": str(self.left)},
            self._done,
        )

    def healed(self) -> None:
        """They are back."""
        self._given_back(self._before)


class SickenGpus(GpuFault):
    """GPUs of a node fall ill, also under pods that have them (mode ``device-plugin``).

    Args:
        which: indexes of those that do, from 0; a container finds its own as ``gpu-INDEX`` in
            ``NVIDIA_VISIBLE_DEVICES``.
    """

    name = "sicken GPUs"

    def __init__(self, site: Site, node: str, *, which: Sequence[int] = (0,)) -> None:
        super().__init__(site, node)
        site.cluster.require(Capability.OWN_CLUSTER, Capability.DEVICE_PLUGIN)
        self.which = tuple(which)
        self._before = self._now = Offer(0)

    def look(self) -> Sequence[Step]:
        """Whether they are there, and well; they are made well again."""
        self.site.node(self.node)
        self._before = before = deviceplugin.offer(self.site.cluster, self.node)
        for index in self.which:
            if not 0 <= index < before.count or index in before.unhealthy:
                raise FaultError(f"{self.node} has no GPU {index} that is well")
        self._now = Offer(before.count, (*before.unhealthy, *self.which))
        return [_offers(self.site, self.node)]

    def inject(self) -> None:
        """Say so through the plugin."""
        self.plan()
        self._done = time.time()
        deviceplugin.change(self.site.cluster, self.node, self._now)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The API shows all of them, and fewer for use. Raises NotProven."""
        now = self._now
        seen = self._seen(
            lambda n: allocatable(n) == now.healthy, deadline, f"with {now.healthy} GPUs"
        )
        return Proof(
            f"{len(self.which)} GPUs of {self.node} are ill",
            {
                "capacity": str(seen["status"]["capacity"].get(GPU)),
                "allocatable before": str(self._before.healthy),
                "allocatable now": str(now.healthy),
            },
            self._done,
        )

    def healed(self) -> None:
        """They are well."""
        self._given_back(self._before.healthy)


def _offers(site: Site, node: str) -> OfferGpus:
    """What makes the node's plugin offer what it offers now."""
    now = deviceplugin.offer(site.cluster, node)
    return OfferGpus(node=node, count=now.count, unhealthy=now.unhealthy)
