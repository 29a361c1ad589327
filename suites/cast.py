"""Jobs of controllable pods in one namespace, and what they are told to do."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from clusters import fakepods
from clusters.cluster import Capability
from clusters.kube import PODS, PYTORCHJOBS, TFJOBS, Kube, Object, Resource, conditions, epoch
from clusters.resources import touched
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems.protocols import Feature
from fixtures.workloads import (
    Program,
    control,
    elastic_program_job,
    job_folder,
    pytorchjob,
    tfjob,
)
from oracles.errors import NotApplicable
from suites import jobs, tables

KINDS: dict[str, Resource] = {"PyTorchJob": PYTORCHJOBS, "TFJob": TFJOBS}
#: the role that decides a job's end where it is there, in lower case as labels have it
LEADERS = {"PyTorchJob": "master", "TFJob": "chief"}
#: seconds until all pods of some twenty small jobs run; measured 8 to 25 on 2 busy cores
RUNNING = 120.0
#: seconds until the operator has answered what its pods did: a second or two, but 23 were measured
#: on 2 cores at a load average of 130
ANSWER = 30.0


def needs(system: SystemUnderTest, feature: Feature) -> None:
    """Raise NotApplicable, with the reason, when the operator lacks *feature*."""
    operator = system.operator
    if why := operator.lacks(feature, system.cluster.kubernetes, system.scheduler):
        raise NotApplicable(f"{operator.name} {operator.version}: {why}")


def at(job: Object, field: str) -> float:
    """A time of a job's status, in seconds since 1970; 0 where it is not set."""
    text = job.get("status", {}).get(field)
    return epoch(text) if text else 0.0


