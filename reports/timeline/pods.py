"""Lanes of pods: waiting, bound, running, ready, gone; and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oracles import relations
from oracles.history import DELETED, MODIFIED, Event
from reports.timeline.changes import dicts, exit_words
from reports.timeline.families import subject
from reports.timeline.model import Moment, Segment, Tick
from reports.timeline.track import Track, natural

#: states of a pod, from the bottom of the chart upwards: first those that hold a place on a node
SERIES = ("ready", "running", "bound", "leaving", "waiting", "succeeded", "failed")
#: how many of them are bound: a node is named, and the phase is not terminal
BOUND = 4

_ROLES = ("master", "chief", "launcher", "ps", "evaluator", "worker")
_ROLE_LABELS = (relations.REPLICA_TYPE, "jobset.sigs.k8s.io/replicatedjob-name")


@dataclass(frozen=True)
class Stay:
    """A pod's time on a node, in which it holds GPUs there."""

    node: str
    gpus: int
    segment: Segment


def state(pod: Mapping[str, Any]) -> tuple[str, str]:
    """The state of a pod, and what is written on it."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    phase, node = status.get("phase", "Pending"), str(spec.get("nodeName") or "")
    if phase == "Succeeded":
        return "succeeded", node
    if phase == "Failed":
        return "failed", str(status.get("reason") or _exit(status) or node)
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return ("leaving" if node else "waiting"), node or "deleted while waiting"
    if not node:
        return "waiting", str(_condition(status, "PodScheduled").get("reason") or "")
    if _condition(status, "Ready").get("status") == "True":
        return "ready", node
    return ("running" if phase == "Running" else "bound"), node


class Pod:
    """One pod by name. A pod that replaces another under the same name goes on in its lane."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        self.id = subject("Pod", namespace, name)
        self.main = Track()
        self.ticks: list[Tick] = []
        self.moments: list[Moment] = []
        self.uids: list[str] = []
        self.node = ""
        self.labels: Mapping[str, str] = {}
        self.asks = 0
        self._restarts = 0
        self._stay = Track()

    def feed(self, event: Event, x: float, changed: str) -> None:
        """Take a version of the pod, and what changed in words."""
        if event.type == DELETED:
            self.main.end(x, event.seq)
            self._stay.end(x, event.seq)
            return
        pod = event.object
        if event.uid and event.uid not in self.uids:
            self.uids.append(event.uid)
            # restarts of a pod that was there before the history began are not news
            self._restarts = _restarts(pod)
            if len(self.uids) > 1:
                text = f"pod number {len(self.uids)} of this name (uid {event.uid})"
                self.ticks.append(Tick(x, "replaced", text, event.seq))
                self._say(event, x, "info", "made again: a new pod of the same name")
        self.labels = (pod.get("metadata") or {}).get("labels") or self.labels
        self.asks = relations.gpus(pod) or self.asks
        now, label = state(pod)
        self.node = str((pod.get("spec") or {}).get("nodeName") or "")
        if now in SERIES[:BOUND]:
            self._stay.set(x, self.node, "", event.seq)
        else:
            self._stay.end(x, event.seq)
        before = self.main.state
        new = self.main.set(x, now, label, event.seq)
        if now == "failed" and before != "failed":
            self._say(event, x, "bad", f"failed: {label}")
        restarted = self._containers(event, x)
        if changed and not new and not restarted and event.type == MODIFIED:
            self.ticks.append(Tick(x, "change", changed, event.seq))

    def _containers(self, event: Event, x: float) -> bool:
        statuses = dicts((event.object.get("status") or {}).get("containerStatuses"))
        restarts = _restarts(event.object)
        if restarts <= self._restarts:
            return False
        self._restarts = restarts
        last = next(
            (
                exit_words(each["lastState"]["terminated"])
                for each in statuses
                if (each.get("lastState") or {}).get("terminated")
            ),
            "exit unknown",
        )
        text = f"container started again (restart {restarts}) after {last}"
        self.ticks.append(Tick(x, "agent", text, event.seq))
        self._say(event, x, "info", text)
        return True

    def _say(self, event: Event, x: float, tone: str, text: str) -> None:
        self.moments.append(Moment(x, tone, self.id, text, event.seq, self.id))

    def stays(self, until: float) -> list[Stay]:
        """Its times on nodes."""
        return [Stay(each.state, self.asks, each) for each in self._stay.segments(until)]

    def order(self) -> tuple[Any, ...]:
        """By role (parameter servers and chiefs first), then by number."""
        role = next((self.labels[key] for key in _ROLE_LABELS if self.labels.get(key)), "").lower()
        place = _ROLES.index(role) if role in _ROLES else len(_ROLES)
        return (place, role, natural(self.name))


def _condition(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    conditions = dicts(status.get("conditions"))
    return next((each for each in conditions if each.get("type") == type_), {})


def _exit(status: Mapping[str, Any]) -> str:
    for each in dicts(status.get("containerStatuses")):
        if terminated := (each.get("state") or {}).get("terminated"):
            return exit_words(terminated)
    return ""


def _restarts(pod: Mapping[str, Any]) -> int:
    statuses = dicts((pod.get("status") or {}).get("containerStatuses"))
    return sum(int(each.get("restartCount") or 0) for each in statuses)
