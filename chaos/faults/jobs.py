"""What is done to jobs through the API: scaled, suspended, resumed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from chaos.errors import FaultError, NotProven
from chaos.faults.base import Planned, Proof, Scope
from chaos.site import Site
from chaos.undo.steps import Patch, Step
from clusters.errors import WaitTimeout
from clusters.kube import Object, Resource
from oracles.relations import JOB_NAME


class _JobFault(Planned):
    scope = Scope.NAMESPACE

    def __init__(self, site: Site, what: Resource, namespace: str, job: str) -> None:
        super().__init__(site)
        self.namespace = namespace
        self.job = job
        self._what = what
        self._done = 0.0

    @property
    def about(self) -> str:
        """Which job."""
        return f"{self.namespace}/{self.job}"

    def _job(self) -> Object:
        found = self.site.kube.get(self._what, self.job, self.namespace)
        if found is None:
            raise FaultError(f"there is no {self._what.kind} {self.about}")
        return found

    def _patch(self, body: Object, uid: str, subresource: str = "") -> Patch:
        return Patch.of(
            self._what, self.job, body, self.namespace, subresource=subresource, uid=uid
        )

    def _wait(self, pods: int, deadline: float, why: str) -> list[Object]:
        from clusters.kube import PODS

        def there(items: list[Object]) -> list[Object] | None:
            here = [item for item in items if "deletionTimestamp" not in item["metadata"]]
            return here if len(here) == pods else None

        try:
            return self.site.kube.wait(
                PODS, there, namespace=self.namespace, deadline=deadline, why=why,
                labels=f"{JOB_NAME}={self.job},{self._labels}".rstrip(","),
            )  # fmt: skip
        except WaitTimeout as error:
            raise NotProven(f"it was written, but: {error}") from error

    _labels = ""


class ScaleJob(_JobFault):
    """Change the number of workers through the scale subresource, as ``kubectl scale`` does."""

    name = "scale job"
    _labels = "training.kubeflow.org/replica-type=worker"

    def __init__(self, site: Site, what: Resource, namespace: str, job: str, workers: int) -> None:
        super().__init__(site, what, namespace, job)
        self.workers = workers
        self.before = -1

    def look(self) -> Sequence[Step]:
        """Its number of workers now; the number is written back."""
        job = self._job()
        self.before = int(job["spec"]["pytorchReplicaSpecs"]["Worker"].get("replicas", 1))
        if self.before == self.workers:
            raise FaultError(f"{self.about} has {self.workers} workers already")
        return [self._patch({"spec": {"replicas": self.before}}, job["metadata"]["uid"], "scale")]

    def inject(self) -> None:
        """Write the number."""
        self.plan()
        self._done = time.time()
        self.site.kube.patch(
            self._what, self.job, {"spec": {"replicas": self.workers}}, self.namespace,
            subresource="scale",
        )  # fmt: skip

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """There are so many pods of workers. Raises NotProven."""
        pods = self._wait(self.workers, deadline, f"{self.workers} workers of {self.about}")
        names = ", ".join(sorted(pod["metadata"]["name"] for pod in pods))
        return Proof(
            f"{self.about} was scaled from {self.before} to {self.workers} workers",
            {"workers before": str(self.before), "pods now": names},
            self._done,
        )


class SuspendJob(_JobFault):
    """Suspend a job; it is resumed when the fault is undone."""

    name = "suspend job"

    def look(self) -> Sequence[Step]:
        """Whether it runs; resuming undoes it."""
        job = self._job()
        if (job["spec"].get("runPolicy") or {}).get("suspend"):
            raise FaultError(f"{self.about} is suspended already")
        body = {"spec": {"runPolicy": {"suspend": False}}}
        return [self._patch(body, job["metadata"]["uid"])]

    def inject(self) -> None:
        """Suspend it."""
        self.plan()
        self._done = time.time()
        body = {"spec": {"runPolicy": {"suspend": True}}}
        self.site.kube.patch(self._what, self.job, body, self.namespace)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """It has no pods. Raises NotProven."""
        self._wait(0, deadline, f"no pods of {self.about}")
        return Proof(f"{self.about} is suspended", {"pods": "0"}, self._done)
