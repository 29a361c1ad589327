"""Random histories of clusters that keep every promise.

A small simulation: slots run one job after another (gangs of TFJobs, of PyTorchJobs with a master,
of elastic ones that train), on nodes with GPUs, through bindings, restarts, replaced pods, scaling,
suspension, success, failure and clean-up. The same seed gives the same history. Used by property
tests, and, long, by the benchmark.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from oracles import relations
from oracles.history import Event

Object = dict[str, Any]
Life = Generator[float, None, None]

BEGIN = 1_800_000_000.0
SCHEDULER = "scheduler-plugins-scheduler"
#: samples of an epoch, of a step, and steps between checkpoints of the training jobs
SAMPLES, BATCH, EVERY = 40, 8, 3
CONTAINERS = {"PyTorchJob": "pytorch", "TFJob": "tensorflow"}


@dataclass(frozen=True)
class Size:
    """How large a cluster and its jobs are."""

    nodes: int = 3
    gpus: int = 4
    slots: int = 3
    pods: int = 6  # of one job, at most
    rounds: int = 4  # disturbances of one job, at most
    quiet: int = 2  # updates of a pod that change nothing that matters, per round
    namespaces: int = 2


class _Pod:
    def __init__(self, sim: Simulation, job: _Job, replica: str, index: int, gpus: int) -> None:
        self.sim, self.job, self.replica, self.index, self.gpus = sim, job, replica, index, gpus
        self.name = f"{job.name}-{replica.lower()}-{index}"
        self.uid = sim.uid()
        self.node = ""
        self.state = "Pending"
        self.leaving = False
        self.restarts = 0
        amount = {relations.GPU: str(gpus)} if gpus else {}
        container = CONTAINERS[job.kind]
        self.meta: Object = {
            "name": self.name,
            "namespace": job.namespace,
            "uid": self.uid,
            "creationTimestamp": stamp(sim.now),
            "labels": {
                relations.JOB_NAME: job.name,
                relations.REPLICA_TYPE: replica.lower(),
                relations.REPLICA_INDEX: str(index),
                "training.kubeflow.org/operator-name": f"{job.kind.lower()}-controller",
                relations.COSCHEDULING_GROUP: job.name,
            },
            "ownerReferences": job.reference,
        }
        self.spec: Object = {
            "schedulerName": SCHEDULER,
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": 5,
            "nodeSelector": {"gpu": "yes"} if gpus else {},
            "containers": [
                {"name": container, "resources": {"limits": amount, "requests": amount}}
            ],
        }
        self.tell("ADDED")

    def tell(self, type_: str = "MODIFIED") -> None:
        ready = self.state == "Running"
        status: Object = {
            "phase": self.state,
            "conditions": [
                {"type": "PodScheduled", "status": str(bool(self.node))},
                {"type": "Ready", "status": str(ready)},
            ],
        }
        if self.node:
            status["containerStatuses"] = [
                {
                    "name": CONTAINERS[self.job.kind],
                    "ready": ready,
                    "restartCount": self.restarts,
                    "containerID": f"containerd://{self.uid}-{self.restarts}",
                    "state": {self.state.lower(): {}},
                }
            ]
        self.sim.watch(
            type_,
            "Pod",
            self.job.namespace,
            self.name,
            self.uid,
            {"metadata": self.meta, "spec": self.spec, "status": status},
        )

    def bind(self, node: str) -> None:
        self.node = node
        self.spec = {**self.spec, "nodeName": node}
        self.tell()

    def be(self, state: str) -> None:
        self.state = state
        self.tell()
        if state != "Running":
            self.free()

    def delete(self) -> None:
        self.leaving = True
        self.meta = {**self.meta, "deletionTimestamp": stamp(self.sim.now)}
        self.tell()

    def gone(self) -> None:
        self.tell("DELETED")
        self.free()
        self.job.pods.remove(self)

    def free(self) -> None:
        if self.node and self.gpus:
            self.sim.free[self.node] += self.gpus
            self.gpus = 0

    def line(self, event: str, **fields: Any) -> None:
        body = {"pod": self.name, "pod_uid": self.uid, "pid": 20, "agent_pid": 1, **fields}
        self.sim.event("progress", event, "", self.job.namespace, self.name, self.uid, body)


class _Job:
    def __init__(self, sim: Simulation, namespace: str, name: str) -> None:
        rng = sim.rng
        self.sim, self.namespace, self.name = sim, namespace, name
        self.uid = sim.uid()
        self.kind = rng.choice(["TFJob", "PyTorchJob"])
        self.elastic = self.kind == "PyTorchJob" and rng.random() < 0.6
        workers = rng.randint(1, max(1, sim.size.pods - 1))
        self.replicas = {"Worker": workers}
        if not self.elastic:
            self.replicas["PS" if self.kind == "TFJob" else "Master"] = 1
        self.gpus = rng.choice([0, 1, 1])
        self.pods: list[_Pod] = []
        self.counts: Object = {}
        self.conditions: list[tuple[str, bool]] = []
        self.times: Object = {}
        self.suspend = False
        # training
        self.generation = ""
        self.step = 0
        self.kept = 0
        self.resumed = True
        self.reference = [
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": self.kind,
                "name": name,
                "uid": self.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        self.selector = (
            f"{relations.JOB_NAME}={name},training.kubeflow.org/operator-name="
            f"{self.kind.lower()}-controller,{relations.REPLICA_TYPE}=worker"
        )

    def tell(self, type_: str = "MODIFIED") -> None:
        sim = self.sim
        spec: Object = {
            relations.JOB_KINDS[self.kind]: {
                replica: {"replicas": n} for replica, n in self.replicas.items()
            },
            "runPolicy": {"suspend": self.suspend, "cleanPodPolicy": "Running"},
        }
        if self.elastic:
            spec["elasticPolicy"] = {
                "minReplicas": 1,
                "maxReplicas": sim.size.pods,
                "maxRestarts": 100,
                "nProcPerNode": 1,
            }
        status = {
            "conditions": [
                {"type": name, "status": str(true), "reason": f"{self.kind}{name}"}
                for name, true in self.conditions
            ],
            "replicaStatuses": self.counts,
            **self.times,
        }
        meta = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "annotations": {
                "muster.dev/samples": str(SAMPLES),
                "muster.dev/checkpoint-every": str(EVERY),
            },
        }
        body = {"apiVersion": "kubeflow.org/v1", "metadata": meta, "spec": spec, "status": status}
        sim.watch(type_, self.kind, self.namespace, self.name, self.uid, body)

    def says(self, *conditions: str) -> None:
        """Its status now: those conditions besides Created, and what the pods are."""
        self.conditions = [("Created", True)]
        self.conditions += [(c.lstrip("-"), not c.startswith("-")) for c in conditions]
        self.count()
        self.tell()

    def count(self) -> None:
        self.counts = {}
        for replica in self.replicas:
            own = [pod for pod in self.pods if pod.replica == replica]
            numbers = {
                "active": sum(p.state == "Running" and not p.leaving for p in own),
                "succeeded": sum(p.state == "Succeeded" for p in own),
                "failed": sum(p.state == "Failed" for p in own),
            }
            counts: Object = {k: n for k, n in numbers.items() if n}
            if self.elastic:
                counts["selector"] = self.selector
            self.counts[replica] = counts

    def child(self, kind: str, name: str, spec: Object) -> Object:
        """A child object, as added."""
        meta = {
            "name": name,
            "namespace": self.namespace,
            "uid": self.sim.uid(),
            "creationTimestamp": stamp(self.sim.now),
            "ownerReferences": self.reference,
        }
        body = {"metadata": meta, "spec": spec}
        self.sim.watch("ADDED", kind, self.namespace, name, meta["uid"], body)
        return body

    def drop(self, kind: str, body: Object) -> None:
        """The child object is deleted."""
        meta = body["metadata"]
        self.sim.watch("DELETED", kind, self.namespace, meta["name"], meta["uid"], body)

    @property
    def workers(self) -> list[_Pod]:
        return sorted((p for p in self.pods if p.replica == "Worker"), key=lambda p: p.index)


class Simulation:
    """A cluster that lives for as long as somebody reads its events."""

    def __init__(self, seed: int, size: Size | None = None) -> None:
        self.size = size or Size()
        self.rng = Random(seed)
        self.now = 0.0
        self.seq = 0
        self._ids = 0
        self._out: list[Event] = []
        self._queue: list[tuple[float, int, Life]] = []
        self.free: dict[str, int] = {}

    def events(self, limit: int) -> Iterator[Event]:
        """About *limit* events; jobs that still run then are left as they are."""
        self._nodes()
        for slot in range(self.size.slots):
            self._queue.append((self.rng.random(), slot, self._slot(slot)))
        heapq.heapify(self._queue)
        while self.seq < limit:
            at, number, life = heapq.heappop(self._queue)
            self.now = max(self.now, at)
            heapq.heappush(self._queue, (self.now + next(life), number, life))
            yield from self._out
            self._out = []

    def event(
        self, source: str, type_: str, kind: str, ns: str, name: str, uid: str, body: Object
    ) -> None:
        """Tell of something."""
        self.seq += 1
        now = round(self.now, 4)
        rv = self.seq + 1000 if source == "watch" else 0
        if source == "progress":
            body = {"t": BEGIN + now, "event": type_, **body}
        self._out.append(
            Event(self.seq, BEGIN + now, now, source, type_, kind, ns, name, uid, rv, body)
        )

    def watch(self, type_: str, kind: str, ns: str, name: str, uid: str, body: Object) -> None:
        """Tell of an object."""
        self.event("watch", type_, kind, ns, name, uid, body)

    def uid(self) -> str:
        """One that nobody has."""
        self._ids += 1
        return f"{self._ids:08x}-0000-4000-8000-{self._ids:012x}"

    def _nodes(self) -> None:
        for n in range(self.size.nodes + 1):
            gpus = self.size.gpus if n else 0
            name = f"n{n}"
            self.free[name] = gpus
            taints = (
                [] if n else [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]
            )
            labels = {"gpu": "yes"} if n else {}
            body = {
                "metadata": {"name": name, "uid": f"node-{n}", "labels": labels},
                "spec": {"taints": taints},
                "status": {"allocatable": {relations.GPU: str(gpus)}},
            }
            self.watch("ADDED", "Node", "", name, f"node-{n}", body)

    def _place(self, pods: list[_Pod]) -> dict[str, str] | None:
        """A node for each pod, reserved; None when they do not all fit."""
        free = dict(self.free)
        found = {}
        for pod in pods:
            names = [n for n in free if n != "n0" and free[n] >= pod.gpus]
            if not names:
                return None
            node = self.rng.choice(names)
            free[node] -= pod.gpus
            found[pod.uid] = node
        self.free = free
        return found

    # the life of jobs --------------------------------------------------------------------------

    def _slot(self, slot: int) -> Life:
        number = 0
        while True:
            number += 1
            namespace = f"t{self.rng.randrange(self.size.namespaces)}"
            yield from self._life(_Job(self, namespace, f"job-{slot}-{number % 5}"))
            yield self.rng.random() * 3

    def _life(self, job: _Job) -> Life:
        rng = self.rng
        job.tell("ADDED")
        yield 0.01
        job.conditions = [("Created", True)]
        job.tell()
        gpus = self.size.nodes * self.size.gpus
        minimum = sum(job.replicas.values())
        group = job.child("PodGroup", job.name, {"minMember": min(minimum, gpus)})
        service = job.child("Service", job.name, {"clusterIP": "None"})
        yield from self._start(job)
        for _ in range(rng.randint(0, self.size.rounds)):
            yield from self._train(job)
            acts = [self._quiet, self._replace, self._kill, self._restart, self._suspend]
            if job.elastic:
                acts += [self._scale, self._scale]
            yield from rng.choice(acts)(job)
        yield from self._train(job)
        yield from self._end(job, failed=not job.elastic and rng.random() < 0.3)
        job.drop("PodGroup", group)
        yield rng.random() * 20
        job.tell("DELETED")
        yield 0.2
        job.drop("Service", service)
        for pod in list(job.pods):
            if pod.state == "Running":
                pod.delete()
        yield rng.random() * 4
        for pod in list(job.pods):
            pod.gone()

    def _start(self, job: _Job) -> Life:
        pods = []
        for replica, number in job.replicas.items():
            for index in range(number):
                pods.append(self._pod(job, replica, index))
                yield 0.005
        job.times = {**job.times, "startTime": stamp(self.now)}
        job.says(*(["-Suspended"] if job.times.get("again") else []))
        yield from self._run(job, pods)
        yield self.rng.random()
        job.says("Running")

    def _pod(self, job: _Job, replica: str, index: int) -> _Pod:
        pod = _Pod(self, job, replica, index, job.gpus if replica == "Worker" else 0)
        job.pods.append(pod)
        return pod

    def _run(self, job: _Job, pods: list[_Pod]) -> Life:
        """Bind pods together, and start them."""
        while (nodes := self._place(pods)) is None:
            yield 0.5 + self.rng.random()
        for pod in pods:
            pod.bind(nodes[pod.uid])
            yield self.rng.random() * 0.1
        for pod in pods:
            pod.tell()
            yield self.rng.random() * 0.2
        for pod in pods:
            pod.be("Running")
            yield self.rng.random() * 0.2

    def _train(self, job: _Job) -> Life:
        if not job.elastic:
            yield self.rng.random() * 5
            return
        pods = job.workers
        generation = f"{self._ids:x}-{self.seq:x}"
        common = {"world": len(pods), "generation": generation, "restart": 0}
        if job.kept:
            for rank, pod in enumerate(pods):
                pod.line("resume", step=job.kept, rank=rank, **common)
        elif job.step:
            job.step = 0
        job.step = job.kept
        for _ in range(self.rng.randint(1, 6)):
            epoch, position = divmod(job.step * BATCH, SAMPLES)
            job.step += 1
            ids = list(range(position, position + BATCH))
            fields = {"step": job.step, "epoch": epoch, "samples": position + BATCH, **common}
            for rank, pod in enumerate(pods):
                pod.line("step", rank=rank, ids=ids[rank :: len(pods)], **fields)
            yield 0.1
            if job.step % EVERY == 0:
                job.kept = job.step
                pods[0].line("checkpoint", rank=0, **fields)

    def _quiet(self, job: _Job) -> Life:
        for _ in range(self.size.quiet):
            for pod in job.pods:
                pod.meta = {**pod.meta, "annotations": {"seen": str(self.seq)}}
                pod.tell()
            yield 1.0

    def _restart(self, job: _Job) -> Life:
        """A container is restarted by the kubelet."""
        pod = self.rng.choice(job.pods)
        pod.restarts += 1
        pod.tell()
        yield 1.0

    def _replace(self, job: _Job) -> Life:
        """A pod fails, and a new one takes its place."""
        old = self.rng.choice(job.pods)
        old.be("Failed")
        yield self.rng.random()
        job.says("Restarting")
        yield from self._again(job, old)

    def _kill(self, job: _Job) -> Life:
        """We delete a pod, and say that training has to go on."""
        old = self.rng.choice(job.pods)
        fault = {"id": f"f{self.seq}"}
        self.event("fault", "inject", "delete-pod", job.namespace, old.name, "", fault)
        old.delete()
        yield 0.1
        if job.elastic:
            wanted = {"kind": job.kind, "namespace": job.namespace, "name": job.name}
            body = {**fault, "recovers": {**wanted, "within_s": 10_000}}
            self.event("fault", "proven", "delete-pod", job.namespace, old.name, "", body)
        job.says("Restarting")
        yield self.rng.random() * 3
        yield from self._again(job, old)

    def _again(self, job: _Job, old: _Pod) -> Life:
        old.gone()
        yield 0.1
        new = self._pod(job, old.replica, old.index)
        job.says("Restarting")
        yield from self._run(job, [new])
        yield self.rng.random()
        job.says("Running")

    def _scale(self, job: _Job) -> Life:
        have = job.workers
        wanted = self.rng.randint(1, self.size.pods)
        job.replicas = {"Worker": wanted}
        job.tell()
        yield self.rng.random()
        for pod in have[wanted:]:
            pod.delete()
        yield self.rng.random()
        for pod in have[wanted:]:
            pod.gone()
        new = [self._pod(job, "Worker", index) for index in range(len(have), wanted)]
        job.says("Running")
        for pod in new:
            nodes = self._place([pod])
            if nodes is None:  # no room for all that is wanted: take it back
                job.replicas = {"Worker": pod.index}
                job.tell()
                for late in new[new.index(pod) :]:
                    late.gone()
                break
            pod.bind(nodes[pod.uid])
            yield 0.1
            pod.be("Running")
        yield self.rng.random()
        job.says("Running")

    def _suspend(self, job: _Job) -> Life:
        job.suspend = True
        job.tell()
        yield 0.1
        for pod in job.pods:
            pod.delete()
        job.says("-Running", "Suspended")
        yield self.rng.random() * 4
        for pod in list(job.pods):
            pod.gone()
        job.count()
        job.tell()
        yield self.rng.random() * 10
        job.suspend = False
        job.tell()
        yield 0.1
        job.says("-Running", "-Suspended")
        yield from self._start(job)

    def _end(self, job: _Job, *, failed: bool) -> Life:
        if failed:
            self.rng.choice(job.pods).be("Failed")
        else:
            for pod in job.pods:
                pod.be("Succeeded")
                yield 0.05
        yield self.rng.random()
        job.times = {**job.times, "completionTime": stamp(self.now)}
        job.says("-Running", "Failed" if failed else "Succeeded")
        left = [pod for pod in job.pods if pod.state == "Running"]
        for pod in left:
            pod.delete()
        yield self.rng.random() * 4
        for pod in left:
            pod.gone()
        job.count()
        job.tell()


def history(seed: int, limit: int = 400, size: Size | None = None) -> list[Event]:
    """A legal history of about *limit* events."""
    return list(Simulation(seed, size).events(limit))


def stamp(seconds: float) -> str:
    """A time as the API writes it."""
    return datetime.fromtimestamp(BEGIN + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
