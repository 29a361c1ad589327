"""Why jobs of a storm failed, from its history: whether one of their pods was just leaving."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oracles.history import DELETED, Event
from oracles.known import KnownFault, known
from oracles.reading import History, HistoryError
from oracles.relations import JOB_NAME

#: case of the behaviours of which a storm shows a published fault (``oracles/known.yaml``)
CASE = "storm"


#: seconds for which an operator may still see a pod that is gone as one that is leaving: its cache
#: is late, on a busy machine the more
LATE = 5.0


@dataclass
class _Pod:
    job: str
    phase: str
    leaving: bool
    gone: float = 0.0


def told(path: Path, failed: Mapping[str, str]) -> list[str]:
    """A line for each job in *failed* (name -> kind): how its pods were when it became Failed."""
    if not failed:
        return []
    seen: dict[str, str] = {}
    pods: dict[str, _Pod] = {}
    try:
        for event in History(path).events({"Pod", *failed.values()}):
            if event.kind == "Pod":
                _note(pods, event)
            elif event.name in failed and event.name not in seen and _is_failed(event):
                seen[event.name] = _so(event.name, pods, event.mono)
    except HistoryError as error:
        seen = dict.fromkeys(failed, str(error))
    return [
        f"{kind} {name} is Failed{seen.get(name, ', and when is not known')}"
        for name, kind in failed.items()
    ]


def published(line: str, versions: Mapping[str, str]) -> KnownFault | None:
    """The published fault of these versions that a line tells of."""
    own = (entry for entry in known().entries if entry.case == CASE)
    mine = (entry for entry in own if entry.concerns(entry.behaviour, CASE, versions))
    return next((entry for entry in mine if re.search(entry.signature, line)), None)


def _note(pods: dict[str, _Pod], event: Event) -> None:
    if event.type == DELETED:
        if (pod := pods.get(event.name)) is not None:
            pod.leaving, pod.gone = True, event.mono
        return
    meta = event.object.get("metadata") or {}
    job = (meta.get("labels") or {}).get(JOB_NAME, "")
    phase = (event.object.get("status") or {}).get("phase", "")
    pods[event.name] = _Pod(job, phase, "deletionTimestamp" in meta)


def _is_failed(event: Event) -> bool:
    conditions = (event.object.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Failed" and c.get("status") == "True" for c in conditions)


def _so(job: str, pods: Mapping[str, _Pod], now: float) -> str:
    own = {
        name: pod
        for name, pod in sorted(pods.items())
        if pod.job == job and (not pod.gone or now - pod.gone <= LATE)
    }
    if leaving := [name for name, pod in own.items() if pod.leaving]:
        return f", while its pod was leaving: {', '.join(leaving)}"
    lines = ", ".join(f"{name} {pod.phase}" for name, pod in own.items())
    return f", and no pod of it was leaving: {lines or 'it had none'}"
