"""What suites ask of pods: bound or not, waited for and held on the watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusters.kube import PODS, Kube, Object, epoch
from clusters.refusals import Refusal, refusal
from clusters.resources import is_bound
from clusters.topology import GPU
from clusters.waiting import describe, hold
from fixtures.workloads import gang_pods
from oracles.errors import InvariantViolation
from oracles.relations import TERMINAL

#: seconds within which pods that have room are bound; a gang was measured at 1-4 on 2 cores
ADMISSION = 60.0
#: seconds for which pods that must not be bound are held unbound on the watch
HOLD = 20.0
#: seconds until a kubelet has looked at a pod that was put on its node, and started it if it can
LOOKED_AT = 30.0


def active(pods: Sequence[Object]) -> list[Object]:
    """Those that have not ended."""
    return [pod for pod in pods if pod["status"].get("phase") not in TERMINAL]


def names(pods: Sequence[Object]) -> list[str]:
    """Names of pods, sorted."""
    return sorted(pod["metadata"]["name"] for pod in pods)


def gpus_of(pod: Object) -> int:
    """GPUs that the pod's containers ask for."""
    asked = 0
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        asked += int((resources.get("limits") or resources.get("requests") or {}).get(GPU, 0))
    return asked


def wait_bound(
    kube: Kube, namespace: str, count: int, *, labels: str = "", deadline: float
) -> list[Object]:
    """Wait until exactly *count* pods exist and all are bound; returns them."""

    def all_bound(pods: list[Object]) -> list[Object] | None:
        return pods if len(pods) == count and all(map(is_bound, pods)) else None

    return kube.wait(
        PODS, all_bound, namespace=namespace, labels=labels, deadline=deadline,
        why=f"{count} pods of {namespace} bound",
    )  # fmt: skip


def wait_created(
    kube: Kube, namespace: str, count: int, *, labels: str = "", deadline: float = 30.0
) -> list[Object]:
    """Wait until *count* pods exist, bound or not; returns them."""
    return kube.wait(
        PODS, lambda pods: pods if len(pods) == count else None,
        namespace=namespace, labels=labels, deadline=deadline,
        why=f"{count} pods of {namespace} created",
    )  # fmt: skip


def block_gpus(kube: Kube, namespace: str, gpus: int) -> list[str]:
    """Occupy *gpus* GPUs with pods of one each, and wait until they do; their names.

    They belong to no gang, so that they are in the way under every scheduler.
    """
    blockers = gang_pods("blocker", gpus, gpus=1)
    for pod in blockers:
        kube.create(pod, namespace=namespace)
    wait_bound(kube, namespace, gpus, labels="app=blocker", deadline=ADMISSION)
    return names(blockers)


def hold_unbound(
    kube: Kube, namespace: str, *, labels: str = "", seconds: float, least: int = 0
) -> int:
    """Hold that no pod is bound, on every change that the watch shows for *seconds*.

    Args:
        least: pods that have to exist all the time for the statement to mean anything; a
            scheduler that keeps pods from being created at all promises with 0.

    Returns:
        How many pods there were at the end.

    Raises:
        InvariantViolation: a pod was bound, with the moment.
        HarnessError: the watch broke, so nobody can say what happened meanwhile.
    """

    def check(pods: Mapping[str, Object], after: float) -> None:
        for pod in pods.values():
            if is_bound(pod):
                raise InvariantViolation(
                    f"pod {pod['metadata']['name']} was bound to {pod['spec']['nodeName']}"
                    f" {after:.1f} s into a time in which no pod of its gang may be bound"
                )

    seen = hold(kube, PODS, namespace, check, labels=labels, seconds=seconds)
    if len(seen) < least:
        raise InvariantViolation(
            f"{len(seen)} pods of {namespace} exist, {least} were to be held unbound: "
            f"{', '.join(sorted(seen)) or 'none'}"
        )
    return len(seen)


def binding_seconds(pods: Sequence[Object]) -> float:
    """Seconds from the first pod's creation to the last one's ``PodScheduled`` (whole seconds)."""
    created = min(epoch(pod["metadata"]["creationTimestamp"]) for pod in pods)
    scheduled = [
        epoch(c["lastTransitionTime"])
        for pod in pods
        for c in pod["status"].get("conditions") or []
        if c["type"] == "PodScheduled" and c["status"] == "True"
    ]
    return max(scheduled, default=created) - created


def wait_running(
    kube: Kube, namespace: str, count: int, *, labels: str = "", deadline: float
) -> list[Object]:
    """Wait until exactly *count* pods exist and all of their containers run; returns them."""

    def running(pod: Object) -> bool:
        states = pod["status"].get("containerStatuses") or []
        return bool(states) and all("running" in s.get("state", {}) for s in states)

    return kube.wait(
        PODS, lambda pods: pods if len(pods) == count and all(map(running, pods)) else None,
        namespace=namespace, labels=labels, deadline=deadline,
        why=f"{count} pods of {namespace} running",
    )  # fmt: skip


def wait_refused(kube: Kube, namespace: str, name: str) -> Refusal:
    """Wait until the kubelet of its node has looked at a pod; why it refused it.

    Raises:
        InvariantViolation: it took the pod, or failed it for a reason of another kind.
    """

    def looked_at(pods: list[Object]) -> Object | None:
        return next((p for p in pods if p["status"].get("phase", "Pending") != "Pending"), None)

    pod = kube.wait(
        PODS, looked_at, namespace=namespace, fields=f"metadata.name={name}", deadline=LOOKED_AT,
        why=f"the kubelet's answer to pod {name}",
    )  # fmt: skip
    found = refusal(pod)
    if found is None:
        raise InvariantViolation(
            f"the kubelet had to refuse pod {name}, for which there is no room: {describe([pod])}"
        )
    return found
