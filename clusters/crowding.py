"""How crowded the host is that all nodes of a cluster are on."""

from __future__ import annotations

import os

from clusters.cluster import Cluster
from oracles.crowd import Crowd

#: providers whose clusters live on this host alone
HERE = ("kind", "embedded")


def of(cluster: Cluster) -> Crowd | None:
    """What this host has to do (load average of a minute); None where nodes are elsewhere."""
    if cluster.provider not in HERE:
        return None
    return Crowd(os.getloadavg()[0], os.cpu_count() or 1)
