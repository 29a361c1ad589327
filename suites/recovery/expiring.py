"""Pods that their kubelet fails, although their containers did nothing wrong."""

from __future__ import annotations

import time

from chaos.faults.base import Proof, proof_of_pod
from clusters.kube import PODS, Object
from suites.recovery.hitting import OfPods

#: what a kubelet gives as the reason of a pod that was active too long
REASON = "DeadlineExceeded"


class ExpirePods(OfPods):
    """Give running pods a deadline that is over, so that their kubelets fail them.

    The field ``activeDeadlineSeconds`` of a pod may be set while it runs. As with an eviction or a
    node that shuts down, the pod becomes Failed with a reason of its own; unlike those it takes a
    second, and no node has to be harmed.
    """

    name = "pods failed by their kubelet"

    def inject(self) -> None:
        """Set the deadlines. Raises FaultError when a pod is not there."""
        self._look("fail")
        self._injected = time.time()
        for name in self._pods:
            self._kube.patch(PODS, name, {"spec": {"activeDeadlineSeconds": 1}}, self._namespace)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """Each pod is Failed for this reason, or is gone: nobody else removes it."""
        for name in self._pods:
            proof_of_pod(
                self._kube, self._namespace, name, lambda pods, n=name: self._over(n, pods),  # type: ignore[misc]
                deadline=deadline, why=f"pod {name} failed by its kubelet",
            )  # fmt: skip
        return Proof(
            f"{len(self._pods)} pods were failed by their kubelets", self._uids, self._injected
        )

    def recover(self) -> None:
        """The operator does."""

    def _over(self, name: str, pods: list[Object]) -> Proof | None:
        pod = pods[0] if pods else None
        if pod is not None and pod["metadata"]["uid"] == self._uids[name]:
            status = pod["status"]
            if status.get("phase") != "Failed" or status.get("reason") != REASON:
                return None
        return Proof("failed by its kubelet", {}, self._injected)
