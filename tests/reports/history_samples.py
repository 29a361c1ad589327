"""Small scripted clusters that write histories, for tests of the timeline.

Loaded by the conftest files of those tests, as modules of tests cannot import each other.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from oracles.history import FAULT, GAP, MARK, PROGRESS, WATCH, Event, Header
from oracles.invariants.base import Violation

#: wall time of the histories' beginning
STARTED = 1_764_480_000.0
NS = "h-elastic"
JOB_LABEL = "training.kubeflow.org/job-name"


class Story:
    """A cluster that does as it is told; each word of it is an event."""

    def __init__(self, seed: int = 1) -> None:
        self.now = 0.0
        self.events: list[Event] = []
        self.violations: list[Violation] = []
        self.random = random.Random(seed)
        self._rv = 1000
        self._uids = 0
        self._objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.header = Header(
            run="r-20251130-052000",
            cluster="dev",
            started=STARTED,
            facts={
                "provider": "kind",
                "kubernetes": "1.34.4",
                "topology": "gpu-2x4",
                "operator": {"name": "training-operator", "version": "1.8.1"},
                "scheduler": {"name": "coscheduling", "version": "0.28.9"},
                "framework": "torch 2.8.0",
                "seed": 7,
            },
        )

    # words ---------------------------------------------------------------------------------

    def say(self, source: str, type: str, **fields: Any) -> int:
        """Write an event; its number."""
        at = fields.pop("at", self.now)
        seq = len(self.events) + 1
        self.events.append(
            Event(seq=seq, t=STARTED + at, mono=at, source=source, type=type, **fields)
        )
        return seq

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def mark(self, type: str, name: str = "", **about: Any) -> int:
        """A test's word."""
        return self.say(MARK, type, name=name, object=about)

    def fault(self, type: str, kind: str, name: str, **about: Any) -> int:
        """A step of a fault."""
        return self.say(FAULT, type, kind=kind, namespace=NS, name=name, object=about)

    def gap(self, type: str, kind: str = "", **about: Any) -> int:
        """A gap's begin or end."""
        return self.say(GAP, type, kind=kind, object=about)

    def put(self, kind: str, name: str, ns: str = NS, **parts: Any) -> int:
        """Write an object: made, or with parts (metadata, spec, status) changed."""
        key = (kind, ns, name)
        old = self._objects.get(key)
        found = copy.deepcopy(old) if old else {"metadata": self._metadata(ns, name)}
        for part, content in parts.items():
            found.setdefault(part, {}).update(copy.deepcopy(content))
        return self._write(kind, ns, name, found, "MODIFIED" if old else "ADDED")

    def drop(self, kind: str, name: str, ns: str = NS) -> int:
        """Delete an object."""
        found = self._objects[kind, ns, name]
        seq = self._write(kind, ns, name, found, "DELETED")
        del self._objects[kind, ns, name]
        return seq

    def _metadata(self, ns: str, name: str) -> dict[str, Any]:
        self._uids += 1
        made = {"name": name, "uid": f"uid-{self._uids:05d}"}
        return made | {"namespace": ns} if ns else made

    def _write(self, kind: str, ns: str, name: str, found: dict[str, Any], type: str) -> int:
        self._rv += 1
        found["metadata"]["resourceVersion"] = str(self._rv)
        self._objects[kind, ns, name] = found
        return self.say(
            WATCH,
            type,
            kind=kind,
            namespace=ns,
            name=name,
            uid=found["metadata"]["uid"],
            rv=self._rv,
            object=copy.deepcopy(found),
        )

    def uid(self, kind: str, name: str, ns: str = NS) -> str:
        """Of an object that is there."""
        return str(self._objects[kind, ns, name]["metadata"]["uid"])

    # phrases -------------------------------------------------------------------------------

    def nodes(self, count: int, gpus: int = 4) -> list[str]:
        """A control plane and *count* nodes with GPUs."""
        self.put(
            "Node",
            "control-plane",
            ns="",
            metadata={"labels": {"node-role.kubernetes.io/control-plane": ""}},
            status={"allocatable": {"cpu": "2"}, "conditions": [ready(True)]},
        )
        names = ["worker" + (str(i + 1) if i else "") for i in range(count)]
        for name in names:
            self.put(
                "Node",
                name,
                ns="",
                spec={},
                status={"allocatable": {"nvidia.com/gpu": str(gpus)}, "conditions": [ready(True)]},
            )
        return names

    def condition(self, kind: str, name: str, type: str, message: str = "", **status: Any) -> int:
        """A job's condition turns True; Running and Restarting replace each other."""
        found = self._objects[kind, NS, name].get("status", {}).get("conditions", [])
        opposite = {"Running": "Restarting", "Restarting": "Running"}
        off = {opposite.get(type, ""), *(["Running"] if type in ("Succeeded", "Failed") else [])}
        conditions = [
            {**each, "status": "False"} if each["type"] in off else each
            for each in found
            if each["type"] != type
        ]
        made = {"type": type, "status": "True", "reason": f"{kind}{type}", "message": message}
        return self.put(kind, name, status={"conditions": [*conditions, made], **status})

    def pod(self, job: str, role: str, index: int, gpus: int = 1, kind: str = "PyTorchJob") -> str:
        """A pod of a job is made, and waits."""
        name = f"{job}-{role}-{index}"
        labels = {
            JOB_LABEL: job,
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": str(index),
            "scheduling.x-k8s.io/pod-group": job,
        }
        owner = {"kind": kind, "name": job, "uid": self.uid(kind, job), "controller": True}
        resources = {"requests": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
        self.put(
            "Pod",
            name,
            metadata={"labels": labels, "ownerReferences": [owner]},
            spec={
                "schedulerName": "coscheduling",
                "containers": [{"name": "pytorch", "resources": resources}],
            },
            status={"phase": "Pending"},
        )
        return name

    def unschedulable(self, pod: str, message: str) -> None:
        """The scheduler says why not; the cluster's Event says it again."""
        self.put("Pod", pod, status={"conditions": [scheduled(False, message)]})
        self.say(
            WATCH,
            "ADDED",
            kind="Event",
            namespace=NS,
            name=f"{pod}.{len(self.events):x}",
            object={
                "involvedObject": {"kind": "Pod", "namespace": NS, "name": pod},
                "reason": "FailedScheduling",
                "message": message,
                "type": "Warning",
            },
        )

    def bind(self, pod: str, node: str) -> int:
        """It gets its node."""
        return self.put(
            "Pod", pod, spec={"nodeName": node}, status={"conditions": [scheduled(True)]}
        )

    def run(self, pod: str, ready_after: float = 0.2) -> None:
        """Its container runs, then it is ready."""
        conditions = [scheduled(True), ready(False)]
        self.put("Pod", pod, status={"phase": "Running", "conditions": conditions, **running(0)})
        self.wait(ready_after)
        self.put("Pod", pod, status={"conditions": [scheduled(True), ready(True)]})

    def finish(self, pod: str, code: int = 0) -> None:
        """Its container ends, and with it the pod."""
        self.put(
            "Pod",
            pod,
            status={
                "phase": "Failed" if code else "Succeeded",
                "conditions": [scheduled(True), ready(False)],
                "containerStatuses": [
                    {
                        "name": "pytorch",
                        "ready": False,
                        "restartCount": 0,
                        "state": {
                            "terminated": {
                                "exitCode": code,
                                "reason": "Error" if code else "Completed",
                            }
                        },
                    }
                ],
            },
        )

    def line(self, pod: str, event: str, *, at: float | None = None, **fields: Any) -> int:
        """A progress line of a pod's program."""
        at = self.now if at is None else at
        uid = self.uid("Pod", pod)
        line = {"t": STARTED + at, "event": event, "pod": pod, "pod_uid": uid, **fields}
        return self.say(PROGRESS, event, namespace=NS, name=pod, uid=uid, object=line, at=at)

    def steps(self, pods: list[str], first: int, last: int, every: float, **fields: Any) -> None:
        """All *pods* do steps together, in ranks of their order; rank 0 writes checkpoints."""
        for step in range(first, last + 1):
            self.wait(every)
            for rank, pod in enumerate(pods):
                jitter = self.random.uniform(0, 0.02)
                self.line(
                    pod,
                    "step",
                    at=self.now + jitter,
                    rank=rank,
                    world=len(pods),
                    step=step,
                    epoch=0,
                    loss=2.3 / (1 + step / 20),
                    **fields,
                )
            if step % 10 == 0:
                self.line(pods[0], "checkpoint", pid=fields["pid"], rank=0, step=step)

    def violate(self, subject: str, message: str, *events: int, **fields: str) -> None:
        """An invariant's finding, at the last of its events."""
        at = self.events[events[-1] - 1].t
        self.violations.append(
            Violation(
                fields.get("invariant", "gang-atomicity"),
                fields.get("behaviour", "G16"),
                subject,
                message,
                "sample",
                events,
                at,
            )
        )


def ready(yes: bool | None) -> dict[str, str]:
    """Condition Ready."""
    status = {True: "True", False: "False", None: "Unknown"}[yes]
    return {"type": "Ready", "status": status, "reason": "KubeletReady" if yes else "NotReady"}


def scheduled(yes: bool, message: str = "") -> dict[str, str]:
    """Condition PodScheduled."""
    if yes:
        return {"type": "PodScheduled", "status": "True"}
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }


