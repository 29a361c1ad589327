"""Nodes: off, without a kubelet, cordoned, drained, tainted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from chaos.errors import FaultError, NotProven
from chaos.faults.base import Planned, Proof
from chaos.faults.pod import evict
from chaos.site import Site
from chaos.undo.steps import Patch, PowerOn, StartKubelet, Step
from clusters.cluster import Capability
from clusters.errors import WaitTimeout
from clusters.kube import NODES, PODS, Object, conditions, until_true

#: annotation of a pod that the kubelet runs from a file
_MIRROR = "kubernetes.io/config.mirror"


class NodeFault(Planned):
    """Something about one node."""

    def __init__(self, site: Site, node: str) -> None:
        super().__init__(site)
        self.node = node
        self._done = 0.0

    @property
    def about(self) -> str:
        """Which node."""
        return self.node

    def _wait(self, holds: Callable[[Object], bool], deadline: float, why: str) -> Object:
        """Wait until the node is as *holds* says. Raises WaitTimeout."""
        return self.site.kube.wait(
            NODES, lambda items: next((item for item in items if holds(item)), None),
            fields=f"metadata.name={self.node}", deadline=deadline, why=f"{self.node} {why}",
        )  # fmt: skip

    def _seen(self, holds: Callable[[Object], bool], deadline: float, why: str) -> Object:
        try:
            return self._wait(holds, deadline, why)
        except WaitTimeout as error:
            raise NotProven(f"it was injected, but: {error}") from error


class StopNode(NodeFault):
    """Power a node off, without notice to anything on it.

    Args:
        noticed: whether the proof waits until the cluster has noticed, 40 to 60 s later.
    """

    name = "stop node"

    def __init__(self, site: Site, node: str, *, noticed: bool = False) -> None:
        super().__init__(site, node)
        site.cluster.require(Capability.NODE_POWER)
        self._noticed = noticed

    def look(self) -> Sequence[Step]:
        """Whether it is on."""
        self.site.node(self.node)
        if not self.site.answers(self.node):
            raise FaultError(f"{self.node} is off already")
        return [PowerOn(node=self.node)]

    def inject(self) -> None:
        """Stop it."""
        self.plan()
        self._done = time.time()
        self.site.provider.stop_node(self.site.cluster, self.node)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """Nothing can be run on it any more. Raises NotProven."""
        if self.site.answers(self.node):
            raise NotProven(f"{self.node} was stopped, but it answers")
        evidence = {"a command on the node": "it is not running"}
        if self._noticed:
            seen = self._seen(_not_ready, max(deadline, 90.0), "seen as not Ready")
            evidence["Ready"] = conditions(seen).get("Ready", "none")
        return Proof(f"{self.node} is off", evidence, self._done)


class StopKubelet(NodeFault):
    """Stop a node's kubelet: pods run on, and nobody hears of them."""

    name = "stop kubelet"

    def __init__(self, site: Site, node: str, *, noticed: bool = False) -> None:
        super().__init__(site, node)
        site.cluster.require(Capability.NODE_EXEC)
        self._noticed = noticed

    def look(self) -> Sequence[Step]:
        """Whether it runs."""
        if self.site.unit(self.node, "kubelet") != "active":
            raise FaultError(f"the kubelet of {self.node} does not run")
        return [StartKubelet(node=self.node)]

    def inject(self) -> None:
        """Stop it."""
        self.plan()
        self._done = time.time()
        self.site.on(self.node, "systemctl stop kubelet")

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """systemd says that it is not active. Raises NotProven."""
        state = self.site.unit(self.node, "kubelet")
        if state not in ("inactive", "failed"):
            raise NotProven(f"the kubelet of {self.node} was stopped, but it is {state}")
        evidence = {"kubelet": state}
        if self._noticed:
            seen = self._seen(_not_ready, max(deadline, 90.0), "seen as not Ready")
            evidence["Ready"] = conditions(seen).get("Ready", "none")
        return Proof(f"the kubelet of {self.node} is stopped", evidence, self._done)


