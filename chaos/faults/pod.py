"""A pod deleted."""

from __future__ import annotations

import time
from functools import partial

from chaos.errors import FaultError, NotProven
from chaos.faults.base import Proof
from clusters.cluster import Cluster
from clusters.errors import WaitTimeout
from clusters.kube import PODS, Object


class DeletePod:
    """Delete a pod; its owner is expected to make another of the same name.

    Args:
        grace: seconds that its processes get; 0 kills them at once.
    """

    name = "delete pod"

    def __init__(self, cluster: Cluster, namespace: str, pod: str, *, grace: int = 0) -> None:
        self._kube = cluster.kube
        self._namespace = namespace
        self._pod = pod
        self._grace = grace
        self._uid = ""
        self._injected = 0.0

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
        try:
            return self._kube.wait(
                PODS, partial(self._gone), namespace=self._namespace,
                fields=f"metadata.name={self._pod}", deadline=deadline,
                why=f"pod {self._pod} gone or replaced",
            )  # fmt: skip
        except WaitTimeout as error:
            raise NotProven(f"the pod was deleted, but: {error}") from error

    def recover(self) -> None:
        """Its owner does."""

    def _gone(self, pods: list[Object]) -> Proof | None:
        uid = pods[0]["metadata"]["uid"] if pods else "(none yet)"
        if uid == self._uid:
            return None
        return Proof(
            f"pod {self._pod} was deleted with a grace of {self._grace} s",
            {"pod uid before": self._uid, "pod uid now": uid},
            self._injected,
        )
