"""Keeps a page small: what is left out when a history is long, and that this is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from oracles.history import Event
from reports.timeline.model import Group, Lane, Moment, Note, Span

#: notes that are kept while reading; later ones only when they begin or end something
_MOST_NOTES = 60_000
#: small changes (marks without a change of state) on a page, and per lane
_MOST_CHANGES, _MOST_PER_LANE = 6_000, 400
_MOST_MOMENTS = 400
#: lanes that are open at first, when they are in several groups of more than a few
_MOST_OPEN, _FEW_LANES = 300, 8
_SMALL = frozenset({"change", "event"})
_RANK = {"bad": 0, "known": 0, "fault": 1, "gap": 1, "good": 2, "info": 3}


class Notes:
    """Events in words, by number."""

    def __init__(self, cited: frozenset[int]) -> None:
        self.cited = cited
        self._notes: dict[int, Note] = {}

    def add(self, event: Event, x: float, subject: str, text: str) -> None:
        """Keep an event in words."""
        full = len(self._notes) >= _MOST_NOTES
        if full and event.type == "MODIFIED" and event.seq not in self.cited:
            return
        self._notes[event.seq] = Note(x, event.type, subject, event.rv, text)

    def x(self, seq: int) -> float | None:
        """When an event was, if it is known."""
        note = self._notes.get(seq)
        return note.x if note else None

    def kept(
        self,
        groups: Iterable[Group],
        moments: Iterable[Moment],
        *spans: Iterable[Span],
    ) -> dict[int, Note]:
        """The notes of all events that the page speaks of."""
        wanted = set(self.cited)
        wanted.update(moment.event for moment in moments)
        wanted.update(span.event for each in spans for span in each)
        for lane in (lane for group in groups for lane in group.lanes):
            wanted.update(tick.event for tick in lane.ticks)
            for row in lane.rows:
                for segment in row.segments:
                    wanted.update((segment.began, segment.ended))
        return {seq: self._notes[seq] for seq in sorted(wanted) if seq in self._notes}


def slim(groups: Sequence[Group], notes: Notes) -> tuple[tuple[Group, ...], int]:
    """The groups with as many small changes as a page can hold, and how many were left out."""
    total = sum(_small(lane) for group in groups for lane in group.lanes)
    most = _MOST_PER_LANE
    if total > _MOST_CHANGES:
        lanes = sum(1 for group in groups for lane in group.lanes if _small(lane))
        most = max(4, _MOST_CHANGES // max(lanes, 1))
    omitted, made = 0, []
    for group in groups:
        lanes_ = []
        for lane in group.lanes:
            over = _small(lane) - most
            if over > 0:
                lane = _thin(lane, most, notes.cited)
                omitted += over
            lanes_.append(lane)
        made.append(replace(group, lanes=tuple(lanes_)))
    return tuple(made), omitted


def folded(groups: Sequence[Group], wanted: Iterable[str]) -> tuple[Group, ...]:
    """Where there are very many lanes in several groups, only those with a *wanted* lane are open.

    A closed group still has its line, which sums it up.
    """
    found = set(wanted)
    many = [group for group in groups if group.open and len(group.lanes) > _FEW_LANES]
    if len(many) < 2 or sum(len(group.lanes) for group in many) <= _MOST_OPEN:
        return tuple(groups)
    close = {group.id for group in many if not any(lane.id in found for lane in group.lanes)}
    return tuple(replace(group, open=group.open and group.id not in close) for group in groups)


def moments(found: Iterable[Moment]) -> tuple[Moment, ...]:
    """By time; of too many, those that matter most."""
    ordered = sorted(found, key=lambda moment: moment.x)
    if len(ordered) > _MOST_MOMENTS:
        best = sorted(ordered, key=lambda moment: _RANK.get(moment.tone, 3))[:_MOST_MOMENTS]
        ordered = sorted(best, key=lambda moment: moment.x)
    return tuple(ordered)


def _small(lane: Lane) -> int:
    return sum(tick.kind in _SMALL for tick in lane.ticks)


def _thin(lane: Lane, most: int, cited: frozenset[int]) -> Lane:
    """Every n-th small change, so that what is left still shows where they were."""
    every = _small(lane) / most
    kept, place, due = [], 0, 0.0
    for tick in lane.ticks:
        if tick.kind in _SMALL:
            place += 1
            if place - 1 < due and tick.event not in cited:
                continue
            due += every
        kept.append(tick)
    return replace(lane, ticks=tuple(kept))
