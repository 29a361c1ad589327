"""Probes of the cluster itself, and of what stands between it and a system."""

from __future__ import annotations

import time

from chaos import looking, session
from chaos.activities import activity, mending, node_named
from chaos.errors import NotProven
from chaos.faults.api import ApiTrouble
from chaos.faults.failover import LEASES
from clusters.kube import Object, epoch
from clusters.progress import say

#: seconds between two looks at nodes, whose insides have no watch
LOOK = 0.25
#: namespace of the leases that kubelets renew
KUBELETS = "kube-node-lease"


@mending
def cluster_in_order(within: float = 30) -> bool:
    """Nodes Ready, nothing broken, operator and scheduler Ready; says what is not.

    Args:
        within: seconds for what is on its way, a container that starts again for instance.
    """
    site = session.current().site
    end = time.monotonic() + within
    while found := looking.troubles(site):
        if time.monotonic() > end:
            for line in found:
                say(f"not in order: {line}")
            return False
        time.sleep(LOOK)
    return True


@activity
def node_is_heard(node: str, *, within: float = 60) -> str:
    """A node's kubelet has told of itself since the last fault was mended: when.

    Every kubelet renews a lease each 10 seconds. A node that was away for less than 40 seconds
    shows in nothing else that it was.

    Args:
        node: as for faults: ``worker:N``, ``of:POD``, ...

    Raises:
        WaitTimeout: it has not.
    """
    it = session.current()
    name = node_named(node)

    def renewed(leases: list[Object]) -> str | None:
        told = [str(lease["spec"].get("renewTime") or "") for lease in leases]
        return next((t for t in told if t and epoch(t) > it.mended), None)

    return it.kube.wait(
        LEASES, renewed, namespace=KUBELETS, fields=f"metadata.name={name}", deadline=within,
        why=f"a sign of life of {name}",
    )  # fmt: skip


@activity
def rule_acted(label: str, times: int = 1, *, kept: int = 0) -> int:
    """A rule of a proxy has done something to so many requests.

    Args:
        kept: bytes that it has kept back, at least, if its action is ``stale``.

    Raises:
        NotProven: it has not, so whatever was seen says nothing about it.
    """
    fault = session.current().labels.get(label)
    if not isinstance(fault, ApiTrouble):
        raise NotProven(f"{label!r} names no trouble of a proxy")
    counts = fault.counts()
    if counts.acted < times or counts.kept < kept:
        raise NotProven(
            f"{fault.name} ({fault.about}) acted on {counts.acted} requests, and kept"
            f" {counts.kept} bytes back; {times} and {kept} were meant"
        )
    return counts.acted
