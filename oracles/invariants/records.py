"""Records of what is alive: pods, nodes, jobs, reduced to what invariants compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles import relations
from oracles.history import Event

#: in place of a part that an object does not have
NOTHING: Mapping[str, Any] = {}


class Pod:
    """A live pod.

    Attributes:
        category: ``active`` (Running), ``leaving`` (Running, being deleted), ``succeeded``,
            ``failed``, or "" (not running yet).
        holds: bound and not terminal, so it occupies room.
        job: uid of the job that owns it, "" for none.
        scheduled: a scheduler was seen to bind it, or may have been: False for a pod that was
            created with its node named.
        made, bound: numbers of the events that showed it first, and with its node (0: not yet).
    """

    __slots__ = (
        "bound",
        "category",
        "deleting",
        "gpus",
        "group",
        "holds",
        "index",
        "job",
        "labels",
        "made",
        "name",
        "namespace",
        "node",
        "owner",
        "phase",
        "replica",
        "restarts",
        "role",
        "scheduled",
        "uid",
    )

    def __init__(self, event: Event) -> None:
        obj = event.object
        metadata = obj.get("metadata") or NOTHING
        self.uid = event.uid
        self.namespace = event.namespace
        self.name = event.name
        self.labels: Mapping[str, str] = metadata.get("labels") or NOTHING
        self.replica, self.index = relations.replica(self.labels)
        owner = self.owner = relations.owner(obj)
        self.job = owner.uid if owner is not None and owner.kind in relations.JOB_KINDS else ""
        self.group = relations.group_name(obj)
        self.gpus = relations.gpus(obj)
        self.role = relations.controller_role(self.labels)
        self.node = ""
        self.phase = ""
        self.deleting = False
        self.holds = False
        self.category = ""
        self.restarts = 0
        self.scheduled = True
        self.made = event.seq
        self.bound = 0

    @property
    def subject(self) -> str:
        """As violations name it."""
        return f"Pod {self.namespace}/{self.name}"


class NodeState:
    """What decides whether a pod may be bound to a node. Compared by identity of content."""

    __slots__ = ("gpus", "key", "labels", "seq", "taints", "unschedulable", "until")

    def __init__(self, event: Event) -> None:
        obj = event.object
        spec = obj.get("spec") or NOTHING
        self.labels: Mapping[str, str] = (obj.get("metadata") or NOTHING).get("labels") or NOTHING
        self.taints: tuple[Mapping[str, str], ...] = tuple(spec.get("taints") or ())
        self.unschedulable = bool(spec.get("unschedulable"))
        allocatable = (obj.get("status") or NOTHING).get("allocatable") or NOTHING
        self.gpus = relations.quantity(allocatable.get(relations.GPU, 0))
        self.key = (self.labels, self.taints, self.unschedulable, self.gpus)
        self.seq = event.seq
        #: when it stopped being so (monotonic seconds); None: it is so now
        self.until: float | None = None


class Node:
    """A node: how it is, and how it was a short while ago."""

    __slots__ = ("name", "pods", "ready", "states")

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready = True
        self.states: list[NodeState] = []
        #: pods that hold GPUs on it, by uid
        self.pods: dict[str, Pod] = {}

    def since(self, mono: float) -> list[NodeState]:
        """The states that it was in at *mono* or later, the present one last."""
        return [s for s in self.states if s.until is None or s.until >= mono]


class Job:
    """A live job: the parts of its last version that invariants compare.

    Attributes:
        conditions: type -> whether its status is True.
        counts: replica type in lower case -> its status; None: the status has none at all.
        replicas: replica type in lower case -> its spec's number.
        finished: it succeeded or failed.
        suspended: it is, or is to be, suspended.
    """

    __slots__ = (
        "conditions",
        "counts",
        "finished",
        "kind",
        "name",
        "namespace",
        "replicas",
        "seq",
        "spec",
        "status",
        "suspended",
        "uid",
    )

    def __init__(self, event: Event) -> None:
        self.uid = event.uid
        self.kind = event.kind
        self.namespace = event.namespace
        self.name = event.name
        self.update(event)

    def update(self, event: Event) -> None:
        """Take a newer version."""
        self.seq = event.seq
        self.spec: Mapping[str, Any] = event.object.get("spec") or NOTHING
        self.status: Mapping[str, Any] = event.object.get("status") or NOTHING
        self.conditions: dict[str, bool] = {
            c.get("type", ""): c.get("status") == "True"
            for c in self.status.get("conditions") or ()
        }
        self.finished = bool(self.conditions.get("Succeeded") or self.conditions.get("Failed"))
        policy = self.spec.get("runPolicy") or NOTHING
        self.suspended = bool(policy.get("suspend") or self.conditions.get("Suspended"))
        raw = self.status.get("replicaStatuses")
        self.counts = {r.lower(): s or NOTHING for r, s in raw.items()} if raw else None
        specs = self.spec.get(relations.JOB_KINDS[self.kind]) or NOTHING
        self.replicas = {
            r.lower(): int((s or NOTHING).get("replicas", 1)) for r, s in specs.items()
        }

    @property
    def subject(self) -> str:
        """As violations name it."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def elastic(self) -> Mapping[str, Any] | None:
        """The elastic policy; None where it has none."""
        policy: Mapping[str, Any] | None = self.spec.get("elasticPolicy")
        return policy


def category(pod: Pod) -> str:
    phase = pod.phase
    if phase == "Running":
        return "leaving" if pod.deleting else "active"
    if phase == "Succeeded":
        return "succeeded"
    if phase == "Failed":
        return "failed"
    return ""
