"""Behaviours that are tables: many cells are tried at once, and each is judged by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from clusters import waiting
from clusters.errors import WaitTimeout
from clusters.kube import Kube, Object, Resource, conditions
from oracles.results import Violation

#: whether an object is as it should be; None: there is no such object
Check = Callable[[Object | None], bool]


class CellsBroken(AssertionError):
    """Cells of a table that broke their promise, each a violation of its own."""

    def __init__(self, broken: Mapping[str, str]) -> None:
        lines = [f"{cell}: {text}" for cell, text in broken.items()]
        super().__init__("\n".join(lines))
        self.violations = [Violation(rule="cell", message=line[:2000]) for line in lines]


class Cells:
    """What was found wrong so far, by cell."""

    def __init__(self) -> None:
        self.broken: dict[str, str] = {}

    def broke(self, cell: str, text: str) -> None:
        """A cell broke its promise; only the first breach of each is told."""
        self.broken.setdefault(cell, text)

    def hold(self, cell: str, kept: bool, text: str) -> None:
        """Note that a cell broke its promise unless *kept*."""
        if not kept:
            self.broke(cell, text)


@contextmanager
def judged() -> Iterator[Cells]:
    """``with judged() as cells:`` raises CellsBroken at its end when a cell broke."""
    cells = Cells()
    yield cells
    if cells.broken:
        raise CellsBroken(cells.broken)


def reach(
    kube: Kube,
    what: Resource,
    namespace: str,
    wanted: Mapping[str, Check],
    *,
    deadline: float,
    describe: Callable[[Object], str] | None = None,
) -> dict[str, str]:
    """Wait until every named object was once as wanted.

    Args:
        wanted: name -> check. What was as wanted once is not looked at again.
        deadline: seconds.

    Returns:
        What was last seen of each one that never was; {} when all were.
    """
    left = dict(wanted)
    seen: dict[str, Object] = {}

    def look(items: list[Object]) -> bool | None:
        seen.clear()
        seen.update((item["metadata"]["name"], item) for item in items)
        for name in [name for name, check in left.items() if check(seen.get(name))]:
            del left[name]
        return None if left else True

    try:
        kube.wait(
            what, look, namespace=namespace, deadline=deadline,
            why=f"{len(wanted)} {what.plural} as wanted",
        )  # fmt: skip
    except WaitTimeout:
        tell = describe or (lambda item: waiting.describe([item]))
        return {name: tell(seen[name]) if name in seen else "there is none" for name in left}
    return {}


def held(
    kube: Kube,
    what: Resource,
    namespace: str,
    broken: Callable[[list[Object]], str],
    *,
    labels: str = "",
    seconds: float,
) -> str:
    """Look at every change that the watch shows for *seconds*; the first that *broken* names.

    Returns:
        "" when nothing broke.
    """
    try:
        return kube.wait(
            what, lambda items: broken(items) or None, namespace=namespace, labels=labels,
            deadline=seconds, why="held",
        )  # fmt: skip
    except WaitTimeout:
        return ""


def true(*names: str) -> Check:
    """Whether a job's conditions of these names are all True."""

    def check(job: Object | None) -> bool:
        if job is None:
            return False
        now = conditions(job)
        return all(now.get(name) == "True" for name in names)

    return check


def anew(uid: str) -> Check:
    """Whether a pod of that name runs that is not the one of *uid*."""

    def check(pod: Object | None) -> bool:
        if pod is None or pod["metadata"]["uid"] == uid:
            return False
        states = pod["status"].get("containerStatuses") or []
        return any("running" in state["state"] for state in states)

    return check


def told(job: Object | None) -> str:
    """A job's true conditions in words."""
    if job is None:
        return "gone"
    return ", ".join(k for k, v in conditions(job).items() if v == "True") or "no condition"
