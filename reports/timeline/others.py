"""Lanes of everything else: one object each where there are few, a count where there are many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from oracles.history import ADDED, DELETED, MODIFIED, Event
from reports.timeline.families import subject
from reports.timeline.model import Chart, Lane, Row, Tick
from reports.timeline.track import Track, counts, natural

#: so many objects of a kind in one group get lanes of their own
_FEW = 2


def label(kind: str, found: Mapping[str, Any]) -> str:
    """What is written on the bar of an object."""
    spec, status = found.get("spec") or {}, found.get("status") or {}
    if kind == "HorizontalPodAutoscaler":
        bounds = f"{spec.get('minReplicas', 1)} to {spec.get('maxReplicas', '?')}"
        wanted, now = status.get("desiredReplicas"), status.get("currentReplicas")
        return f"wants {wanted}, has {now} (of {bounds})"
    if kind in ("Deployment", "StatefulSet"):
        return f"{status.get('readyReplicas') or 0} of {spec.get('replicas', 1)} ready"
    named = status.get("phase") or status.get("state")
    return str(named) if isinstance(named, str) else ""


class Other:
    """One object of a kind that has no lane of its own making."""

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        self.kind, self.namespace, self.name = kind, namespace, name
        self.id = subject(kind, namespace, name)
        self.track = Track()
        self.ticks: list[Tick] = []
        self.births: list[Tick] = []

    def feed(self, event: Event, x: float, changed: str) -> None:
        """Take a version of the object, and what changed in words."""
        if event.type == DELETED:
            self.track.end(x, event.seq)
            return
        if event.type == ADDED:
            self.births.append(Tick(x, "replaced", f"{self.name} made", event.seq))
        new = self.track.set(x, "there", label(self.kind, event.object), event.seq)
        if changed and not new and event.type == MODIFIED:
            self.ticks.append(Tick(x, "change", changed, event.seq))


def lanes(found: Iterable[Other], group: str, until: float) -> list[Lane]:
    """Lanes of the objects of one group, by kind."""
    kinds: dict[str, list[Other]] = defaultdict(list)
    for other in found:
        kinds[other.kind].append(other)
    made = []
    for kind, objects in sorted(kinds.items()):
        objects.sort(key=lambda each: natural(each.name))
        if len(objects) <= _FEW:
            made += [_lane(each, until) for each in objects]
            continue
        tracks = [each.track.segments(until) for each in objects]
        made.append(
            Lane(
                f"count {kind} {group}",
                "count",
                f"{kind}s",
                f"how many of {len(objects)} {kind} objects there are",
                note=f"{len(objects)} names",
                chart=Chart(("there",), counts(tracks, ("there",))),
            )
        )
    return made


def _lane(other: Other, until: float) -> Lane:
    # the first time is the bar's own beginning
    again = other.births[1:]
    return Lane(
        other.id,
        other.kind,
        f"{other.kind} {other.name}",
        other.id,
        rows=(Row("bar", other.track.segments(until)),),
        ticks=tuple(sorted([*other.ticks, *again], key=lambda tick: tick.x)),
    )
