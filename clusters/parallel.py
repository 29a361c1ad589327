"""Work that waits, done at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor


def in_parallel[K, V](function: Callable[[K], V], items: Iterable[K]) -> list[V]:
    """*function* of each item at once, for work that waits on nodes; the first error is raised."""
    work = list(items)
    with ThreadPoolExecutor(max_workers=len(work) or 1) as pool:
        return list(pool.map(function, work))