class Cordon(NodeFault):
    """Let no new pods be placed on a node."""

    name = "cordon node"

    def look(self) -> Sequence[Step]:
        """Whether it takes pods."""
        if self.site.node(self.node)["spec"].get("unschedulable"):
            raise FaultError(f"{self.node} is cordoned already")
        return [Patch.of(NODES, self.node, {"spec": {"unschedulable": None}})]

    def inject(self) -> None:
        """Cordon it."""
        self.plan()
        self._done = time.time()
        self.site.kube.patch(NODES, self.node, {"spec": {"unschedulable": True}})

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The API shows it. Raises NotProven."""
        self._seen(lambda n: bool(n["spec"].get("unschedulable")), deadline, "unschedulable")
        return Proof(f"{self.node} is cordoned", {"unschedulable": "True"}, self._done)

    def healed(self) -> None:
        """It takes pods again."""
        self._wait(lambda n: not n["spec"].get("unschedulable"), 30.0, "schedulable again")


class Drain(Cordon):
    """Cordon a node and evict the pods on it, those with emptyDir volumes too.

    Args:
        namespaces: only their pods; None for all but daemons and the control plane's.
    """

    name = "drain node"

    def __init__(self, site: Site, node: str, *, namespaces: Sequence[str] | None = None) -> None:
        super().__init__(site, node)
        self._namespaces = namespaces
        self._evicted: dict[str, str] = {}

    def inject(self) -> None:
        """Cordon it, then evict. Raises FaultError when there is no pod to evict."""
        super().inject()
        for pod in self._pods():
            meta = pod["metadata"]
            if evict(self.site.kube, meta["namespace"], meta["name"]):
                self._evicted[meta["uid"]] = f"{meta['namespace']}/{meta['name']}"
        if not self._evicted:
            raise FaultError(f"there is no pod on {self.node} to evict")

    def proof(self, *, deadline: float = 60.0) -> Proof:
        """The evicted pods are gone from it. Raises NotProven."""
        super().proof(deadline=deadline)

        def gone(pods: list[Object]) -> bool | None:
            left = {pod["metadata"]["uid"] for pod in pods} & self._evicted.keys()
            return None if left else True

        try:
            self.site.kube.wait(
                PODS, gone, fields=f"spec.nodeName={self.node}", deadline=deadline,
                why=f"evicted pods gone from {self.node}",
            )  # fmt: skip
        except WaitTimeout as error:
            raise NotProven(f"pods were evicted, but: {error}") from error
        return Proof(
            f"{self.node} was drained of {len(self._evicted)} pods",
            {"unschedulable": "True", "evicted": ", ".join(sorted(self._evicted.values()))},
            self._done,
        )

    def _pods(self) -> list[Object]:
        found = []
        for pod in self.site.kube.find(PODS, fields=f"spec.nodeName={self.node}"):
            meta = pod["metadata"]
            owners = {owner["kind"] for owner in meta.get("ownerReferences") or []}
            if "DaemonSet" in owners or "Node" in owners:
                continue
            if _MIRROR in (meta.get("annotations") or {}):
                continue
            if pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            if self._namespaces is None or meta["namespace"] in self._namespaces:
                found.append(pod)
        return found


class Taint(NodeFault):
    """Taint a node: ``NoSchedule`` keeps new pods away, ``NoExecute`` ends those that are there."""

    name = "taint node"
    KEY = "muster.dev/fault"

    def __init__(self, site: Site, node: str, effect: str = "NoSchedule") -> None:
        super().__init__(site, node)
        self.effect = effect

    def look(self) -> Sequence[Step]:
        """Its taints now; they are written back."""
        before = self._taints(self.site.node(self.node))
        if any(taint["key"] == self.KEY for taint in before):
            raise FaultError(f"{self.node} is tainted by us already")
        # only those that people set: conditions put theirs there, and take them away, by themselves
        kept = [t for t in before if not t["key"].startswith("node.kubernetes.io/")]
        return [Patch.of(NODES, self.node, {"spec": {"taints": kept or None}})]

    def inject(self) -> None:
        """Taint it."""
        self.plan()
        self._done = time.time()
        taints = self._taints(self.site.node(self.node))
        mine = {"key": self.KEY, "value": "on-purpose", "effect": self.effect}
        self.site.kube.patch(NODES, self.node, {"spec": {"taints": [*taints, mine]}})

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The API shows it. Raises NotProven."""
        self._seen(self._mine, deadline, "tainted")
        return Proof(f"{self.node} is tainted", {self.KEY: self.effect}, self._done)

    def healed(self) -> None:
        """The taint is gone."""
        self._wait(lambda node: not self._mine(node), 30.0, "without the taint")

    def _mine(self, node: Object) -> bool:
        return any(taint["key"] == self.KEY for taint in self._taints(node))

    @staticmethod
    def _taints(node: Object) -> list[Object]:
        return list(node["spec"].get("taints") or [])


def wait_ready(site: Site, node: str, *, deadline: float = 90.0) -> None:
    """Wait until a node is Ready. Raises ClusterError."""

    def ready() -> bool:
        return conditions(site.node(node)).get("Ready") == "True"

    until_true(ready, deadline=deadline, why=f"{node} Ready")


def _not_ready(node: Object) -> bool:
    return conditions(node).get("Ready") != "True"
