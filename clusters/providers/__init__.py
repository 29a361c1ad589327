"""Providers by name: ``kind``, ``embedded``, ``existing:CONTEXT``; and whose a cluster is."""

from __future__ import annotations

from clusters import ledger
from clusters.cluster import ClusterProvider
from oracles.errors import UsageError

#: those that make clusters, and so can remove them
OURS = ("kind", "embedded")


def provider(name: str) -> ClusterProvider:
    """The provider of that name.

    Raises:
        UsageError: no such provider.
    """
    kind, _, argument = name.partition(":")
    if kind == "kind" and not argument:
        from clusters.providers.kind import KindProvider

        return KindProvider()
    if kind == "embedded" and not argument:
        from clusters.providers.embedded import EmbeddedProvider

        return EmbeddedProvider()
    if kind == "existing" and argument:
        from clusters.providers.existing import ExistingProvider

        return ExistingProvider(argument)
    raise UsageError(f"no provider {name!r}", hint="one of kind, embedded, existing:CONTEXT")


def names() -> list[str]:
    """Names of all our clusters, half-made ones included."""
    return sorted({cluster for name in OURS for cluster in provider(name).names()})


def left_over() -> list[str]:
    """Names of the clusters that nobody alive wants: their run was killed."""
    return sorted({cluster for name in OURS for cluster in provider(name).left_over()})


def owner(cluster: str) -> ClusterProvider:
    """Who made a cluster, by the ledger; kind, whose containers show, when it says nothing."""
    entry = ledger.read(cluster)
    return provider(entry.provider if entry is not None and entry.provider in OURS else "kind")
