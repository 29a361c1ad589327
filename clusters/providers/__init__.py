"""Providers by name: ``kind``, ``existing:CONTEXT``."""

from __future__ import annotations

from clusters.cluster import ClusterProvider
from oracles.errors import UsageError


def provider(name: str) -> ClusterProvider:
    """The provider of that name.

    Raises:
        UsageError: no such provider.
    """
    kind, _, argument = name.partition(":")
    if kind == "kind" and not argument:
        from clusters.providers.kind import KindProvider

        return KindProvider()
    if kind == "existing" and argument:
        from clusters.providers.existing import ExistingProvider

        return ExistingProvider(argument)
    raise UsageError(f"no provider {name!r}", hint="one of kind, existing:CONTEXT")
