"""The order in which things happened, which is not the order in which they arrived.

Every kind is watched on a connection of its own, so events of different kinds overtake each
other on the way. What is certain:

- Resource versions count the writes of one store. Of two events that both have one, the smaller
  happened first, whatever arrived first.
- An event happened before it arrived, and before any later write arrived. So the time of a watch
  event is at most the earliest arrival among itself and all later versions; that is the time it
  is given here. How much earlier it was is not known: usually milliseconds.
- What has no version (faults, marks, progress lines) is placed by its time: after all that had
  certainly happened by then, before all that arrived later.

This is done in a stream: an event waits until events of ``window`` more seconds were read. One
that comes later than that cannot be put in its place any more; it is given at once and reported,
because then the order around it is not to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Protocol

import msgspec

from oracles.history import BEGIN, END, GAP, WATCH

#: seconds by which an event may arrive after a later one of another kind. Watches of one API
#: server are milliseconds apart, and a cut connection is open again within 2 s of the server
#: answering; the rest is margin for a recorder that got no processor time.
WINDOW = 10.0
#: events that may wait at once: bounds the memory where a window holds very many
LIMIT = 50_000
#: events that are looked at together: sorting is cheap in blocks
_BLOCK = 2_000


class Timed(Protocol):
    """What can be put in order: an :class:`~oracles.history.Event`, or one not decoded yet."""

    @property
    def seq(self) -> int: ...
    @property
    def t(self) -> float: ...
    @property
    def mono(self) -> float: ...
    @property
    def source(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def rv(self) -> int: ...


_by_version = attrgetter("rv")
_by_time = attrgetter("mono")


def ordered[T: Timed](
    events: Iterable[T],
    *,
    window: float = WINDOW,
    limit: int = LIMIT,
    state_until: int = 0,
    late: Callable[[T], None] | None = None,
) -> Iterator[T]:
    """*events*, in the order in which they happened, with times that never decrease.

    Args:
        window: seconds by which events may overtake each other.
        limit: how many events may wait at once; more shorten the window.
        state_until: events up to this ``seq`` are a state that was found, in any order.
        late: called with each event that came too late to be put in its place. Not with those
            found by a list after a gap: the gap says already that the kind was not seen.
    """
    order = _Order(window, limit, state_until, late)
    take = order.take
    waiting: list[T] = []
    for event in events:
        waiting.append(event)
        if len(waiting) == _BLOCK:
            yield from take(waiting)
            waiting = []
    yield from take(waiting)
    yield from order.rest()


class _Order[T: Timed]:
    """What waits for its turn."""

    def __init__(
        self, window: float, limit: int, state_until: int, late: Callable[[T], None] | None
    ) -> None:
        self._window = window
        self._limit = limit
        self._state_until = state_until
        self._late = late
        self._waiting: list[T] = []
        self._sorted = True  # whether what waits arrived in order
        self._last_version = 0  # the largest among what waits or was given
        self._given_version = 0
        self._newest = float("-inf")
        self._given_time = float("-inf")
        self._gaps: dict[str, int] = {}

    def take(self, block: list[T]) -> Iterable[T]:
        """Take a block in order of arrival; what can be given now."""
        version, newest, given = self._last_version, self._newest, self._given_version
        in_order = self._sorted
        for event in block:
            mono = event.mono
            if mono >= newest:
                newest = mono
            else:
                in_order = False
            rv = event.rv
            if rv:
                if rv >= version:
                    version = rv
                else:
                    in_order = False
                    if rv < given:
                        self._too_late(event)
            if event.source == GAP:
                self._gap(event)
        self._last_version, self._newest, self._sorted = version, newest, in_order
        self._waiting += block
        horizon = newest - self._window
        waiting = self._waiting
        if len(waiting) > self._limit:
            horizon = max(horizon, sorted(event.mono for event in waiting)[len(waiting) // 2])
        elif not waiting or waiting[0].mono > horizon:
            return ()
        return self._give(horizon)

    def rest(self) -> Iterable[T]:
        """Everything that still waits."""
        return self._give(float("inf"))

    def _give(self, horizon: float) -> Iterable[T]:
        """What happened up to *horizon*, in order."""
        waiting = self._waiting
        if not self._sorted:
            waiting = self._sort(waiting)
        cut = _first_after(waiting, horizon)
        given, self._waiting = waiting[:cut], waiting[cut:]
        # what was sorted stays sorted; what comes is compared with the last of it
        self._sorted = True
        if given:
            self._given_time = max(self._given_time, given[-1].mono)
            self._given_version = max(self._given_version, max(map(_by_version, given)))
        return given

    def _sort(self, events: list[T]) -> list[T]:
        versioned = sorted((e for e in events if e.rv), key=_by_version)
        timed = sorted((e for e in events if not e.rv), key=_by_time)
        earliest = float("inf")
        for index in range(len(versioned) - 1, -1, -1):
            event = versioned[index]
            if event.mono <= earliest:
                earliest = event.mono
            else:
                versioned[index] = _at(event, earliest)
        merged = _merged(versioned, timed)
        # late events come first, with times that others have passed already
        for index, event in enumerate(merged):
            if event.mono >= self._given_time:
                break
            merged[index] = _at(event, self._given_time)
        return merged

    def _gap(self, event: T) -> None:
        if event.type == BEGIN:
            self._gaps[event.kind] = self._gaps.get(event.kind, 0) + 1
        elif event.type == END and self._gaps.get(event.kind):
            self._gaps[event.kind] -= 1

    def _too_late(self, event: T) -> None:
        if self._late is None or event.source != WATCH or event.seq <= self._state_until:
            return
        if not (self._gaps.get(event.kind) or self._gaps.get("")):
            self._late(event)


def _merged[T: Timed](versioned: list[T], timed: list[T]) -> list[T]:
    """Both, by time; what has a version first where times are equal."""
    if not timed:
        return versioned
    merged: list[T] = []
    start = 0
    for event in timed:
        end = _first_after(versioned, event.mono, start)
        merged += versioned[start:end]
        merged.append(event)
        start = end
    merged += versioned[start:]
    return merged


def _first_after[T: Timed](events: list[T], time: float, start: int = 0) -> int:
    """Index of the first of *events* (by time) that happened after *time*."""
    end = len(events)
    while start < end:
        middle = (start + end) // 2
        if events[middle].mono <= time:
            start = middle + 1
        else:
            end = middle
    return start


def _at[T: Timed](event: T, mono: float) -> T:
    """The event at another time."""
    return msgspec.structs.replace(event, t=event.t + (mono - event.mono), mono=mono)  # type: ignore[type-var]
