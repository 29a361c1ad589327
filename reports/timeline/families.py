"""Which job an object belongs to, by owner references, labels and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles import relations

Object = Mapping[str, Any]

#: labels that name the job of an object, by product
_JOB_LABELS = (
    relations.JOB_NAME,
    "jobset.sigs.k8s.io/jobset-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)


def is_job(kind: str) -> bool:
    """Whether a kind is one whose objects run pods to an end: PyTorchJob, TrainJob, JobSet."""
    return kind == "JobSet" or (kind.endswith("Job") and kind != "CronJob")


def subject(kind: str, namespace: str, name: str) -> str:
    """``Kind namespace/name``, as violations name it; ``Kind name`` without a namespace."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


class Families:
    """Learns from every object, then says whose it is."""

    def __init__(self) -> None:
        self._owner: dict[str, str] = {}
        self._says: dict[str, str] = {}
        self._group_member: dict[str, str] = {}
        self._jobs: dict[tuple[str, str], str] = {}

    def saw(self, kind: str, namespace: str, name: str, found: Object) -> None:
        """Learn from a version of an object."""
        me = subject(kind, namespace, name)
        if is_job(kind):
            self._jobs.setdefault((namespace, name), me)
        meta = found.get("metadata") or {}
        if owner := relations.owner(found):
            self._owner[me] = subject(owner.kind, namespace, owner.name)
        labels = meta.get("labels") or {}
        says = next((labels[key] for key in _JOB_LABELS if labels.get(key)), None)
        if says:
            self._says[me] = says
        if kind == "Pod" and (group := relations.group_name(found)):
            self._group_member.setdefault(f"{namespace}/{group}", me)

    def job(self, kind: str, namespace: str, name: str) -> str | None:
        """Id of the uppermost job above an object (of a job: itself, or the job that made it)."""
        me = subject(kind, namespace, name)
        top, at, seen = (me if is_job(kind) else None), me, {me}
        while (at := self._owner.get(at, "")) and at not in seen:
            seen.add(at)
            if is_job(at.split(" ", 1)[0]):
                top = at
        if top:
            return top
        if me in self._says and (job := self._jobs.get((namespace, self._says[me]))):
            return job
        if kind in ("PodGroup", "PodDisruptionBudget", "Workload"):
            member = self._group_member.get(f"{namespace}/{name}")
            if member and (job := self.job("Pod", namespace, member.rsplit("/", 1)[-1])):
                return job
            return self._jobs.get((namespace, name))
        return None
