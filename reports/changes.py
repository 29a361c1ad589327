"""What changed between two tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import Field

from oracles.outcome import Outcome
from oracles.results import System
from oracles.strict import Strict

if TYPE_CHECKING:
    from reports.table import Entry

Kind = Literal["worse", "better", "changed", "figure", "new", "gone"]
#: in the order in which they are told
KINDS: tuple[Kind, ...] = ("worse", "better", "changed", "figure", "new", "gone")

#: the share by which a figure's median has to move to be told. With fewer than 3 attempts on either
#: side nothing says how far it moves by itself, so it has to move further.
MOVED, MOVED_FEW = 0.2, 0.5
_FEW = 3

#: from well to ill; NOT_APPLICABLE is neither
_RANK = {Outcome.PASS: 0, Outcome.KNOWN: 1, Outcome.INCONCLUSIVE: 2, Outcome.FAIL: 3}


class Change(Strict):
    """One cell that is not as it was. *before* and *after* are texts for people."""

    kind: Kind
    behaviour: str
    case: str = ""
    provider: str
    kubernetes: str
    operator: str | None = None
    scheduler: str | None = None
    framework: str | None = None
    what: str = Field(default="outcome")
    before: str = ""
    after: str = ""

    @property
    def name(self) -> str:
        """Behaviour and case."""
        return f"{self.behaviour} {self.case}".strip()

    @property
    def key(self) -> tuple[str, str, System]:
        """The cell's, see ``Entry.key``."""
        system = System(
            self.provider, self.kubernetes, self.operator, self.scheduler, self.framework
        )
        return (self.behaviour, self.case, system)


class _Spread(Protocol):
    @property
    def attempts(self) -> int: ...
    @property
    def min(self) -> float: ...
    @property
    def median(self) -> float: ...
    @property
    def max(self) -> float: ...


def compare(old: Iterable[Entry], new: Iterable[Entry]) -> list[Change]:
    """What changed, the worst first."""
    before = {entry.key: entry for entry in old}
    after = {entry.key: entry for entry in new}
    found: list[Change] = []
    for key in sorted({*before, *after}, key=str):
        a, b = before.get(key), after.get(key)
        if a is None and b is not None:
            found.append(_change("new", b, after=counted(b.counts)))
        elif b is None and a is not None:
            found.append(_change("gone", a, before=counted(a.counts)))
        elif a is not None and b is not None:
            found += _both(a, b)
    return sorted(found, key=lambda change: KINDS.index(change.kind))


def counted(counts: Mapping[Outcome, int]) -> str:
    """``PASS``, ``3 PASS``, ``2 PASS, 1 FAIL``."""
    if sum(counts.values()) == 1:
        return str(next(iter(counts)))
    return ", ".join(f"{number} {outcome}" for outcome, number in counts.items())


def moved(a: _Spread, b: _Spread) -> bool:
    """Whether a figure moved: the ranges do not meet, and the medians are far enough apart."""
    if a.min <= b.max and b.min <= a.max:
        return False
    share = MOVED if min(a.attempts, b.attempts) >= _FEW else MOVED_FEW
    return abs(a.median - b.median) > share * max(abs(a.median), abs(b.median))


def number(value: float) -> str:
    """A figure for people: four digits are more than a measure is worth."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spread(figure: _Spread) -> str:
    """``34.9``, or ``33 (31–36)``: median, minimum and maximum."""
    if figure.min == figure.max:
        return number(figure.median)
    return f"{number(figure.median)} ({number(figure.min)}–{number(figure.max)})"


def _both(a: Entry, b: Entry) -> list[Change]:
    found = []
    if a.outcome is not b.outcome or set(a.counts) != set(b.counts):
        found.append(
            _change(_direction(a, b), b, before=counted(a.counts), after=counted(b.counts))
        )
    old = {(figure.name, figure.unit): figure for figure in a.figures}
    for figure in b.figures:
        was = old.get((figure.name, figure.unit))
        if was is not None and moved(was, figure):
            found.append(
                _change(
                    "figure",
                    b,
                    what=figure.name,
                    before=f"{spread(was)} {figure.unit}",
                    after=f"{spread(figure)} {figure.unit}",
                )
            )
    return found


def _direction(a: Entry, b: Entry) -> Kind:
    old, new = (_RANK.get(each.outcome) for each in (a, b))
    if old is None or new is None:
        return "changed"
    if old == new:  # mixed in another way
        return "better" if len(b.counts) < len(a.counts) and new == 0 else "changed"
    return "worse" if new > old else "better"


def _change(
    kind: Kind, entry: Entry, *, what: str = "outcome", before: str = "", after: str = ""
) -> Change:
    return Change(
        kind=kind,
        behaviour=entry.behaviour,
        case=entry.case,
        **entry.system._asdict(),
        what=what,
        before=before,
        after=after,
    )