def running(restarts: int) -> dict[str, Any]:
    """Container statuses of a running pod."""
    status: dict[str, Any] = {
        "name": "pytorch",
        "ready": True,
        "restartCount": restarts,
        "state": {"running": {}},
    }
    if restarts:
        status["lastState"] = {"terminated": {"exitCode": 137, "reason": "Error"}}
    return {"containerStatuses": [status]}


def elastic(pods: int = 8, seed: int = 1, steps: int = 60) -> Story:
    """An elastic job: waits for room, trains, loses an agent and a pod, has a partial gang.

    There are a fault that is recovered, a gap of pods, two violations, a node that is away.
    """
    story = Story(seed)
    nodes = story.nodes(max(2, -(-pods // 4) + 1))
    story.wait(0.8)
    story.mark("test-start", "E05 agent killed above the minimum")
    story.wait(0.4)
    job, kind = "elastic", "PyTorchJob"
    story.put(kind, job, spec={"elasticPolicy": {"minReplicas": pods // 2, "maxReplicas": pods}})
    story.condition(kind, job, "Created", f"PyTorchJob {job} is created.")
    story.wait(0.1)
    story.put("PodGroup", job, spec={"minMember": pods // 2}, status={"phase": "Pending"})
    names = []
    for index in range(pods):
        names.append(story.pod(job, "worker", index))
        owner = {"kind": kind, "name": job, "uid": story.uid(kind, job), "controller": True}
        story.put("Service", names[-1], metadata={"ownerReferences": [owner]}, spec={})
        story.wait(0.03)
    for name in names:
        story.unschedulable(name, "0/3 nodes are available: 2 Insufficient nvidia.com/gpu.")
        story.wait(0.01)
    story.wait(3.0)
    story.put("PodGroup", job, status={"phase": "Scheduling"})
    partial = [
        story.bind(name, nodes[(index // 4) % len(nodes)])
        for index, name in enumerate(names[: max(1, pods // 2 - 1)])
    ]
    story.wait(6.4)
    story.violate(
        f"PodGroup {NS}/{job}",
        f"{len(partial)} of at least {pods // 2} pods were bound for 6.4 s (grace 2 s)",
        *partial[-4:],
    )
    for index, name in enumerate(names[len(partial) :], start=len(partial)):
        story.bind(name, nodes[(index // 4) % len(nodes)])
        story.wait(0.02)
    story.put("PodGroup", job, status={"phase": "Scheduled", "scheduled": pods})
    for name in names:
        story.run(name, story.random.uniform(0.02, 0.1))
    replicas = {"replicaStatuses": {"Worker": {"active": pods}}}
    story.condition(kind, job, "Running", f"PyTorchJob {job} is running.", **replicas)
    story.put("PodGroup", job, status={"phase": "Running"})
    for name in names:
        story.line(name, "start", pid=20, agent_pid=7, restart=0)
    story.wait(2.5)
    story.steps(names, 1, steps // 2, 0.4, pid=20, generation="a")

    victim = names[1]
    story.fault("inject", "agent-kill", victim, signal="SIGKILL", agent_pid=7)
    story.wait(0.3)
    story.fault("proven", "agent-kill", victim, proof="new container in the same pod")
    story.put("Pod", victim, status=running(1) | {"conditions": [scheduled(True), ready(True)]})
    story.wait(0.2)
    for name in names:
        if name != victim:
            story.line(name, "error", pid=20, detail="connection closed by peer")
    story.wait(4.1)
    story.gap("begin", "Pod", why="watch expired: 410 Gone")
    story.wait(2.2)
    story.gap("end", "Pod")
    for name in names:
        story.line(name, "start", pid=61, agent_pid=7, restart=1)
    story.line(names[0], "resume", pid=61, rank=0, step=steps // 2 - 3)
    story.wait(1.4)
    story.fault("recover", "agent-kill", victim)
    story.steps(names, steps // 2 - 2, steps // 2 + 12, 0.4, pid=61, generation="b")

    last = names[-1]
    story.put("Pod", last, metadata={"deletionTimestamp": "2025-11-30T05:21:00Z"})
    story.wait(0.5)
    story.drop("Pod", last)
    blank = story.put(kind, job, status={"replicaStatuses": {"Worker": {}}})
    story.violate(
        f"{kind} {NS}/{job}",
        "replica counts went blank while 7 pods ran",
        blank,
        invariant="counts-agree",
        behaviour="T03",
    )
    story.put("Node", nodes[-1], ns="", status={"conditions": [ready(None)]})
    rest = names[:-1]
    story.wait(3.0)
    story.put(kind, job, status={"replicaStatuses": {"Worker": {"active": pods - 1}}})
    story.put("Node", nodes[-1], ns="", status={"conditions": [ready(True)]})
    story.put("Node", nodes[0], ns="", spec={"unschedulable": True})
    story.steps(rest, steps // 2 + 13, steps, 0.4, pid=61, generation="c")
    story.put("Node", nodes[0], ns="", spec={"unschedulable": False})
    for name in rest:
        story.line(name, "end", pid=61, code=0, accuracy=0.93)
        story.finish(name)
        story.wait(0.02)
    story.condition(kind, job, "Succeeded", f"PyTorchJob {job} is successfully completed.")
    story.put("PodGroup", job, status={"phase": "Finished"})
    story.wait(0.5)
    story.mark("test-end", "E05 agent killed above the minimum")
    return story


def calm(pods: int = 3) -> Story:
    """A job that waits, runs and succeeds, and nothing else."""
    story = Story()
    nodes = story.nodes(1)
    story.mark("test-start", "G01 room for all")
    story.put("TFJob", "train", spec={})
    story.condition("TFJob", "train", "Created")
    names = [story.pod("train", "worker", index, kind="TFJob") for index in range(pods)]
    story.wait(1)
    for name in names:
        story.bind(name, nodes[0])
    story.wait(0.5)
    for name in names:
        story.run(name)
    story.condition("TFJob", "train", "Running")
    story.wait(5)
    for name in names:
        story.finish(name)
    story.condition("TFJob", "train", "Succeeded")
    story.mark("test-end", "G01 room for all")
    return story
