"""Where pods are bound: GPUs that a node has, taints, selectors.

Judged at the moment of the binding only: a node that changes under a running pod is not the
scheduler's doing. A scheduler decides on a view that is a little old, so a node counts as it was
at any time within ``decision_age`` before. Pods that are created with their node named were not
scheduled by anybody: they take room, but nobody is blamed for them.
"""

from __future__ import annotations

from oracles.history import Event
from oracles.invariants.fit import objection
from oracles.invariants.records import NodeState, Pod
from oracles.invariants.rule import Rule
from oracles.invariants.world import BOUND

#: on the copies that the kubelet makes of a node's static pods
MIRROR = "kubernetes.io/config.mirror"


class _Placement(Rule):
    kinds = frozenset({"Pod", "Node"})
    wants = BOUND

    def feed(self, event: Event) -> None:
        """Look at bindings."""
        pod = self.world.pod
        if event.kind != "Pod" or pod is None or not pod.holds or not pod.scheduled:
            return
        node = self.world.nodes.get(pod.node)
        states = node.since(self.world.now - self.graces["decision_age"]) if node else []
        if states:
            self.judge(event, pod, states)

    def judge(self, event: Event, pod: Pod, states: list[NodeState]) -> None:
        raise NotImplementedError


class GpuCapacity(_Placement):
    """S01."""

    name = "gpu-capacity"
    promise = "The GPU requests of the pods bound to a node never exceed what the node has."
    source = "kubernetes.io: Scheduling, kube-scheduler; Extended resources"
    behaviour = "S01"

    def judge(self, event: Event, pod: Pod, states: list[NodeState]) -> None:
        """Sum up the node's pods, of all namespaces."""
        if not pod.gpus:
            return
        self.judged += 1
        there = self.world.nodes[pod.node].pods
        total = sum(p.gpus for p in there.values())
        best = max(states, key=lambda state: state.gpus)
        if total <= best.gpus:
            return
        self.broke(
            pod.subject,
            f"bound to {pod.node}, where {len(there)} pods now ask for {total} GPUs; "
            f"the node has {best.gpus}",
            "more GPUs bound to a node than it has",
            best.seq,
            event.seq,
            *(p.bound for p in there.values()),
            t=event.mono,
        )


class Placement(_Placement):
    """S03, and S02 where a GPU pod meets a node that is tainted and has no GPUs."""

    name = "placement"
    promise = (
        "No pod is bound to a node that its taints, the pod's node selector or required affinity "
        "exclude, or that is cordoned."
    )
    source = "kubernetes.io: Taints and Tolerations; Assigning Pods to Nodes"
    behaviour = "S03"

    def judge(self, event: Event, pod: Pod, states: list[NodeState]) -> None:
        """Look for a state of the node, not too old, that allows the pod."""
        annotations = (event.object.get("metadata") or {}).get("annotations") or ()
        if MIRROR in annotations:
            return
        self.judged += 1
        why = ""
        for state in reversed(states):
            found = objection(event.object, pod.node, state)
            if not found:
                return
            why = why or found
        last = states[-1]
        self.broke(
            pod.subject,
            f"bound to {pod.node} in spite of its {why}"
            if why.startswith("taint")
            else f"bound to {pod.node}, which it may not use: {why}",
            "bound in spite of " + _kind(why),
            last.seq,
            event.seq,
            t=event.mono,
            behaviour="S02" if why.startswith("taint") and pod.gpus and not last.gpus else None,
        )


def _kind(why: str) -> str:
    for start in ("taint", "node selector", "cordoned"):
        if why.startswith(start):
            return {"cordoned": "a cordon", "taint": "a taint"}.get(start, f"its {start}")
    return f"its {why}"
