"""The text of a judgement: what broke, where, with the events around it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from oracles.changes import Change, changes
from oracles.invariants.base import Violation
from oracles.judgement import Judgement, why_unsure
from oracles.reading import Damage, History
from oracles.slicing import foreign

#: changes that are told before the first and after the last event that proves a violation
AROUND = 3
#: cited events that are told of one violation, and violations that are told with their events
CITED = 20
TOLD = 20


def read_changes(history: History, *, others: bool = False) -> Iterator[Change]:
    """The changes of a history that was just opened.

    Args:
        others: of a slice, also what is told of other tests' pods.
    """
    part = history.part
    return changes(
        (event for event in history.events() if others or not foreign(event, part)),
        started=history.header.started,
        state_until=int(part.get("state_until", 0)),
    )


def line(change: Change, zero: float = 0.0) -> str:
    """A change in a line: when (seconds from *zero*), which event, who, what."""
    return f"{change.mono - zero:+9.2f} s  #{change.seq}  {change.subject}: {change}"


def around(path: Path, violations: Sequence[Violation], zero: float = 0.0) -> dict[int, list[str]]:
    """For each violation, by its place in *violations*: the events that prove it, as lines.

    With them come a few changes before and after in the same namespace.
    """
    pages = [_Page(violation) for violation in violations[:TOLD]]
    for change in read_changes(History(path), others=True):
        for page in pages:
            page.take(change, zero)
    return {index: page.lines() for index, page in enumerate(pages)}


class _Page:
    """What is told of one violation."""

    def __init__(self, violation: Violation) -> None:
        self._cited = frozenset(violation.events)
        self._last = max(violation.events, default=0)
        self._namespace = violation.subject.partition(" ")[2].partition("/")[0]
        self._before: deque[str] = deque(maxlen=AROUND)
        self._lines: list[str] = []
        self._left = AROUND
        self._seen: set[int] = set()

    def take(self, change: Change, zero: float) -> None:
        if change.seq in self._cited:
            self._lines += self._before
            self._before.clear()
            self._seen.add(change.seq)
            self._lines.append("> " + line(change, zero))
        elif change.namespace and change.namespace != self._namespace:
            return
        elif self._lines and self._seen >= self._cited:
            if self._left:
                self._left -= 1
                self._lines.append("  " + line(change, zero))
        else:
            self._before.append("  " + line(change, zero))

    def lines(self) -> list[str]:
        found = self._lines
        if len(found) > CITED + 2 * AROUND:
            half = CITED // 2 + AROUND
            skipped = len(found) - 2 * half
            found = [*found[:half], f"  ... {skipped} more ...", *found[-half:]]
        silent = sorted(self._cited - self._seen)
        if silent:
            numbers = ", ".join(f"#{seq}" for seq in silent[:CITED])
            found.append(f"> also {numbers}, which changed nothing that is told here")
        return found


def text(
    path: Path, judgement: Judgement, damage: Iterable[Damage] = (), *, zero: float = 0.0
) -> str:
    """A judgement in full; "" for a good one."""
    parts: list[str] = []
    broken = judgement.violations
    unsure = judgement.unsure
    pages = around(path, [*broken, *unsure], zero) if broken or unsure else {}
    for index, violation in enumerate([*broken, *unsure]):
        doubt = "" if index < len(broken) else f" ({why_unsure(violation)})"
        parts.append(
            f"{violation.behaviour} {violation.invariant}: {violation.subject}:"
            f" {violation.message}{doubt}"
        )
        parts += ["    " + each for each in pages.get(index, [])]
    parts += [f"known {k.id}: {v.subject}: {v.message} ({k.link})" for v, k in judgement.excused]
    for gap in judgement.gaps:
        if not gap.late:
            end = f"event {gap.last}" if gap.last else "the end"
            parts.append(
                f"gap: {gap.kind or 'all kinds'} not seen, or not for certain,"
                f" from event {gap.first} ({gap.start - zero:+.2f} s) to {end}"
                f" ({gap.end - zero:+.2f} s)"
            )
    parts += [f"damage: {each}" for each in damage]
    return "\n".join(parts)
