"""Lanes of group objects: phase, minimum and how many are scheduled, by product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles import relations
from oracles.history import DELETED, MODIFIED, Event
from reports.timeline.changes import dicts
from reports.timeline.families import subject
from reports.timeline.model import Lane, Moment, Row, Tick
from reports.timeline.track import Track

#: PodGroup: coscheduling, Volcano and Kubernetes' own; Workload: Kueue; the budget: kube-batch
KINDS = frozenset({"PodGroup", "Workload", "PodDisruptionBudget"})
NO_PHASE = "no phase"


def minimum(group: Mapping[str, Any]) -> int | None:
    """The size below which the gang may not run."""
    spec = group.get("spec") or {}
    named = relations.minimum(group) or spec.get("minAvailable")
    if isinstance(named, int):
        return named
    pod_sets = [each.get("count") for each in dicts(spec.get("podSets"))]
    return sum(pod_sets) if pod_sets and all(isinstance(n, int) for n in pod_sets) else None


def phase(group: Mapping[str, Any]) -> str:
    """Its phase; where a product has only conditions, the last one that holds."""
    status = group.get("status") or {}
    named = status.get("phase")
    if named:
        return str(named["phase"] if isinstance(named, Mapping) else named)
    holding = [
        str(each.get("type"))
        for each in dicts(status.get("conditions"))
        if each.get("status") == "True"
    ]
    return holding[-1] if holding else NO_PHASE


def scheduled(group: Mapping[str, Any]) -> int | None:
    """How many members its status says are scheduled."""
    status = group.get("status") or {}
    for key in ("scheduled", "running"):
        if isinstance(status.get(key), int):
            return int(status[key])
    return None


class Gang:
    """One group object by name."""

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        self.kind, self.namespace, self.name = kind, namespace, name
        self.id = subject(kind, namespace, name)
        self._track = Track()
        self._ticks: list[Tick] = []
        self.minimums: list[tuple[float, float]] = []
        self.moments: list[Moment] = []
        self._uids: set[str] = set()

    def feed(self, event: Event, x: float, changed: str) -> None:
        """Take a version of the group, and what changed in words."""
        if event.type == DELETED:
            self._track.end(x, event.seq)
            self._say(event, x, "deleted")
            return
        if event.uid not in self._uids:
            self._say(event, x, "made again" if self._uids else "made")
            if self._uids:
                self._ticks.append(Tick(x, "replaced", "made again under its name", event.seq))
            self._uids.add(event.uid)
        now, least, bound = phase(event.object), minimum(event.object), scheduled(event.object)
        if least is not None and (not self.minimums or self.minimums[-1][1] != least):
            if self.minimums:
                self._say(event, x, f"minimum {self.minimums[-1][1]:g} → {least}")
            self.minimums.append((x, float(least)))
        if self._track.state not in (None, NO_PHASE, now):
            self._say(event, x, f"{self._track.state} → {now}")
        parts = [
            now,
            f"min {least}" if least is not None else "",
            f"scheduled {bound}" if bound is not None else "",
        ]
        new = self._track.set(x, now, " · ".join(part for part in parts if part), event.seq)
        if changed and not new and event.type == MODIFIED:
            self._ticks.append(Tick(x, "change", changed, event.seq))

    def _say(self, event: Event, x: float, text: str) -> None:
        self.moments.append(Moment(x, "info", self.id, text, event.seq, self.id))

    def lane(self, until: float) -> Lane:
        """Its lane."""
        return Lane(
            self.id,
            self.kind,
            f"{self.kind} {self.name}",
            self.id,
            rows=(Row("bar", self._track.segments(until)),),
            ticks=tuple(self._ticks),
        )
