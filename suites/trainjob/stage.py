"""TrainJobs of controllable pods in one namespace, each with a runtime of its own.

A TrainJob tells less than jobs of ``kubeflow.org/v1`` do: it is Suspended, Complete or Failed, or
has no condition at all while its pods wait or run. What those are doing is seen from the pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clusters.cluster import Cluster
from clusters.errors import ApiError
from clusters.kube import (
    JOBS,
    JOBSETS,
    PODS,
    SERVICES,
    TRAINJOBS,
    Kube,
    Object,
    Resource,
    until_true,
)
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems.operators.trainer_manifests import grouped
from fixtures.workloads import finish, training_runtime, trainjob
from suites import pods, tables
from suites.cast import ANSWER, RUNNING

#: what every test of this suite submits
KIND = TRAINJOBS.kind
#: label of a TrainJob's pods: its JobSet, which has its name (jobset.x-k8s.io, JobSetNameKey)
JOB_LABEL = "jobset.sigs.k8s.io/jobset-name"
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
NODES = 2
#: seconds until a webhook, which reads from a cache, knows a runtime that was just made
KNOWN = 10.0
#: what it says before (pkg/runtime/core/trainingruntime.go)
_UNKNOWN = "specified trainingRuntime must be created before"


def of(job: str) -> str:
    """Label selector of a job's pods."""
    return f"{JOB_LABEL}={job}"


class TrainJobs:
    """See the module."""

    def __init__(self, system: SystemUnderTest, namespace: str, expect: Expecting) -> None:
        self.kube: Kube = system.cluster.kube
        self.namespace = namespace
        #: name -> number of nodes
        self.nodes: dict[str, int] = {}
        self._system = system
        self._cluster: Cluster = system.cluster
        self._expect = expect

    # making ----------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        *,
        nodes: int = NODES,
        spec: Object | None = None,
        job: Object | None = None,
        alter: Callable[[Object], None] = lambda runtime: None,
        **runtime: Any,
    ) -> Object:
        """A runtime, and a job of it that is a gang where the scheduler has gangs.

        Args:
            spec: further fields of the job's spec.
            job: another one instead.
            alter: changes the runtime before it is made.
            runtime: see :func:`fixtures.workloads.training_runtime`.
        """
        scheduler = self._system.scheduler
        common = {"scheduler_name": scheduler.scheduler_name, **grouped(scheduler)}
        made = training_runtime(name, nodes=nodes, **common, **runtime)
        alter(made)
        self.create(made)
        self.nodes[name] = nodes
        return self.submit(job or trainjob(name, nodes=nodes, **(spec or {})))

    def submit(self, job: Object) -> Object:
        """Submit a job whose runtime was made just now: the webhook looks for it in a cache."""
        made: list[Object] = []

        def accepted() -> bool:
            try:
                made.append(self.create(job))
            except ApiError as error:
                if _UNKNOWN not in str(error):
                    raise
            return bool(made)

        until_true(accepted, deadline=KNOWN, every=0.05, why="the webhook knows the job's runtime")
        return made[0]

    def create(self, manifest: Object) -> Object:
        """Make an object in the namespace."""
        return self.kube.create(manifest, namespace=self.namespace)

    def patch(self, name: str, spec: Object) -> Object:
        """Change fields of a job's spec (merge patch)."""
        return self.kube.patch(TRAINJOBS, name, {"spec": spec}, self.namespace)

    def delete(self, name: str) -> None:
        """Delete a job."""
        self.kube.delete(TRAINJOBS, name, self.namespace)

    # telling ---------------------------------------------------------------------------------

    def finish(self, name: str, code: int = 0, *, index: int | None = None) -> None:
        """Let a job's pods that run end with *code*, or the one of a node."""
        for pod in self.pods(name):
            here = pod["metadata"]["labels"].get(INDEX_LABEL)
            if runs(pod) and (index is None or here == str(index)):
                finish(self._cluster, self.namespace, pod["metadata"]["name"], code)

    # seeing ----------------------------------------------------------------------------------

    def job(self, name: str) -> Object | None:
        """A job as it is now."""
        return self.kube.get(TRAINJOBS, name, self.namespace)

    def pods(self, name: str) -> list[Object]:
        """A job's pods, those that are being deleted left out."""
        found = self.kube.find(PODS, self.namespace, labels=of(name))
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def run(self, *names: str, but: Mapping[str, str] | None = None) -> dict[str, str]:
        """Wait until as many pods of jobs (of all, if none are named) run as they have nodes.

        Args:
            but: pods, by uid, that do not count.

        Returns:
            Their uids -> names.
        """
        wanted = {name: self.nodes[name] for name in names or self.nodes}
        gone = but or {}

        def running(pods: list[Object]) -> dict[str, str] | None:
            counts = dict.fromkeys(wanted, 0)
            found = {}
            for pod in pods:
                meta = pod["metadata"]
                job = meta["labels"].get(JOB_LABEL)
                if job in counts and meta["uid"] not in gone and runs(pod):
                    counts[job] += 1
                    found[meta["uid"]] = meta["name"]
            return found if counts == wanted else None

        with self._expect(f"all nodes of {', '.join(wanted)} run"):
            return self.kube.wait(
                PODS, running, namespace=self.namespace, deadline=RUNNING,
                why=f"{sum(wanted.values())} pods running",
            )  # fmt: skip

    def reach(
        self, wanted: Mapping[str, tables.Check], *, deadline: float = ANSWER
    ) -> dict[str, str]:
        """Wait until jobs were once as wanted; see :func:`suites.tables.reach`."""
        return tables.reach(
            self.kube, TRAINJOBS, self.namespace, wanted, deadline=deadline, describe=tables.told
        )

    def children(self) -> tuple[Resource, ...]:
        """Kinds of what is made for a job, the nearest to the pods first."""
        group = self._system.scheduler.group_resource()
        return (PODS, JOBS, SERVICES, JOBSETS, *([group] if group is not None else []))


def runs(pod: Object) -> bool:
    """Whether a pod is there to stay, and all of its containers run."""
    states = pod["status"].get("containerStatuses") or []
    running = bool(states) and all("running" in state.get("state", {}) for state in states)
    return running and "deletionTimestamp" not in pod["metadata"]


def names(items: list[Object]) -> str:
    """Names of objects, for a message; "" for none."""
    return ", ".join(pods.names(items))