class Cast:
    """See the module.

    Pods obey the control file of their job. Where pods have no containers, they are ended by what
    plays their kubelet: an order then goes to the pods that run, once.
    """

    def __init__(self, system: SystemUnderTest, namespace: str, expect: Expecting) -> None:
        self.kube: Kube = system.cluster.kube
        self.namespace = namespace
        self.kinds: dict[str, Resource] = {}
        self.pods: dict[str, int] = {}
        self._cluster = system.cluster
        self._real = Capability.CONTAINERS in system.cluster.capabilities
        self._expect = expect

    # making ----------------------------------------------------------------------------------

    def add(
        self,
        kind: str,
        name: str,
        *,
        others: int = 1,
        role: str = "worker",
        restart: str = "OnFailure",
        policy: Object | None = None,
        **more: Any,
    ) -> Object:
        """A job with a leader (master, chief) and *others* pods of one *role*.

        Where *role* is the leader's own, the others are workers.
        """
        program = more.pop("program", None) or Program(beat_ms=1000)
        common: dict[str, Any] = {
            "program": program,
            **self._folder(name),
            "restart_policy": restart,
            "run_policy": policy,
            **more,
        }
        if kind == "PyTorchJob":
            return self.create(pytorchjob(name, workers=others, **common))
        role = "worker" if role == LEADERS[kind] else role
        counts: dict[str, Any] = {"ps": 0, "workers": 0, "evaluator": 0}
        counts[{"worker": "workers"}.get(role, role)] = others
        return self.create(tfjob(name, chief=1, gpus=0, **counts, **common))

    def workers(self, kind: str, name: str, count: int, **more: Any) -> Object:
        """A job of workers only."""
        common: dict[str, Any] = {
            "program": Program(beat_ms=1000),
            **self._folder(name),
            **more,
        }
        if kind == "PyTorchJob":
            return self.create(pytorchjob(name, master=False, workers=count, **common))
        return self.create(tfjob(name, ps=0, workers=count, gpus=0, **common))

    def elastic(self, name: str, count: int, **more: Any) -> Object:
        """An elastic job of *count* workers."""
        common: dict[str, Any] = {
            "program": Program(beat_ms=1000),
            **self._folder(name),
            "low": 1,
            "high": 4,
            **more,
        }
        return self.create(elastic_program_job(name, workers=count, **common))

    def create(self, manifest: Object) -> Object:
        """Submit a job, and count it among those that :meth:`run` waits for."""
        name = manifest["metadata"]["name"]
        self.kinds[name] = KINDS[manifest["kind"]]
        (roles,) = (v for k, v in manifest["spec"].items() if k.endswith("ReplicaSpecs"))
        self.pods[name] = sum(role["replicas"] for role in roles.values())
        return self.kube.create(manifest, namespace=self.namespace)

    def run(self) -> dict[str, Object]:
        """Wait until all pods of all jobs run and the jobs say so; the pods by name."""
        total = sum(self.pods.values())

        def running(pods: list[Object]) -> list[Object] | None:
            ours = [p for p in pods if p["metadata"]["labels"].get(jobs.JOB_LABEL) in self.pods]
            return ours if len(ours) == total and all(map(_runs, ours)) else None

        with self._expect(f"all {total} pods of {len(self.pods)} jobs run"):
            found = self.kube.wait(
                PODS, running, namespace=self.namespace, deadline=RUNNING,
                why=f"{total} pods running",
            )  # fmt: skip
        late = self.reach({name: tables.true("Running") for name in self.pods})
        assert not late, f"all pods run, but jobs do not say so: {late}"
        return {pod["metadata"]["name"]: pod for pod in found}

    # telling ---------------------------------------------------------------------------------

    def tell(self, job: str, *orders: str) -> None:
        """Make *orders* (:func:`fixtures.workloads.order`) the ones in force for a job's pods."""
        if self._real:
            control(job_folder(self._cluster, self.namespace, job), *orders)
            return
        for pod in self.of(job):
            for line in orders:
                if _runs(pod) and (code := _obeyed(pod, line)) is not None:
                    fakepods.finish(self.kube, self.namespace, pod["metadata"]["name"], code)
                    break

    def _folder(self, job: str) -> dict[str, Any]:
        """The folder through which real pods are told, as an argument of a job's builder."""
        return {"shared": job_folder(self._cluster, self.namespace, job)} if self._real else {}

    def touch(self, job: str) -> None:
        """Write to a job what means nothing, so that the operator looks at it."""
        self.kube.patch(self.kinds[job], job, touched(), self.namespace)

    def patch(self, job: str, body: object) -> Object:
        """Change a job (merge patch)."""
        return self.kube.patch(self.kinds[job], job, body, self.namespace)

    # seeing ----------------------------------------------------------------------------------

    def job(self, name: str) -> Object | None:
        """A job as it is now."""
        return self.kube.get(self.kinds[name], name, self.namespace)

    def of(self, name: str) -> list[Object]:
        """A job's pods, those that are being deleted left out."""
        pods = self.kube.find(PODS, self.namespace, labels=jobs.of(name))
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def reach(
        self, wanted: Mapping[str, tables.Check], *, deadline: float = ANSWER
    ) -> dict[str, str]:
        """Wait until jobs were once as wanted; see :func:`suites.tables.reach`."""
        own = {
            what: {name: check for name, check in wanted.items() if self.kinds[name] is what}
            for what in dict.fromkeys(self.kinds[name] for name in wanted)
        }

        def wait(what: Resource) -> dict[str, str]:
            return tables.reach(
                self.kube, what, self.namespace, own[what], deadline=deadline, describe=tables.told
            )

        # at once: what jobs of one kind were meanwhile is not to be missed over the other's
        with ThreadPoolExecutor(max_workers=max(1, len(own))) as pool:
            late: dict[str, str] = {}
            for found in pool.map(wait, own):
                late |= found
        return late

    def uids(self) -> dict[str, str]:
        """Pod -> uid, of all pods of the namespace."""
        pods = self.kube.find(PODS, self.namespace)
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def _runs(pod: Object) -> bool:
    states = pod["status"].get("containerStatuses") or []
    return bool(states) and all("running" in state.get("state", {}) for state in states)


def _obeyed(pod: Object, line: str) -> int | None:
    """The exit code that an order means for *pod*; None: it is for others."""
    verb, *words = line.split()
    options = dict(word.split("=", 1) for word in words if "=" in word)
    meta = pod["metadata"]
    own = {
        "pod": meta["name"],
        "role": meta["labels"].get(jobs.ROLE_LABEL),
        "rank": meta["labels"].get(jobs.INDEX_LABEL),
    }
    if any(options[key] != own[key] for key in own if key in options):
        return None
    if verb == "finish":
        return 0
    return int(next((word for word in words if "=" not in word), "1"))


def failed(job: Object | None) -> bool:
    """Whether a job is Failed."""
    return job is not None and conditions(job).get("Failed") == "True"
