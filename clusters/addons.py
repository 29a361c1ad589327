"""Operators, schedulers and folders that rooms above this one contribute to a new cluster.

This room knows nothing of operators or PyTorch, yet ``clusters up`` installs them: they are found
by entry points, so the import arrow stays one way and products from outside can take part.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from clusters.cluster import Cluster, Mount

#: an entry point of this group is a function ``install(cluster, operator=..., scheduler=...)``; a
#: function ``check(operator=..., scheduler=...)`` beside it refuses words that name nothing
INSTALLERS = "muster.installers"
#: an entry point of this group is a function that returns the folders every node should see
MOUNTS = "muster.mounts"


def check(*, operator: str, scheduler: str) -> None:
    """Raise UsageError for words that no installer knows, before a cluster is made for them."""
    for point in entry_points(group=INSTALLERS):
        checker = getattr(import_module(point.module), "check", None)
        if checker is not None:
            checker(operator=operator, scheduler=scheduler)


def install(cluster: Cluster, *, operator: str, scheduler: str) -> None:
    """Install systems by the words of the command line; ``none`` installs nothing."""
    for installer in _functions(INSTALLERS):
        installer(cluster, operator=operator, scheduler=scheduler)


def mounts() -> tuple[Mount, ...]:
    """Folders of the host that every node of a new cluster should see."""
    return tuple(mount for function in _functions(MOUNTS) for mount in function())


def _functions(group: str) -> list[Callable[..., Any]]:
    return [point.load() for point in entry_points(group=group)]
