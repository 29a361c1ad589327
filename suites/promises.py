"""What gang schedulers do not promise, with the reason and who says so: one place for all suites.

A scheduler promises whatever is not listed here; one that nobody listed promises everything, so
that a new one is put to the test. What it promises and breaks is a FAIL, or a KNOWN fault.
"""

from __future__ import annotations

from enum import StrEnum

from fixtures.systems.protocols import GangScheduler
from oracles.errors import NotApplicable


class Promise(StrEnum):
    """What not every gang scheduler promises."""

    GANGS = "gangs"
    GROUP_OBJECT = "a group object that users make for their pods"
    LATE_GROUP = "pods may be there before their group object"
    NEW_MINIMUM = "a group's minimum may be changed while it waits"
    SURPLUS = "pods beyond the minimum may come later"
    FITS = "a gang is admitted only when the nodes have a place for each of its pods"
    PREEMPTION = "a gang of higher priority takes the room of others"
    ROLE_PRIORITY = "priority among the pods of one gang"
    ONE_NODE = "the pods of a gang share a node when they fit"
    QUEUES = "queues with shares"
    RECLAIM = "a queue takes back what it has lent"


_NOT: dict[str, dict[Promise, str]] = {
    "coscheduling": {
        Promise.ONE_NODE: "it scores nodes as the default scheduler does, which knows no gangs"
        " (pkg/coscheduling/README.md)",
        Promise.QUEUES: "it has no queues (pkg/coscheduling/README.md)",
    },
    "kueue": {
        Promise.GROUP_OBJECT: "it makes a Workload from what the pods say of their group",
        Promise.LATE_GROUP: "it makes a Workload from what the pods say of their group",
        Promise.FITS: "it compares sums with a quota, and leaves the placing to the default"
        " scheduler (kueue.sigs.k8s.io, Overview)",
        Promise.NEW_MINIMUM: "all pods that a group names are admitted, there is no minimum"
        " (kueue.sigs.k8s.io, Run Plain Pods)",
        Promise.SURPLUS: "all pods that a group names are admitted, there is no minimum"
        " (kueue.sigs.k8s.io, Run Plain Pods)",
        Promise.ROLE_PRIORITY: "a Workload is admitted as a whole",
        Promise.ONE_NODE: "it gives quota and leaves the placing to the default scheduler",
    },
    "volcano": {
        Promise.LATE_GROUP: "its webhook refuses a pod whose group is not there"
        " (pkg/webhooks/admission/pods/validate)",
        Promise.RECLAIM: "upstream's configuration neither preempts nor reclaims"
        " (installer/volcano-development.yaml)",
        Promise.PREEMPTION: "upstream's configuration neither preempts nor reclaims"
        " (installer/volcano-development.yaml)",
        Promise.ONE_NODE: "its plugin binpack prefers nodes that are in use, and promises none",
    },
    "native": {
        Promise.NEW_MINIMUM: "minCount is immutable in v1alpha2 (kubernetes.io, PodGroup API)",
        Promise.PREEMPTION: "preemption of gangs is behind a gate of its own,"
        " WorkloadAwarePreemption (KEP-5710)",
        Promise.ONE_NODE: "it scores nodes as the default scheduler does",
        Promise.QUEUES: "it has no queues",
    },
    "default": {
        Promise.GANGS: "it places pod by pod",
        Promise.FITS: "it places pod by pod",
        Promise.PREEMPTION: "it preempts pods and knows no gangs",
        Promise.QUEUES: "it has no queues",
    },
}


def require(scheduler: GangScheduler, *promises: Promise) -> None:
    """Raise NotApplicable, with the reason, for the first of *promises* that is none of its."""
    for promise in promises:
        if (reason := why_not(scheduler.name, promise)) is not None:
            raise NotApplicable(f"{scheduler.name} does not promise {promise}: {reason}")


def require_gang_jobs(scheduler: GangScheduler) -> None:
    """Raise NotApplicable where the jobs of an operator are no gangs."""
    if not scheduler.gang_jobs:
        raise NotApplicable(f"under {scheduler.name} an operator's jobs are no gangs")


def why_not(scheduler: str, promise: Promise) -> str | None:
    """Why the scheduler of that name does not promise it; None when it does."""
    return _NOT.get(scheduler, {}).get(promise)


def names() -> list[str]:
    """The schedulers that are listed."""
    return sorted(_NOT)
