"""Whether a node may take a pod: taints, node selector, required node affinity, cordon.

As the Kubernetes documentation on taints, tolerations and node assignment says; of what a pod
*prefers* nothing is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oracles.invariants.records import NodeState

_NOTHING: Mapping[str, Any] = {}
#: what the node controller puts on a cordoned node; whoever tolerates it may go there
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def objection(pod: Mapping[str, Any], node: str, state: NodeState) -> str:
    """Why *pod* may not be bound to the node in that *state*; "" when it may.

    The first reason counts: ``taint KEY:EFFECT``, ``cordoned``, ``node selector``, ``affinity``.
    """
    spec = pod.get("spec") or _NOTHING
    tolerations = spec.get("tolerations") or ()
    for taint in state.taints:
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not tolerated(taint, tolerations):
            if taint.get("key") == _CORDON["key"]:
                return "cordoned"
            return f"taint {taint.get('key')}:{taint.get('effect')}"
    if state.unschedulable and not tolerated(_CORDON, tolerations):
        return "cordoned"
    for key, value in (spec.get("nodeSelector") or _NOTHING).items():
        if state.labels.get(key) != value:
            return f"node selector {key}={value}"
    affinity = (spec.get("affinity") or _NOTHING).get("nodeAffinity") or _NOTHING
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required and not any(
        _term(term, node, state.labels) for term in required.get("nodeSelectorTerms") or ()
    ):
        return "required node affinity"
    return ""


def tolerated(taint: Mapping[str, Any], tolerations: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of the *tolerations* is for the *taint*."""
    for one in tolerations:
        if one.get("effect") and one["effect"] != taint.get("effect"):
            continue
        if one.get("key") and one["key"] != taint.get("key"):
            continue
        if one.get("operator") == "Exists":
            return True
        if one.get("key") and (one.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


def _term(term: Mapping[str, Any], node: str, labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # an empty term matches nothing
    return all(_matches(e, labels) for e in expressions) and all(
        _matches(f, {"metadata.name": node}) for f in fields
    )


def _matches(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(rule.get("key", ""))
    values: Sequence[str] = rule.get("values") or ()
    match rule.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                have, want = int(value or ""), int(values[0])
            except (ValueError, IndexError):
                return False
            return have > want if operator == "Gt" else have < want
    return False
