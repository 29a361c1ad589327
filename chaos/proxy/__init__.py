"""A proxy between one system and the API server.

It runs on a node of the control plane, or on this host where systems are processes of it.
"""

from __future__ import annotations

from chaos.proxy.base import ApiProxy, Counts, Rule
from chaos.proxy.onhost import LocalProxy
from chaos.proxy.onnode import UNIT, NodeProxy
from chaos.site import Site
from clusters.cluster import Capability

__all__ = ["UNIT", "ApiProxy", "Counts", "Rule", "of"]


def of(site: Site) -> ApiProxy:
    """The proxy for a cluster. Raises NotApplicable where none can stand in the way."""
    site.cluster.require(Capability.OWN_CLUSTER)
    if Capability.LOCAL_PROCESSES in site.cluster.capabilities:
        return LocalProxy(site)
    return NodeProxy(site)
