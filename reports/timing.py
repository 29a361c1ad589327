"""Where the time of runs went."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reports.table import Entry, Try

SLOWEST = 10


@dataclass(frozen=True)
class Share:
    """A behaviour's part of the time, in seconds over all its attempts that ran."""

    behaviour: str
    attempts: int
    seconds: float


def by_behaviour(entries: Iterable[Entry]) -> list[Share]:
    """The time per behaviour, the longest first."""
    found: dict[str, list[float]] = {}
    for entry in entries:
        found.setdefault(entry.behaviour, []).extend(
            each.seconds for each in entry.tries if each.seconds is not None
        )
    shares = [Share(name, len(times), sum(times)) for name, times in found.items() if times]
    return sorted(shares, key=lambda share: (-share.seconds, share.behaviour))


def slowest(entries: Iterable[Entry], count: int = SLOWEST) -> list[tuple[Entry, Try]]:
    """The *count* attempts that took longest."""
    ran = [(e, each) for e in entries for each in e.tries if each.seconds is not None]
    return sorted(ran, key=lambda pair: (-(pair[1].seconds or 0.0), str(pair[0].key)))[:count]


def seconds(value: float) -> str:
    """``4.2 s``, ``95 s``, ``12 min 5 s``."""
    if value < 10:
        return f"{value:.1f} s"
    if round(value) < 120:
        return f"{value:.0f} s"
    return f"{round(value) // 60} min {round(value) % 60} s"
