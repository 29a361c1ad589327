"""What actions that break something have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from chaos import aim, session
from chaos.errors import FaultError, NotReached
from chaos.faults.base import Fault, Planned, Scope
from chaos.target import Target
from clusters.kube import Object

At = Mapping[str, Any]
Role = Literal["operator", "scheduler"]
#: seconds for which a moment is waited for, unless it says ``within``
WITHIN = 60.0
#: seconds after its moment that a fault may begin, unless the moment says ``late``
LATE = 2.0


def target(role: Role) -> Target:
    """The operator or the scheduler of the session."""
    it = session.current()
    if role == "operator":
        return Target.operator(it.operator)
    return Target.scheduler(it.scheduler)


def breaks(
    make: Callable[[], Fault], at: At | None, label: str, recovers: Object | None = None
) -> Object:
    """Break what *make* makes, at a moment if one is given; the proof.

    Raises:
        NotReached: the moment did not come within its ``within`` seconds; or it came more than
            ``late`` seconds ago (it may have been long before this was called: all that was seen in
            the session counts), so that it is over.
    """
    it = session.current()
    words = dict(at or {})
    within, late = float(words.pop("within", WITHIN)), float(words.pop("late", LATE))
    about: dict[str, Any] = {}
    evidence: dict[str, str] = {}
    came = 0.0
    fault: Fault | None = None
    if words:
        moment = aim.make(it.namespace, words)
        fault = _planned(make)
        event = session.stream().wait(moment, deadline=within)
        fault = fault or make()
        came = event.t
        after = time.time() - came
        if after > late:
            raise NotReached(
                f"{moment} came {after:.1f} s ago, with event {event.seq}: a fault at it may begin"
                f" {late:.1f} s later at most"
            )
        evidence = {"aimed at": f"{moment}: event {event.seq}"}
        about["aimed"] = {**evidence, "seconds after it": f"{after:.3f}"}
    fault = fault or make()
    if recovers is not None:
        about["recovers"] = {"namespace": it.namespace, **recovers}
    begun = time.time()
    proof = it.injector(fault, **about)
    it.begun, it.happened = begun, max(begun, proof.t)
    it.since = max(time.time(), proof.t)
    if evidence:
        evidence["seconds after it"] = f"{it.happened - came:.3f}"
    if label:
        it.labels[label] = fault
    return {
        "fault": fault.name,
        "proof": proof.what,
        "evidence": {**proof.evidence, **evidence},
        "t": proof.t,
    }


def _planned(make: Callable[[], Fault]) -> Fault | None:
    """A fault that is looked at before the moment comes, so that it is quick then.

    Only what is there before: pods may be what the moment brings.
    """
    try:
        fault: Fault = make()
    except FaultError:
        return None
    if isinstance(fault, Planned) and fault.scope is Scope.CLUSTER:
        fault.plan()
        return fault
    return None
