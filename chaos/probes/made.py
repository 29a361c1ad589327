"""Probes of how often pods were made, from the history: their names alone do not tell.

Operators name pods by job, role and index, so the API server itself sees to it that there are never
two of a name at a time. A pod that is made over and over shows only in its uids.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from chaos import session
from chaos.activities import activity
from chaos.errors import NotReached
from chaos.probes.pods import labels_of, neighbours
from clusters.kube import PODS
from oracles.errors import HarnessError
from oracles.history import BEGIN, DELETED, GAP, WATCH
from oracles.relations import JOB_NAME

#: seconds after which the history has what the API shows
ARRIVES = 20.0


@activity
def each_pod_once(
    *, job: str, times: int = 1, again: Sequence[str] = (), again_with: str = "",
    exact: bool = True,
) -> int:  # fmt: skip
    """Each pod of a job was made just so often since the experiment began; how many there are.

    Args:
        times: how often.
        again: those that were lost, and so are made once more than that.
        again_with: as are all that were on the node of this one when ``same_pods`` was first asked.
        exact: neither more often nor less; else not more often.

    Raises:
        HarnessError: the history has a gap, or does not have what the API shows.
        NotReached: it has no pod of the job.
    """
    lost = {*again, *(neighbours(job, again_with) if again_with else ())}
    made, hole = _made(job)
    if not made:
        raise NotReached(f"the history has no pods of {job}")
    wanted = {name: times + (name in lost) for name in sorted(made.keys() | lost)}
    found = {name: len(made.get(name, {})) for name in wanted}
    more = [name for name in wanted if found[name] > wanted[name]]
    less = [name for name in wanted if exact and found[name] < wanted[name]]
    told = "; ".join(
        f"{name} was made {found[name]} times, not {wanted[name]}"
        f" (uids {', '.join(made.get(name, {})) or 'none'})"
        for name in sorted({*more, *less})
    )
    assert not more, told
    if hole:
        raise HarnessError(f"the history has a gap, so pods of {job} may be missing in it {told}")
    assert not less, told
    return len(made)


@activity
def made_before_fault(
    *, job: str = "", app: str = "", least: int = 1, most: int | None = None
) -> list[str]:
    """So many pods had been made when the last fault was there: their names.

    Raises:
        NotReached: fewer, or more, so this was not the moment that was meant.
    """
    it = session.current()
    made, _ = _made(job, app)
    first = {name: min(times.values()) for name, times in made.items()}
    early = sorted(name for name, t in first.items() if t <= it.since)
    if len(early) < least or (most is not None and len(early) > most):
        raise NotReached(
            f"{len(early)} pods had been made when the fault was there ({', '.join(early)}),"
            f" {least} to {most or 'any number'} were meant"
        )
    return early


def _made(job: str, app: str = "") -> tuple[dict[str, dict[str, float]], bool]:
    """Name -> uid -> when it was first seen; and whether pods may have been missed.

    All that there are now are in it. Raises HarnessError when they do not arrive.
    """
    it = session.current()
    there = it.kube.find(PODS, it.namespace, labels=labels_of(job, app))
    awaited = {
        pod["metadata"]["uid"]: int(pod["metadata"].get("resourceVersion") or 0) for pod in there
    }
    made: dict[str, dict[str, float]] = {}
    hole = False
    end = time.monotonic() + ARRIVES
    for event in session.stream().events(lambda: not awaited or time.monotonic() > end):
        if event.source == GAP and event.kind in ("", "Pod"):
            hole = hole or event.type == BEGIN
        if event.source != WATCH or event.kind != "Pod" or event.namespace != it.namespace:
            continue
        if event.rv >= awaited.get(event.uid, event.rv + 1):
            del awaited[event.uid]
        labels = (event.object.get("metadata") or {}).get("labels") or {}
        if event.type == DELETED or (labels.get(JOB_NAME) != job if job else False):
            continue
        if app and labels.get("app") != app:
            continue
        made.setdefault(event.name, {}).setdefault(event.uid, event.t)
    if awaited:
        raise HarnessError(
            f"{len(awaited)} of {len(there)} pods are not in the history after {ARRIVES:.0f} s"
        )
    return made, hole
