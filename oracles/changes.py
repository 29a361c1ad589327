"""What changed from one event to the next, in words: a history as people read it.

Only what says something of the system under test: bound, phases, readiness, restarts, conditions,
counts, deletions, faults, training that starts or changes its world. A heartbeat is nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from oracles.history import ADDED, DELETED, FAULT, GAP, MARK, PROGRESS, WATCH, Event

Object = Mapping[str, Any]

#: progress events that are worth a line each; steps are not
_TOLD = frozenset({"start", "resume", "signal", "end", "error"})
_SHORT = 160


class Change(NamedTuple):
    """Something that changed.

    Attributes:
        what: ``phase Running``, ``bound to n1``; no numbers of events, no times.
        before: what it was, for a value that changed; else "".
    """

    seq: int
    mono: float
    source: str
    kind: str
    namespace: str
    name: str
    what: str
    before: str = ""

    @property
    def subject(self) -> str:
        """``Pod ns/name``."""
        return f"{self.kind} {'/'.join(filter(None, (self.namespace, self.name)))}".strip()

    def __str__(self) -> str:
        return f"{self.what} (was {self.before})" if self.before else self.what


def changes(
    events: Iterable[Event], *, started: float = 0.0, state_until: int = 0
) -> Iterator[Change]:
    """All changes, in the order of *events*.

    Args:
        started: wall time of the recorder's start: objects made before it were there already.
        state_until: the same, by ``seq``.
    """
    seen: dict[str, dict[str, str]] = {}
    worlds: dict[str, object] = {}
    for event in events:
        if event.source == WATCH:
            yield from _watched(event, seen, started, state_until)
        elif event.source == PROGRESS:
            if what := _progress(event, worlds):
                yield _change(event, what, kind="training")
        else:
            yield _change(event, _said(event), kind=event.kind or event.source)


def _watched(
    event: Event, seen: dict[str, dict[str, str]], started: float, state_until: int
) -> Iterator[Change]:
    if event.type == DELETED:
        if seen.pop(event.uid, None) is not None or event.kind != "Event":
            yield _change(event, "gone")
        return
    if event.kind == "Event":
        if (event.type != ADDED or not _old(event, started)) and event.seq > state_until:
            yield _happening(event)
        return
    before = seen.get(event.uid)
    try:
        now = _facts(event)
    except (AttributeError, TypeError, KeyError, ValueError):
        now = {"of no known form": ""}  # damaged, or of a kind that we do not know
    seen[event.uid] = now
    if before is None:
        if event.seq <= state_until or _old(event, started):
            yield _change(event, "there" + "".join(f", {_word(*item)}" for item in now.items()))
            return
        yield _change(event, "created")
        before = {}
    for key, value in now.items():
        if before.get(key) != value:
            yield _change(event, _word(key, value), before=before.get(key, ""))
    for key in (key for key in before if key not in now):
        yield _change(event, _over(key), before=before[key])


def _change(event: Event, what: str, *, before: str = "", kind: str = "") -> Change:
    return Change(
        event.seq,
        event.mono,
        event.source,
        kind or event.kind,
        event.namespace,
        event.name,
        what,
        before,
    )


def _word(key: str, value: str) -> str:
    return f"{key} {value}".strip()


def _over(key: str) -> str:
    """That it is so no more. Names that end with a colon are sentences, others are things."""
    if key == "cordoned":
        return "uncordoned"
    return f"{key} over" if key.endswith(":") else f"no {key}"


def _old(event: Event, started: float) -> bool:
    made = event.object.get("metadata", {}).get("creationTimestamp")
    # the API's times have no fractions
    return bool(made) and datetime.fromisoformat(made).timestamp() < started - 1


def _happening(event: Event) -> Change:
    about = event.object.get("involvedObject") or event.object.get("regarding") or {}
    text = str(event.object.get("message") or event.object.get("note") or "")
    what = f"event {event.object.get('reason', '')}: {' '.join(text.split())[:_SHORT]}"
    return Change(
        event.seq,
        event.mono,
        event.source,
        str(about.get("kind", "")),
        str(about.get("namespace", "")),
        str(about.get("name", "")),
        what,
    )


def _said(event: Event) -> str:
    about = {k: v for k, v in event.object.items() if k != "apiVersion"}
    words = ", ".join(f"{key}={_brief(value)}" for key, value in about.items())
    prefix = {FAULT: "fault", MARK: "mark", GAP: "gap"}[event.source]
    return f"{prefix} {event.type}" + (f": {words}" if words else "")


def _brief(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)[:_SHORT]


def _progress(event: Event, worlds: dict[str, object]) -> str:
    line = event.object
    process = f"{event.uid}/{line.get('pid')}/{line.get('restart')}"
    known, world = worlds.get(process), line.get("generation")  # None before there is a group
    worlds[process] = world
    if event.type not in _TOLD and known in (None, world):
        return ""
    words = [event.type if event.type in _TOLD else "world changed"]
    keys = ("rank", "world", "restart", "step", "signal", "code")
    words += [f"{key} {line[key]}" for key in keys if line.get(key) is not None]
    return " ".join(words)


# what is told of an object ---------------------------------------------------------------------


def _facts(event: Event) -> dict[str, str]:
    """What may change, by name, in the order in which it is told."""
    item = event.object
    meta = item.get("metadata") or {}
    facts: dict[str, str] = {}
    if meta.get("deletionTimestamp"):
        facts["told to go"] = ""
    tell = _TELLERS.get(event.kind)
    if tell is not None:
        tell(item, facts)
    else:
        _anything(item, facts)
    return facts


def _pod(item: Object, facts: dict[str, str]) -> None:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    if spec.get("nodeName"):
        facts["bound to"] = spec["nodeName"]
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            facts["not scheduled:"] = str(condition.get("reason", ""))
        if condition.get("type") == "Ready":
            facts["ready"] = str(condition.get("status"))
    if status.get("phase"):
        facts["phase"] = status["phase"]
    if status.get("reason"):
        facts["reason"] = status["reason"]
    for container in status.get("containerStatuses") or ():
        name = container.get("name")
        if container.get("restartCount"):
            facts[f"restarts of {name}"] = str(container["restartCount"])
        state = container.get("state") or {}
        if (ended := state.get("terminated")) is not None:
            facts[f"{name} ended:"] = f"{ended.get('exitCode')} {ended.get('reason', '')}".strip()
        elif (waiting := state.get("waiting")) is not None:
            facts[f"{name} waits:"] = str(waiting.get("reason", ""))


def _node(item: Object, facts: dict[str, str]) -> None:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    _conditions(status, facts)
    if spec.get("unschedulable"):
        facts["cordoned"] = ""
    for taint in spec.get("taints") or ():
        facts[f"taint {taint.get('key')}"] = str(taint.get("effect"))
    for resource, amount in (status.get("allocatable") or {}).items():
        if "/" in resource:
            facts[f"allocatable {resource}"] = str(amount)


def _autoscaler(item: Object, facts: dict[str, str]) -> None:
    for part, fields in (
        ("spec", ("minReplicas", "maxReplicas")),
        ("status", ("currentReplicas", "desiredReplicas")),
    ):
        for field in fields:
            if (value := (item.get(part) or {}).get(field)) is not None:
                facts[field] = str(value)


def _namespace(item: Object, facts: dict[str, str]) -> None:
    if phase := (item.get("status") or {}).get("phase"):
        facts["phase"] = phase


def _anything(item: Object, facts: dict[str, str]) -> None:
    """Jobs, groups, queues: what their specs ask for and their status says."""
    spec, status = item.get("spec") or {}, item.get("status") or {}
    for field, value in spec.items():
        if field.endswith("ReplicaSpecs") and isinstance(value, dict):
            for role, replicas in value.items():
                facts[f"{role} asked"] = str((replicas or {}).get("replicas", 1))
    for field in ("minMember", "replicas", "suspend"):
        if spec.get(field) is not None:
            facts[field] = str(spec[field])
    if (policy := spec.get("runPolicy") or {}).get("suspend") is not None:
        facts["suspend"] = str(policy["suspend"])
    _conditions(status, facts)
    for role, counts in (status.get("replicaStatuses") or {}).items():
        for word in ("active", "succeeded", "failed"):
            if (counts or {}).get(word):
                facts[f"{role} {word}"] = str(counts[word])
    for field, value in status.items():
        if isinstance(value, str | int | float) and field not in _NOISY:
            facts[field] = str(value)


_NOISY = frozenset({"lastReconcileTime", "observedGeneration", "scheduleStartTime"})


def _conditions(status: Object, facts: dict[str, str]) -> None:
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        facts[f"condition {condition.get('type')}"] = str(condition.get("status"))


def _nothing(item: Object, facts: dict[str, str]) -> None:
    pass


_TELLERS = {
    "Pod": _pod,
    "Node": _node,
    "HorizontalPodAutoscaler": _autoscaler,
    "Namespace": _namespace,
    "Service": _nothing,
    "ConfigMap": _nothing,
    "CustomResourceDefinition": _nothing,
}
