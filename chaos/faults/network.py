"""The network between pods or nodes: cut and lossy.

Rules of iptables in the nodes' network namespace, through which all traffic of the pods on it goes,
that between two pods of one node too (the pod network is point to point). Each rule is marked with
the fault's own word: it is found by that, counted by that, and removed by that.

Only packets to and from the given addresses count; what a pod sends to a service is seen after its
translation, so with the address of the pod behind.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chaos.errors import FaultError, NotProven
from chaos.faults.base import Planned, Proof, Scope
from chaos.site import Site
from chaos.undo.steps import OnNode, Step
from clusters.cluster import Capability
from clusters.errors import ClusterError, CommandError
from clusters.kube import until_true

#: beginning of the comment of each of our rules
MARK = "muster-"
_COUNTED = re.compile(r"^\[(\d+):\d+\] -A (\S+) .*", re.MULTILINE)


@dataclass(frozen=True)
class End:
    """One end of what is cut: a pod, or a node with all of its pods.

    Attributes:
        node: where its rules go.
        addresses: addresses and ranges that are its.
    """

    name: str
    node: str
    addresses: tuple[str, ...]
    is_node: bool = False


def pod_end(site: Site, namespace: str, name: str) -> End:
    """A pod. Raises FaultError when it has no address yet, or none of its own."""
    pod = site.pod(namespace, name)
    if pod["spec"].get("hostNetwork"):
        raise FaultError(f"pod {namespace}/{name} shares its node's network")
    address = pod["status"].get("podIP")
    if not address:
        raise FaultError(f"pod {namespace}/{name} has no address yet")
    return End(f"pod {namespace}/{name}", pod["spec"]["nodeName"], (address,))


def node_end(site: Site, name: str) -> End:
    """A node, with the pods on it.

    All of its addresses, not only those in its status: a cluster of IPv4 on a network that has
    IPv6, too, knows the first ones, and its kubelets talk over the others.
    """
    node = site.node(name)
    known = [a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP"]
    more = site.on(name, "ip -o -6 addr show scope global | awk '{print $4}' | cut -d/ -f1").split()
    ranges = [node["spec"]["podCIDR"]] if node["spec"].get("podCIDR") else []
    return End(f"node {name}", name, (*dict.fromkeys([*known, *more]), *ranges), is_node=True)


def device_of(site: Site, pod: End) -> str:
    """The device through which its node reaches a pod. Raises FaultError."""
    route = site.on(pod.node, f"ip -o route get {pod.addresses[0]}").split()
    if "dev" not in route:
        raise FaultError(f"{pod.node} has no route to {pod.name.removeprefix('pod ')}")
    return route[route.index("dev") + 1]


class Cut(Planned):
    """Drop what two ends send to each other.

    Args:
        loss: share of the packets that are dropped, each by chance; 1 drops all.
        traffic: whether the proof waits for a packet that was dropped. Ends that do not talk give
            none: then the rules themselves are the proof, and the evidence says that none came.
    """

    def __init__(
        self, site: Site, a: End, b: End, *, loss: float = 1.0, traffic: bool = True
    ) -> None:
        super().__init__(site)
        site.cluster.require(Capability.NODE_EXEC)
        if not 0 < loss <= 1:
            raise FaultError(f"a loss of {loss}: it is more than 0 and at most 1")
        self.name = "cut network" if loss == 1 else "lossy network"
        self._ends = (a, b)
        self._loss = loss
        self._traffic = traffic
        self.mark = f"{MARK}{secrets.token_hex(4)}"
        self._done = 0.0
        if not a.is_node and not b.is_node:
            self.scope = Scope.NAMESPACE
            self.namespace = a.name.removeprefix("pod ").partition("/")[0]

    @property
    def about(self) -> str:
        """Which ends."""
        return " and ".join(end.name for end in self._ends)

    @property
    def _nodes(self) -> list[str]:
        """Where the rules are: one end's node sees all of it; of two nodes, the first."""
        return [self._ends[0].node]

    def look(self) -> Sequence[Step]:
        """Whether both ends are on nodes that are on; the rules are removed again."""
        for node in self._nodes:
            if not self.site.answers(node):
                raise FaultError(f"{node} is off, so nothing can be cut there")
        return [OnNode(node=node, script=remove_rules(self.mark)) for node in self._nodes]

    def inject(self) -> None:
        """Write the rules."""
        self.plan()
        self._done = time.time()
        for node in self._nodes:
            try:
                self.site.on(node, "set -e\n" + "\n".join(self.rules()))
            except CommandError as error:
                raise FaultError(f"the rules on {node} could not be written: {error}") from error

    def rules(self) -> list[str]:
        """The commands that cut."""
        a, b = self._ends
        chance = (
            "" if self._loss == 1
            else f"-m statistic --mode random --probability {self._loss:.4f} "
        )  # fmt: skip
        end = f"{chance}-m comment --comment {self.mark} -j DROP"
        chains = ("INPUT", "OUTPUT", "FORWARD") if a.is_node else ("FORWARD",)
        pairs = [(x, y) for x in a.addresses for y in b.addresses if (":" in x) == (":" in y)]
        pairs += [(y, x) for x, y in pairs]
        return [
            f"{'ip6tables' if ':' in source else 'iptables'} -w 5 -I {chain}"
            f" -s {source} -d {target} {end}"
            for chain in chains
            for source, target in pairs
        ]

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The rules are there, and have dropped packets. Raises NotProven."""
        dropped = 0

        def enough() -> bool:
            nonlocal dropped
            dropped = self.dropped()
            return dropped > 0 or not self._traffic

        try:
            until_true(enough, deadline=deadline, why=f"packets of {self.about} dropped", every=0.2)
        except ClusterError as error:
            raise NotProven(
                f"the rules are there, but nothing was dropped: {error}; do the ends talk at all?"
            ) from error
        return Proof(
            f"{self.about} are cut off from each other"
            if self._loss == 1
            else f"{self._loss:.0%} of the packets between {self.about} are lost",
            {"packets dropped": str(dropped), "rules": self.mark, "on": ", ".join(self._nodes)},
            self._done,
        )

    def dropped(self) -> int:
        """Packets dropped so far. Raises NotProven when the rules are not there."""
        total = 0
        for node in self._nodes:
            counts = counters(self.site, node, self.mark)
            if len(counts) != len(self.rules()):
                raise NotProven(
                    f"{len(counts)} of {len(self.rules())} rules {self.mark} are on {node}"
                )
            total += sum(counts)
        return total

    def healed(self) -> None:
        """No rule is left. Raises FaultError."""
        for node in self._nodes:
            if self.site.answers(node) and counters(self.site, node, self.mark):
                raise FaultError(f"rules {self.mark} are still on {node}")


def remove_rules(mark: str) -> str:
    """A script that removes all rules with a mark, also a half of them, also none."""
    return (
        "for tool in iptables ip6tables; do"
        f" $tool-save -t filter | grep -- '--comment \"\\?{mark}' | sed 's/^-A/-D/' |"
        ' while read -r rule; do echo "$rule" | xargs $tool -w 5 -t filter; done; done; true'
    )


def counters(site: Site, node: str, mark: str) -> list[int]:
    """Packets that each rule with a mark has counted."""
    text = site.on(
        node,
        "for tool in iptables ip6tables; do"
        f" $tool-save -c -t filter | grep -- '{mark}'; done || true",
    )
    return [int(found[1]) for found in _COUNTED.finditer(text)]


def marks(text: str) -> Iterable[str]:
    """Our marks in the output of iptables-save."""
    return sorted(set(re.findall(rf"{MARK}[0-9a-f]{{8}}", text)))
