"""Clusters that this tool made, as the ledger remembers them: the same for each provider."""

from __future__ import annotations

from contextlib import AbstractContextManager

from clusters import cache, ledger
from clusters.errors import ClusterError, TopologyError
from clusters.ledger import Entry
from clusters.topology import Topology, load


def locked(name: str) -> AbstractContextManager[None]:
    """Nobody else makes, mends or removes the cluster meanwhile."""
    return cache.lock(f"cluster-{name}", passing=True)


def restore(name: str) -> tuple[Entry, Topology]:
    """What was written down of a cluster that was completed.

    Raises:
        ClusterError: it was not completed, or its folder is gone or damaged.
    """
    folder = ledger.folder(name)
    entry = ledger.read(name)
    if entry is None or not (folder / "kubeconfig").exists():
        raise ClusterError(
            f"cluster {name!r} was not completed, or its folder is gone",
            hint=f"python -m clusters down {name}",
        )
    try:
        topology = load(str(folder / "topology.yaml"))
    except TopologyError as error:
        raise ClusterError(f"cluster {name!r} has a damaged folder: {error}") from error
    return entry, topology
