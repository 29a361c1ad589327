"""Lanes of jobs: their conditions over time, and what they sum up to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles.history import ADDED, DELETED, MODIFIED, Event
from reports.timeline.changes import dicts
from reports.timeline.families import subject
from reports.timeline.model import Lane, Moment, Row, Segment, Tick
from reports.timeline.track import Track

#: conditions by weight: the first one that holds is what a job is said to be
_WEIGHT = ("Failed", "Succeeded", "Complete", "Finished", "Suspended", "Restarting", "Running")
_TONES = {"Failed": "bad", "Succeeded": "good", "Complete": "good"}
#: in the order of a job's life
_ORDER = ("Created", "Running", "Restarting", "Suspended", "Succeeded", "Complete", "Failed")


class Job:
    """One job by name; a job that was made again under its name goes on in the same lane."""

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        self.kind, self.namespace, self.name = kind, namespace, name
        self.id = subject(kind, namespace, name)
        self._conditions: dict[str, Track] = {}
        self._sum = Track()
        self._ticks: list[Tick] = []
        self.moments: list[Moment] = []

    def feed(self, event: Event, x: float, changed: str) -> None:
        """Take a version of the job, and what changed in words."""
        if event.type == DELETED:
            for track in (*self._conditions.values(), self._sum):
                track.end(x, event.seq)
            self._say(event, x, "info", "deleted")
            return
        if event.type == ADDED:
            self._say(event, x, "info", "made")
        turned = False
        holding: set[str] = set()
        for condition in dicts((event.object.get("status") or {}).get("conditions")):
            turned |= self._condition(event, x, condition, holding)
        for type_, track in self._conditions.items():
            # one that is gone from the list holds no longer
            if type_ not in holding and track.state:
                track.end(x, event.seq)
                if not turned:
                    self._say(event, x, "info", f"no longer {type_}")
                turned = True
        now = next((type_ for type_ in _WEIGHT if type_ in holding), None)
        self._sum.set(x, now or next(iter(holding), "submitted"), "", event.seq)
        if changed and not turned and event.type == MODIFIED:
            self._ticks.append(Tick(x, "change", changed, event.seq))

    def _condition(
        self, event: Event, x: float, condition: Mapping[str, Any], holding: set[str]
    ) -> bool:
        type_ = str(condition.get("type", "?"))
        if condition.get("status") != "True":
            return False
        holding.add(type_)
        track = self._conditions.setdefault(type_, Track())
        new = track.state is None
        if new:
            reason = str(condition.get("reason") or "")
            # most reasons only say the condition again: PyTorchJobRunning
            track.set(x, type_, "" if reason.endswith(type_) else reason, event.seq)
            why = str(condition.get("message") or condition.get("reason") or "")
            tone = _TONES.get(type_, "info")
            self._say(event, x, tone, f"{type_}: {why}" if why else type_)
        return new

    def _say(self, event: Event, x: float, tone: str, text: str) -> None:
        self.moments.append(Moment(x, tone, self.id, text, event.seq, self.id))

    def summary(self, until: float) -> tuple[Segment, ...]:
        """One row: the weightiest condition at each moment."""
        return self._sum.segments(until)

    def lane(self, until: float) -> Lane:
        """A row for each condition that ever held, in the order of a job's life."""
        known = [type_ for type_ in _ORDER if type_ in self._conditions]
        others = [type_ for type_ in self._conditions if type_ not in _ORDER]
        rows = tuple(
            Row("thin", self._conditions[type_].segments(until), type_) for type_ in known + others
        )
        return Lane(
            self.id,
            self.kind,
            "conditions",
            self.id,
            rows=rows or (Row("thin", self._sum.segments(until), "no condition"),),
            ticks=tuple(self._ticks),
        )
