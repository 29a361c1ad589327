"""Probes of jobs: their conditions, their counts, their end."""

from __future__ import annotations

import time
from collections.abc import Callable

from chaos import session
from chaos.activities import activity, promised, promised_of
from clusters.errors import WaitTimeout
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
    return round(time.time() - it.since, 3) if it.since else 0.0


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
    """A job does not get a condition for a while; every change is looked at."""
    it = session.current()

    def bad(items: list[Object]) -> str | None:
        if items and conditions(items[0]).get(condition) == "True":
            return str(items[0]["metadata"]["resourceVersion"])
        return None

    try:
        version = it.kube.wait(
            it.operator.jobs[kind], bad, namespace=it.namespace,
            fields=f"metadata.name={job}", deadline=seconds, why=f"{job} {condition}",
        )  # fmt: skip
    except WaitTimeout:
        return True
    raise AssertionError(f"{kind} {job} is {condition} (version {version})")


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
