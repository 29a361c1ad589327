"""What actions that break something have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from chaos import aim, session
from chaos.errors import FaultError
from chaos.faults.base import Fault, Planned, Scope
from chaos.target import Target
from clusters.kube import Object

At = Mapping[str, Any]
Role = Literal["operator", "scheduler"]
#: seconds for which a moment is waited for, unless it says ``within``
WITHIN = 60.0


def target(role: Role) -> Target:
    """The operator or the scheduler of the session."""
    it = session.current()
    if role == "operator":
        return Target.operator(it.operator)
    return Target.scheduler(it.scheduler)


def breaks(
    make: Callable[[], Fault], at: At | None, label: str, recovers: Object | None = None
) -> Object:
    """Break what *make* makes, at a moment if one is given; the proof."""
    it = session.current()
    words = dict(at or {})
    within = float(words.pop("within", WITHIN))
    fault: Fault | None = None
    if words:
        moment = aim.make(it.namespace, words)
        fault = _planned(make)
        session.stream().wait(moment, deadline=within)
    fault = fault or make()
    about: dict[str, Any] = {}
    if words:
        about["aimed"] = str(at)
    if recovers is not None:
        about["recovers"] = {"namespace": it.namespace, **recovers}
    proof = it.injector(fault, **about)
    it.since = max(it.since, proof.t)
    if label:
        it.labels[label] = fault
    return {"fault": fault.name, "proof": proof.what, "evidence": proof.evidence, "t": proof.t}


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
