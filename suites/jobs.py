"""What suites ask of jobs: submitted, waited for, their conditions and pods."""

from __future__ import annotations

from collections.abc import Callable

from clusters.kube import Kube, Object, Resource, conditions

#: labels that training-operator puts on every pod of a job (its API documentation, "labels")
JOB_LABEL = "training.kubeflow.org/job-name"
ROLE_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"


def of(job: str, role: str | None = None) -> str:
    """Label selector of a job's pods, or of those of one role (``worker``, ``ps``)."""
    return f"{JOB_LABEL}={job}" + (f",{ROLE_LABEL}={role}" if role else "")


def wait(
    kube: Kube,
    what: Resource,
    namespace: str,
    name: str,
    until: Callable[[Object], bool],
    *,
    deadline: float,
    why: str,
) -> Object:
    """Wait until the job is as *until* says; returns it."""

    def check(items: list[Object]) -> Object | None:
        return items[0] if items and until(items[0]) else None

    return kube.wait(
        what, check, namespace=namespace, fields=f"metadata.name={name}",
        deadline=deadline, why=why,
    )  # fmt: skip


def wait_condition(
    kube: Kube, what: Resource, namespace: str, name: str, condition: str, *, deadline: float
) -> Object:
    """Wait until a condition of the job is True; returns the job."""
    return wait(
        kube, what, namespace, name, lambda job: conditions(job).get(condition) == "True",
        deadline=deadline, why=f"{what.kind} {namespace}/{name} {condition}",
    )  # fmt: skip


def replicas(job: Object, role: str) -> dict[str, int]:
    """The job's own counts for a role (``Worker``): active, succeeded, failed; 0 where unsaid."""
    counts = (job.get("status", {}).get("replicaStatuses") or {}).get(role) or {}
    return {word: int(counts.get(word) or 0) for word in ("active", "succeeded", "failed")}


def scale(kube: Kube, what: Resource, namespace: str, name: str, workers: int) -> None:
    """Set the number of workers through the scale subresource, as ``kubectl scale`` does."""
    kube.patch(what, name, {"spec": {"replicas": workers}}, namespace, subresource="scale")
