"""What may be broken.

In a cluster that the harness made: all of it. In somebody's: what lies in a namespace that the
harness made, and the rest only where its owner says so (``--i-own-this-cluster NAME``).
"""

from __future__ import annotations

from collections.abc import Collection

from chaos.errors import NotOurs
from chaos.faults.base import Fault, Scope
from chaos.site import Site
from clusters.cluster import Capability
from clusters.kube import NAMESPACES
from fixtures.workloads.template import LABEL_RUN

#: the option, as commands and pytest have it
OPTION = "--i-own-this-cluster"


def check(site: Site, fault: Fault, owned: Collection[str] = ()) -> None:
    """Refuse a fault that would touch what is not ours.

    A fault that does not say what it touches is taken to touch everything.

    Args:
        owned: names of clusters whose owner allows everything.

    Raises:
        NotOurs: before anything is touched.
    """
    cluster = site.cluster
    if Capability.OWN_CLUSTER in cluster.capabilities or cluster.name in owned:
        return
    namespace = getattr(fault, "namespace", "") or getattr(fault, "_namespace", "")
    if getattr(fault, "scope", Scope.CLUSTER) is Scope.NAMESPACE and namespace:
        found = site.kube.get(NAMESPACES, namespace)
        if found is None or LABEL_RUN in (found["metadata"].get("labels") or {}):
            return
        raise NotOurs(
            f"{fault.name}: namespace {namespace} of {cluster.name} is not of this harness",
            hint=f"{OPTION} {cluster.name}, if you own the cluster and want this",
        )
    raise NotOurs(
        f"{fault.name} touches {Scope.CLUSTER.value} of {cluster.name}, which this harness did"
        " not make",
        hint=f"{OPTION} {cluster.name}, if you own the cluster and want this",
    )
