"""Mending what others left broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from chaos.errors import NotMended
from chaos.site import Site
from chaos.undo import journal
from chaos.undo.journal import Entry, Journal
from clusters import cache
from clusters.cluster import Cluster, ClusterProvider
from clusters.errors import ClusterError
from clusters.progress import say
from clusters.providers import provider
from oracles.errors import HarnessError

Sites = Callable[[str, str], Site]


def mend(site: Site, *, everything: bool = False) -> list[str]:
    """Undo what nobody alive will undo in *site*, the newest first; a line for each.

    Args:
        everything: also what a living process broke and is not overdue.

    Raises:
        NotMended: with what is still broken.
    """
    done, troubles = [], []
    book = Journal(site)
    if not book.folder.exists():
        return []
    with cache.lock(f"mend-{book.folder.name}", passing=True):
        for entry in reversed(book.entries()):
            if entry.run != site.cluster.run:  # made anew under the same name
                book.forget(entry)
                continue
            if entry.owned and not entry.overdue and not everything:
                continue
            say(f"{site.cluster.name}: undoing {entry}")
            try:
                book.undo(entry)
            except NotMended as error:
                troubles.append(str(error))
            else:
                done.append(f"{site.cluster.name}: undid {entry}")
    if troubles:
        raise NotMended("\n".join(troubles))
    return done


def mend_named(where: ClusterProvider, name: str) -> list[str]:
    """As :func:`mend`, for a cluster that may not be whole enough to be asked for.

    Raises:
        NotMended: with what is still broken.
    """
    if not journal.named(where.name, name).exists():
        return []
    return mend(Site(_described(where, name), where))


def pending() -> list[Entry]:
    """What is written down for any cluster, the oldest first; files that nobody can read raise."""
    found: list[Entry] = []
    for path in sorted(journal.root().glob("*")):
        if path.is_dir():
            book = Journal.__new__(Journal)
            book.folder = path
            found += book.entries()
    return sorted(found, key=lambda entry: entry.made)


def everywhere(*, everything: bool = False, sites: Sites | None = None) -> list[str]:
    """Mend all clusters that have something written down; a line for each thing that was done.

    Journals of clusters that are no more are removed.

    Raises:
        NotMended: with what is still broken.
    """
    done, troubles = [], []
    clusters = dict.fromkeys((entry.provider, entry.cluster) for entry in pending())
    for where, name in clusters:
        try:
            site = (sites or _site)(where, name)
        except ClusterError as error:
            if gone := _gone(where, name):
                journal.drop(gone)
                done.append(f"{name}: it is no more, and neither is what was broken in it")
            else:
                troubles.append(f"{name}: {error}")
            continue
        try:
            done += mend(site, everything=everything)
        except HarnessError as error:
            troubles.append(str(error))
    if troubles:
        raise NotMended("\n".join(troubles))
    return done


def _site(where: str, name: str) -> Site:
    it = provider(where)
    return Site(_described(it, name), it)


def _described(where: ClusterProvider, name: str) -> Cluster:
    # not `get`, which refuses a cluster with stopped nodes: they are what is to be started
    look: Callable[[str], Cluster] = getattr(where, "describe", where.get)
    return look(name)


def _gone(where: str, name: str) -> Path | None:
    """The journal of a cluster that its provider does not know any more."""
    if where.startswith("existing:") or name in provider(where).names():
        return None
    return journal.named(where, name)
