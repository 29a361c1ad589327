"""The part of a cluster's history that is about one test, so that it can be judged by itself.

It holds, between the test's start and end: everything in its namespaces and in those of the
operator and the scheduler, everything that has no namespace (nodes), faults, gaps, its marks and
progress lines. Of other namespaces it holds the pods that ask for GPUs: they take room on nodes
that the test's own pods are bound to, but are no business of its otherwise (:func:`foreign`).
Before them comes the state at the start: each object that was there, as ADDED, with
the ``seq`` and times of the event that last showed it, and the gaps that were open.

``facts.slice`` of its header: ``test``, ``namespaces``, ``start`` and ``end`` (``seq``),
``started`` (mono of the start), and ``state_until``, the last ``seq`` that is state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from oracles import relations
from oracles.history import (
    ADDED,
    BEGIN,
    DELETED,
    END,
    FAULT,
    GAP,
    MARK,
    PROGRESS,
    TEST_END,
    TEST_START,
    WATCH,
    Event,
)
from oracles.reading import Damage, History, Rough

_GPU = relations.GPU.encode()
#: kinds that tell of what happened, not of what is there: no part of a state
_HAPPENINGS = frozenset({"Event"})


@dataclass(frozen=True)
class Slice:
    """What was cut.

    Attributes:
        state, events: how many events of either part it holds.
        damage: what was wrong with the whole history up to its end.
    """

    path: Path
    state: int
    events: int
    damage: tuple[Damage, ...]


def cut(
    history: Path,
    into: Path,
    *,
    test: str,
    namespaces: Iterable[str],
    start: int,
    end: int | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Slice:
    """Write the part of *history* from event *start* to event *end* that is about a test.

    Args:
        namespaces: the test's, the operator's, the scheduler's.
        end: None for the end of the file.
        facts: what else there is to know of the test; in the slice's header.

    Raises:
        HistoryError: *history* cannot be read.
    """
    whole = History(history)
    wanted = _Wanted(test, frozenset(namespaces))
    state = _State()
    about: dict[str, Any] = {
        "test": test,
        "namespaces": sorted(wanted.namespaces),
        "start": start,
        "end": end,
        "state_until": start - 1,
    }
    encode = msgspec.json.Encoder().encode
    into.parent.mkdir(parents=True, exist_ok=True)
    found = inside = 0
    with into.open("wb") as file:

        def begin(started: float) -> int:
            known = {**whole.header.facts, **(facts or {}), "slice": {**about, "started": started}}
            file.write(encode(msgspec.structs.replace(whole.header, facts=known)) + b"\n")
            events = state.events()
            file.writelines(encode(event) + b"\n" for event in events)
            return len(events)

        begun = False
        for event in whole.rough():
            if not begun and event.seq >= start:
                begun = True
                found = begin(event.mono)
            if end is not None and event.seq > end:
                break
            if wanted(event):
                event.line = 0
                if not begun:
                    state.take(event)
                else:
                    inside += 1
                    file.write(encode(event) + b"\n")
        if not begun:
            found = begin(whole.last)
    return Slice(into, found, inside, tuple(whole.damage))


def bounds(history: History, test: str) -> tuple[int, int | None] | None:
    """Where a test starts and ends, by its marks; no end where its process died.

    None when it never started. Of a test that was run several times: the last.
    """
    start, end = 0, None
    for event in history.rough():
        if event.source == MARK and event.name == test:
            if event.type == TEST_START:
                start, end = event.seq, None
            elif event.type == TEST_END:
                end = event.seq
    return (start, end) if start else None


def foreign(event: Event, part: Mapping[str, Any]) -> bool:
    """Whether an event of a slice is about another test's pod. *part*: ``History.part``."""
    own = part.get("namespaces")
    return bool(own and event.namespace and event.namespace not in own)


class _State:
    """What is there, after the events that were taken."""

    def __init__(self) -> None:
        self._live: dict[str, Rough] = {}
        self._gaps: dict[str, list[Rough]] = {}

    def take(self, event: Rough) -> None:
        if event.source == WATCH:
            if event.type == DELETED:
                self._live.pop(event.uid, None)
            elif event.kind not in _HAPPENINGS:
                self._live[event.uid] = event
        elif event.source == GAP:
            if event.type == BEGIN:
                self._gaps.setdefault(event.kind, []).append(event)
            elif event.type == END and self._gaps.get(event.kind):
                self._gaps[event.kind].pop()

    def events(self) -> list[Rough]:
        """Its objects, each as ADDED, and the gaps that are open; by ``seq``."""
        for event in self._live.values():
            event.type = ADDED
        gaps = [gap for several in self._gaps.values() for gap in several]
        return sorted([*self._live.values(), *gaps], key=lambda event: event.seq)


class _Wanted:
    """Which events are about a test."""

    def __init__(self, test: str, namespaces: frozenset[str]) -> None:
        self.test = test
        self.namespaces = namespaces
        self._takers: set[str] = set()  # uids of others' pods that ask for GPUs

    def __call__(self, event: Rough) -> bool:
        if event.source == GAP:
            return True
        if event.source == MARK and event.name and event.name != self.test:
            return False
        if event.source == WATCH and event.kind == "Namespace":
            return event.name in self.namespaces
        if not event.namespace or event.namespace in self.namespaces:
            return event.source in (WATCH, PROGRESS, FAULT, MARK)
        return event.source == WATCH and event.kind == "Pod" and self._takes(event)

    def _takes(self, pod: Rough) -> bool:
        """Whether it asks for GPUs: looked for in the text, as many pods do not."""
        if pod.uid in self._takers:  # what is told of its end may be its name only
            return True
        if _GPU not in bytes(pod.object):
            return False
        self._takers.add(pod.uid)
        return True
