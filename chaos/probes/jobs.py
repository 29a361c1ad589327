"""Probes of jobs: their conditions, their counts, their end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from chaos import session
from chaos.activities import activity, promised, promised_of
from chaos.errors import NotReached
from clusters import waiting
from clusters.kube import PODS, Object, conditions
from oracles.relations import JOB_NAME


@activity
def job_has(
    job: str, condition: str, *, kind: str = "PyTorchJob", within: float = 60,
    status: str = "True", touch: bool = False,
) -> float:  # fmt: skip
    """A job gets a condition; seconds since the last fault.

    Args:
        touch: if it does not, say whether a write to the job helps.
    """
    it = session.current()

    def check(items: list[Object]) -> bool | None:
        return True if items and conditions(items[0]).get(condition) == status else None

    _job(job, kind, check, within, f"{kind} {job} {condition}", touch=touch)
    return round(time.time() - it.happened, 3) if it.happened else 0.0


@activity
def job_is_gone(job: str, *, kind: str = "PyTorchJob", within: float = 60) -> bool:
    """A job is gone, and its pods too."""
    _job(job, kind, lambda items: None if items else True, within, f"{kind} {job} gone")
    it = session.current()
    return promised(
        f"no pods of {job}",
        lambda: it.kube.wait(
            PODS, lambda pods: None if pods else True, namespace=it.namespace,
            labels=f"{JOB_NAME}={job}", deadline=within, why=f"pods of {job} gone",
        ),
    )  # fmt: skip


@activity
def job_never_has(
    job: str, condition: str, *, kind: str = "PyTorchJob", seconds: float = 20
) -> bool:
    """A job is there and does not get a condition for a while: held on the watch."""
    if found := _met(job, condition, kind, seconds):
        raise AssertionError(found)
    return True


@activity
def job_has_not(job: str, condition: str, *, kind: str = "PyTorchJob", seconds: float = 5) -> bool:
    """As :func:`job_never_has`, of what is no promise, but what the fault has to bring about.

    Raises:
        NotReached: it has the condition, so the fault does not do what it was meant to.
    """
    if found := _met(job, condition, kind, seconds):
        raise NotReached(found)
    return True


@activity
def replicas_are(
    job: str, role: str = "Worker", *, active: int, kind: str = "PyTorchJob", within: float = 30
) -> int:
    """The job's own count of a role comes to what it should be."""

    def check(items: list[Object]) -> bool | None:
        if not items:
            return None
        counts = (items[0].get("status", {}).get("replicaStatuses") or {}).get(role) or {}
        return True if int(counts.get("active") or 0) == active else None

    _job(job, kind, check, within, f"{job} counts {active} active {role}")
    return active


def _met(job: str, condition: str, kind: str, seconds: float) -> str:
    """What shows that a job got a condition within so many seconds, or is gone; "" for neither.

    Raises:
        HarnessError: the watch broke, so nobody looked.
    """
    it = session.current()

    def check(jobs: Mapping[str, Object], after: float) -> None:
        if job not in jobs:
            raise _Met(f"there is no {kind} {job} after {after:.1f} s")
        if conditions(jobs[job]).get(condition) == "True":
            version = jobs[job]["metadata"].get("resourceVersion")
            raise _Met(f"{kind} {job} is {condition} (version {version}) after {after:.1f} s")

    try:
        waiting.hold(it.kube, it.operator.jobs[kind], it.namespace, check, seconds=seconds)
    except _Met as met:
        return str(met)
    return ""


class _Met(Exception):
    """Ends a wait."""


def _job(
    job: str, kind: str, check: Callable[[list[Object]], bool | None], within: float, why: str,
    *, touch: bool = False,
) -> None:  # fmt: skip
    it = session.current()

    def wait(deadline: float) -> bool:
        return it.kube.wait(
            it.operator.jobs[kind], check, namespace=it.namespace,
            fields=f"metadata.name={job}", deadline=deadline, why=why,
        )  # fmt: skip

    if touch:
        promised_of(job, why, wait, within, kind=kind)
    else:
        promised(why, lambda: wait(within))
