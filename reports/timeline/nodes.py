"""Lanes of nodes: ready or not, cordoned, their GPUs and how many of them are taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oracles import relations
from oracles.history import DELETED, MODIFIED, Event
from reports.timeline.changes import dicts
from reports.timeline.families import subject
from reports.timeline.model import Chart, Lane, Moment, Row, Tick
from reports.timeline.pods import Stay
from reports.timeline.track import Track


def state(node: Mapping[str, Any]) -> str:
    """Ready, NotReady or Unknown; cordoned where it is Ready but takes no pods."""
    conditions = dicts((node.get("status") or {}).get("conditions"))
    ready = next((each.get("status") for each in conditions if each.get("type") == "Ready"), None)
    if ready != "True":
        return "NotReady" if ready == "False" else "Unknown"
    return "cordoned" if (node.get("spec") or {}).get("unschedulable") else "Ready"


def gpus(node: Mapping[str, Any]) -> int:
    """GPUs that a node offers."""
    status = node.get("status") or {}
    offered = status.get("allocatable") or status.get("capacity") or {}
    return relations.quantity(offered.get(relations.GPU, 0))


class Node:
    """One node."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.id = subject("Node", "", name)
        self._track = Track()
        self._ticks: list[Tick] = []
        self._gpus: list[tuple[float, int]] = []
        self._roles = ""
        self.moments: list[Moment] = []

    def feed(self, event: Event, x: float, changed: str) -> None:
        """Take a version of the node, and what changed in words."""
        if event.type == DELETED:
            self._track.end(x, event.seq)
            self._say(event, x, "bad", "gone")
            return
        labels = (event.object.get("metadata") or {}).get("labels") or {}
        prefix = "node-role.kubernetes.io/"
        self._roles = ", ".join(
            key.removeprefix(prefix) for key in labels if key.startswith(prefix)
        )
        now, before = state(event.object), self._track.state
        if before and now != before:
            self._say(event, x, "good" if now == "Ready" else "bad", f"{before} → {now}")
        count = gpus(event.object)
        moved = bool(self._gpus) and self._gpus[-1][1] != count
        if moved:
            text = f"GPUs {self._gpus[-1][1]:g} → {count:g}"
            self._ticks.append(Tick(x, "gpus", text, event.seq))
            self._say(event, x, "bad" if count < self._gpus[-1][1] else "good", text)
        if moved or not self._gpus:
            self._gpus.append((x, count))
        new = self._track.set(x, now, now, event.seq)
        if changed and not new and not moved and event.type == MODIFIED:
            self._ticks.append(Tick(x, "change", changed, event.seq))

    def _say(self, event: Event, x: float, tone: str, text: str) -> None:
        self.moments.append(Moment(x, tone, self.id, text, event.seq, self.id))

    def lane(self, stays: Iterable[Stay], until: float) -> Lane:
        """Its lane: a thin row for its state, under it the GPUs taken by the pods bound to it."""
        deltas: dict[float, float] = {}
        for stay in stays:
            for x, change in ((stay.segment.start, stay.gpus), (stay.segment.end, -stay.gpus)):
                deltas[round(x, 3)] = deltas.get(round(x, 3), 0.0) + change
        points, taken = [], 0.0
        for x in sorted(deltas):
            if deltas[x]:
                taken += deltas[x]
                points.append((x, taken))
        chart = None
        if points or any(count for _, count in self._gpus):
            chart = Chart(
                ("gpus taken",), tuple(points), tuple(self._gpus), "GPUs of the node", 1, False
            )
        has = self._gpus[-1][1] if self._gpus else 0
        return Lane(
            self.id,
            "Node",
            self.name,
            self.id,
            note=" · ".join(part for part in (self._roles, f"{has} GPUs" if has else "") if part),
            rows=(Row("thin", self._track.segments(until)),),
            ticks=tuple(self._ticks),
            chart=chart,
        )
