"""Small helpers of the builders: states over time, clocks, names in their natural order."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import takewhile

from oracles.history import Event
from reports.timeline.model import Segment

#: an offset between wall and monotonic clock is news when it moved by this, in seconds
_JUMP = 0.05


class Track:
    """Collects the segments of one row."""

    def __init__(self) -> None:
        self._done: list[Segment] = []
        self._state: tuple[float, str, str, int] | None = None

    @property
    def state(self) -> str | None:
        """What holds now; None for nothing."""
        return self._state[1] if self._state else None

    def set(self, x: float, state: str, label: str = "", event: int = 0) -> bool:
        """From *x* on it is *state*. False when it was so already."""
        if self._state and self._state[1:3] == (state, label):
            return False
        self.end(x, event)
        self._state = (x, state, label, event)
        return True

    def end(self, x: float, event: int = 0) -> None:
        """At *x* it is over; nothing holds."""
        if self._state:
            start, state, label, began = self._state
            self._done.append(Segment(start, max(start, x), state, label, began, event))
            self._state = None

    def segments(self, until: float) -> tuple[Segment, ...]:
        """All of them; what still holds is cut off at *until*."""
        found = self._done
        if self._state:
            start, state, label, began = self._state
            found = [*found, Segment(start, max(start, until), state, label, began)]
        return tuple(found)


class Clock:
    """Turns wall times into the monotonic ones of the axis, also when the wall clock jumped."""

    def __init__(self) -> None:
        self._walls: list[float] = []
        self._offsets: list[float] = []

    def saw(self, event: Event) -> None:
        """Learn from an event, which has both."""
        offset = event.t - event.mono
        if not self._offsets or abs(offset - self._offsets[-1]) > _JUMP:
            self._walls.append(event.t)
            self._offsets.append(offset)

    def mono(self, t: float) -> float:
        """Monotonic time of the wall time *t*."""
        if not self._offsets:
            return t
        # from the latest stretch backwards, so that a clock that stepped back is read as it is now
        index = bisect_right(self._walls, t) - 1
        return t - self._offsets[max(index, 0)]

    def wall(self, mono: float) -> float:
        """Wall time of the monotonic time *mono*."""
        for wall, offset in zip(reversed(self._walls), reversed(self._offsets), strict=True):
            if wall - offset <= mono:
                return mono + offset
        return mono + (self._offsets[0] if self._offsets else 0.0)


_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A key that sorts ``worker-10`` after ``worker-9``."""
    return tuple(
        (0, int(part)) if part.isdigit() else (1, part) for part in _DIGITS.split(name) if part
    )


def common_prefix(names: Sequence[str]) -> str:
    """What all *names* begin with, up to a dash, if something else follows in each of them."""
    if len(names) < 2:
        return ""
    low, high = min(names), max(names)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False))
    common = "".join(letter for letter, _ in same)
    return common[: common.rfind("-") + 1]


def counts(
    tracks: Iterable[Iterable[Segment]], series: tuple[str, ...]
) -> tuple[tuple[float, ...], ...]:
    """Points of a chart: how many of the tracks are in each of the states of *series*."""
    place = {state: index for index, state in enumerate(series)}
    deltas: dict[float, list[int]] = {}
    for segments in tracks:
        for segment in segments:
            index = place.get(segment.state)
            if index is None:
                continue
            deltas.setdefault(round(segment.start, 3), [0] * len(series))[index] += 1
            deltas.setdefault(round(segment.end, 3), [0] * len(series))[index] -= 1
    now, points = [0] * len(series), []
    for x in sorted(deltas):
        if any(deltas[x]):
            now = [have + change for have, change in zip(now, deltas[x], strict=True)]
            points.append((x, *map(float, now)))
    return tuple(points)
