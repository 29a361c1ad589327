"""Clusters that this tool made, as the ledger remembers them: the same for each provider."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from clusters import cache, ledger
from clusters.cluster import ClusterSpec
from clusters.errors import ClusterError, TopologyError, WrongName
from clusters.ledger import Entry
from clusters.progress import say
from clusters.topology import Topology, load
from oracles.errors import HarnessError


def locked(name: str) -> AbstractContextManager[None]:
    """Nobody else makes, mends or removes the cluster meanwhile."""
    return cache.lock(f"cluster-{name}", passing=True)


def taken(name: str) -> WrongName:
    """What is raised where a cluster of that name is there."""
    return WrongName(
        f"a cluster named {name!r} is there already",
        hint=f"python -m clusters down {name}, or use another name",
    )


def give_up(spec: ClusterSpec, remove: Callable[[str], None], *, note: str = "") -> None:
    """What becomes of a cluster that could not be made: it is removed, or kept if that was asked.

    Args:
        note: what else there is to say when it is removed.
    """
    if spec.keep:
        ledger.update(spec.name, keep=True)
        say(f"cluster {spec.name} stays as it is; its folder is {ledger.folder(spec.name)}")
        return
    say(f"removing what there is of cluster {spec.name}{note}")
    with suppress(HarnessError):  # the reason for giving up is the one to be told
        remove(spec.name)


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
