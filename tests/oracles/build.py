"""Histories made by hand, in a few words an event.

Every word returns the number of its event, so that a test can say which ones prove a violation::

    h = History()
    h.node("n1", gpus=4)
    job = h.job("train", "TFJob", Worker=2)
    pod = job.pod("Worker", 0, gpus=1)
    h.after(1)
    bound = pod.bind("n1")
    assert broken(h) == {...}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from oracles import relations
from oracles.graces import Graces, graces
from oracles.history import Event
from oracles.judging import Judgement, judge

#: wall time at which made histories begin
BEGIN = 1_800_000_000.0
API = {
    "PodGroup": "scheduling.x-k8s.io/v1alpha1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "Job": "batch/v1",
}
SCHEDULER = "scheduler-plugins-scheduler"

Object = dict[str, Any]


class Thing:
    """An object of the cluster; its parts are replaced, never changed, as events hold them."""

    def __init__(
        self,
        history: History,
        kind: str,
        name: str,
        namespace: str = "t",
        owner: Thing | None = None,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        **parts: Any,
    ) -> None:
        self.history = history
        self.kind = kind
        self.name = name
        self.namespace = namespace
        self.owner = owner
        history.made += 1
        self.uid = f"{history.made:08x}-{kind.lower()}"
        self.meta: Object = {"name": name, "namespace": namespace, "uid": self.uid}
        self.meta["creationTimestamp"] = stamp(history.t)
        if labels:
            self.meta["labels"] = labels
        if annotations:
            self.meta["annotations"] = annotations
        if owner is not None:
            self.meta["ownerReferences"] = [
                {
                    "apiVersion": "kubeflow.org/v1",
                    "kind": owner.kind,
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ]
        self.spec: Object = parts.pop("spec", {})
        self.status_: Object = parts.pop("status", {})
        self.added = self.send("ADDED")

    def object(self) -> Object:
        """As it is now."""
        found = {"metadata": self.meta, "spec": self.spec, "status": self.status_}
        if self.kind in relations.JOB_KINDS:
            found["apiVersion"] = "kubeflow.org/v1"
        elif self.kind in API:
            found["apiVersion"] = API[self.kind]
        return found

    def send(self, type_: str = "MODIFIED") -> int:
        """Tell of it as it is now."""
        return self.history.add(
            "watch", type_, self.kind, self.namespace, self.name, self.uid, self.object()
        )

    def change(self, **parts: Any) -> int:
        """Another version: ``spec`` and ``status`` are merged, ``labels`` replaced."""
        if "labels" in parts:
            self.meta = {**self.meta, "labels": parts["labels"]}
        self.spec = {**self.spec, **parts.get("spec", {})}
        self.status_ = {**self.status_, **parts.get("status", {})}
        return self.send()

    def deleting(self) -> int:
        """It got its deletion time."""
        self.meta = {**self.meta, "deletionTimestamp": stamp(self.history.t)}
        return self.send()

    def gone(self) -> int:
        """It is deleted."""
        return self.send("DELETED")


class Pod(Thing):
    """A pod."""

    def bind(self, node: str) -> int:
        """A scheduler bound it."""
        self.spec = {**self.spec, "nodeName": node}
        return self.send()

    def phase(self, phase: str, restarts: int = 0) -> int:
        """Another phase."""
        self.status_ = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(phase == "Running")}],
            "containerStatuses": [
                {
                    "name": "pytorch",
                    "ready": phase == "Running",
                    "restartCount": restarts,
                    "containerID": f"containerd://{self.uid}-{restarts}",
                    "state": {phase.lower(): {"startedAt": stamp(self.history.t)}},
                }
            ],
        }
        return self.send()

    def run(self, restarts: int = 0) -> int:
        """It runs."""
        return self.phase("Running", restarts)

    def succeed(self) -> int:
        """It ended well."""
        return self.phase("Succeeded")

    def fail(self) -> int:
        """It ended badly."""
        return self.phase("Failed")

    def line(self, event: str, **fields: Any) -> int:
        """A progress line of its process."""
        history = self.history
        line = {
            "t": BEGIN + history.t,
            "event": event,
            "pod": self.name,
            "pod_uid": self.uid,
            "pid": 20,
            "agent_pid": 1,
            **fields,
        }
        return history.add("progress", event, "", self.namespace, self.name, self.uid, line)


class Job(Thing):
    """A training job."""

    def says(
        self,
        *conditions: str,
        counts: dict[str, tuple[int, int, int]] | str | None = "",
        start: float | None = None,
        end: float | None = None,
        selector: str = "",
        message: str = "",
        status: Object | None = None,
    ) -> int:
        """Another status.

        Args:
            conditions: those that are true, ``-NAME`` for one that is false.
            counts: active, succeeded, failed by replica type; "": as before; None: blank.
            start, end: seconds of the history.
            selector: of the workers.
        """
        new: Object = {
            "conditions": [
                {
                    "type": name.lstrip("-"),
                    "status": "False" if name.startswith("-") else "True",
                    "reason": f"{self.kind}{name.lstrip('-')}",
                    "message": message,
                }
                for name in conditions
            ]
        }
        if counts is None:
            new["replicaStatuses"] = {}
        elif not isinstance(counts, str):
            new["replicaStatuses"] = {
                replica: {
                    k: n
                    for k, n in zip(("active", "succeeded", "failed"), numbers, strict=True)
                    if n
                }
                | ({"selector": selector} if selector and replica == "Worker" else {})
                for replica, numbers in counts.items()
            }
        if start is not None:
            new["startTime"] = stamp(start)
        if end is not None:
            new["completionTime"] = stamp(end)
        return self.change(status={**new, **(status or {})})

    def labels(self, replica: str, index: int) -> dict[str, str]:
        """Labels of one of its pods."""
        found = {
            relations.JOB_NAME: self.name,
            relations.REPLICA_TYPE: replica.lower(),
            relations.REPLICA_INDEX: str(index),
            "training.kubeflow.org/operator-name": f"{self.kind.lower()}-controller",
        }
        if index == 0:
            found[relations.JOB_ROLE] = "master"
        return found

    def pod(
        self,
        replica: str = "Worker",
        index: int = 0,
        *,
        gpus: int = 0,
        group: bool = True,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> Pod:
        """One of its pods."""
        labels = {**self.labels(replica, index), **(labels or {})}
        if group:
            labels[relations.COSCHEDULING_GROUP] = self.name
            spec.setdefault("schedulerName", SCHEDULER)
        return self.history.pod(
            f"{self.name}-{replica.lower()}-{index}",
            owner=self,
            labels=labels,
            namespace=self.namespace,
            gpus=gpus,
            **spec,
        )

    @property
    def selector(self) -> str:
        """Of its workers, as training-operator writes it."""
        labels = self.labels("Worker", 1)
        del labels[relations.REPLICA_INDEX]
        return ",".join(f"{k}={v}" for k, v in sorted(labels.items()))


class History:
    """A made history. ``t`` is its clock, in seconds."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.seq = 0
        self.made = 0
        self.t = 0.0

    def after(self, seconds: float) -> History:
        """Let time pass."""
        self.t += seconds
        return self

    def add(
        self,
        source: str,
        type_: str,
        kind: str = "",
        namespace: str = "",
        name: str = "",
        uid: str = "",
        obj: Object | None = None,
    ) -> int:
        """An event; its number."""
        self.seq += 1
        self.events.append(
            Event(
                seq=self.seq,
                t=BEGIN + self.t,
                mono=self.t,
                source=source,
                type=type_,
                kind=kind,
                namespace=namespace,
                name=name,
                uid=uid,
                rv=self.seq + 1000 if source == "watch" else 0,
                object=obj or {},
            )
        )
        return self.seq

    def node(
        self,
        name: str,
        *,
        gpus: int = 0,
        labels: dict[str, str] | None = None,
        taints: Iterable[str] = (),
        ready: bool = True,
        **spec: Any,
    ) -> Thing:
        """A node; taints as ``KEY[=VALUE]:EFFECT``."""
        return Thing(
            self,
            "Node",
            name,
            "",
            labels={"kubernetes.io/hostname": name, **(labels or {})},
            spec={**spec, "taints": [_taint(text) for text in taints]},
            status={
                "allocatable": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": str(gpus)},
                "conditions": [{"type": "Ready", "status": str(ready)}],
            },
        )

    def job(
        self,
        name: str = "train",
        kind: str = "PyTorchJob",
        namespace: str = "t",
        *,
        elastic: Object | None = None,
        run: Object | None = None,
        annotations: dict[str, str] | None = None,
        **replicas: int,
    ) -> Job:
        """A job, with the number of its replicas by type."""
        spec: Object = {
            relations.JOB_KINDS[kind]: {r: {"replicas": n} for r, n in replicas.items()},
            "runPolicy": run or {},
        }
        if elastic is not None:
            spec["elasticPolicy"] = elastic
        return Job(self, kind, name, namespace, annotations=annotations, spec=spec)

    def pod(
        self,
        name: str,
        namespace: str = "t",
        *,
        owner: Thing | None = None,
        labels: dict[str, str] | None = None,
        gpus: int = 0,
        annotations: dict[str, str] | None = None,
        **spec: Any,
    ) -> Pod:
        """A pod of whoever."""
        container: Object = {"name": "main", "resources": {}}
        if gpus:
            amount = {"nvidia.com/gpu": str(gpus)}
            container["resources"] = {"limits": amount, "requests": amount}
        return Pod(
            self,
            "Pod",
            name,
            namespace,
            owner=owner,
            labels=labels,
            annotations=annotations,
            spec={"schedulerName": "default-scheduler", **spec, "containers": [container]},
            status={"phase": "Pending"},
        )

    def group(
        self, name: str, minimum: int, namespace: str = "t", owner: Thing | None = None
    ) -> Thing:
        """A group object of scheduler-plugins."""
        return Thing(self, "PodGroup", name, namespace, owner=owner, spec={"minMember": minimum})

    def thing(self, kind: str, name: str, owner: Thing | None = None) -> Thing:
        """Any other object."""
        return Thing(self, kind, name, owner=owner)

    def fault(self, type_: str, kind: str = "kill", name: str = "", **obj: Any) -> int:
        """A fault is injected, proven, taken back."""
        return self.add("fault", type_, kind, "t", name, "", obj)

    def gap(self, kind: str, seconds: float) -> tuple[int, int]:
        """Events of a kind are missed for a while."""
        begin = self.add("gap", "begin", kind)
        self.after(seconds)
        return begin, self.add("gap", "end", kind)

    def judge(self, figures: Graces | None = None, **values: float) -> Judgement:
        """What it means, under the default graces but for *values*."""
        figures = (figures or graces()).but(**values)
        return judge(self.events, figures=figures, now=self.t)


def broken(history: History, **values: float) -> list[tuple[str, str, tuple[int, ...]]]:
    """Name, signature and events of what is broken, by time."""
    found = history.judge(**values).violations
    return [(v.invariant, v.signature, v.events) for v in found]


def names(history: History, **values: float) -> set[str]:
    """Names of the invariants that are broken."""
    return {v.invariant for v in history.judge(**values).violations}


def exercised(history: History, name: str) -> int:
    """How many times an invariant had something to judge."""
    return next(f.judged for f in history.judge().findings if f.invariant == name)


def stamp(seconds: float) -> str:
    """A time as the API writes it."""
    return datetime.fromtimestamp(BEGIN + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def each[T](things: Iterable[T], do: Callable[[T], int]) -> list[int]:
    """The same word for several; the numbers of the events."""
    return [do(thing) for thing in things]


def _taint(text: str) -> Object:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return (
        {"key": key, "value": value, "effect": effect}
        if value
        else {
            "key": key,
            "effect": effect,
        }
    )
