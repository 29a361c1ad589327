"""A pod deleted, or evicted."""

from __future__ import annotations

import time

from chaos.errors import FaultError
from chaos.faults.base import Proof, Scope, proof_of_pod
from clusters.cluster import Cluster
from clusters.errors import ApiError
from clusters.kube import PODS, Kube, Object


class DeletePod:
    """Delete a pod; its owner is expected to make another of the same name.

    Args:
        grace: seconds that its processes get; 0 kills them at once.
    """

    name = "delete pod"
    scope = Scope.NAMESPACE

    def __init__(self, cluster: Cluster, namespace: str, pod: str, *, grace: int = 0) -> None:
        self._kube = cluster.kube
        self._namespace = namespace
        self._pod = pod
        self._grace = grace
        self._uid = ""
        self._injected = 0.0

    @property
    def _what(self) -> str:
        return f"pod {self._pod} was deleted with a grace of {self._grace} s"

    def inject(self) -> None:
        """Delete it. Raises FaultError when there is none."""
        pod = self._kube.get(PODS, self._pod, self._namespace)
        if pod is None:
            raise FaultError(f"there is no pod {self._namespace}/{self._pod} to delete")
        self._uid = pod["metadata"]["uid"]
        self._injected = time.time()
        self._kube.delete(PODS, self._pod, self._namespace, grace=self._grace)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The pod is gone, or another one has its name. Raises NotProven."""
        return proof_of_pod(
            self._kube, self._namespace, self._pod, self._gone,
            deadline=deadline, why=f"pod {self._pod} gone or replaced",
        )  # fmt: skip

    def recover(self) -> None:
        """Its owner does."""

    def _gone(self, pods: list[Object]) -> Proof | None:
        uid = pods[0]["metadata"]["uid"] if pods else "(none yet)"
        if uid == self._uid:
            return None
        return Proof(
            self._what,
            {"pod uid before": self._uid, "pod uid now": uid},
            self._injected,
        )


class EvictPod(DeletePod):
    """Ask for a pod's eviction, as a drain does: it gets its grace, and budgets may forbid it."""

    name = "evict pod"

    @property
    def _what(self) -> str:
        return f"pod {self._pod} was evicted"

    def inject(self) -> None:
        """Ask for it. Raises FaultError when there is none, or when it is forbidden."""
        pod = self._kube.get(PODS, self._pod, self._namespace)
        if pod is None:
            raise FaultError(f"there is no pod {self._namespace}/{self._pod} to evict")
        self._uid = pod["metadata"]["uid"]
        self._injected = time.time()
        evict(self._kube, self._namespace, self._pod)


def evict(kube: Kube, namespace: str, pod: str) -> bool:
    """Ask for a pod's eviction; False when it is gone already.

    Raises:
        FaultError: it is refused, by a budget for instance.
    """
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    try:
        kube.request("POST", f"{PODS.path(namespace, pod)}/eviction", body=body)
    except ApiError as error:
        if error.status == 404:
            return False
        raise FaultError(f"the eviction of {namespace}/{pod} is refused: {error}") from error
    return True
