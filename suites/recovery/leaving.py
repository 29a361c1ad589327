"""Pods that are told to leave, and take their time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from chaos.faults.base import Proof, proof_of_pod
from clusters import fakepods
from clusters.cluster import Capability, Cluster
from clusters.kube import PODS, Kube, Object
from suites.recovery.hitting import OfPods

#: where pods have no containers they would be gone at once; this keeps them, as a kubelet does
#: until their containers have ended
HELD = "muster.dev/leaving"
#: seconds that such a pod runs on after it was told to leave
LEAVING = 2


class Leave(OfPods):
    """Delete pods with their own grace, as a drained node, an eviction or a scale-down does.

    Such a pod runs on for a while, and is Failed before it is gone, as its program ends badly on
    SIGTERM. Pods without containers are played so, and are gone with :meth:`recover`.

    Args:
        seconds: that pods without containers run on.
    """

    name = "pods told to leave"

    def __init__(
        self, cluster: Cluster, namespace: str, pods: Sequence[str], *, seconds: int = LEAVING
    ) -> None:
        super().__init__(cluster, namespace, pods)
        self._seconds = seconds
        self._hold = Capability.CONTAINERS not in cluster.capabilities

    def inject(self) -> None:
        """Tell them. Raises FaultError when one is not there."""
        self._look("delete")
        if self._hold:
            hold(self._kube, self._namespace, self._pods, seconds=self._seconds)
        self._injected = time.time()
        for name in self._pods:
            self._kube.delete(PODS, name, self._namespace)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """Each of them is leaving or gone, or another has its name. Raises NotProven."""
        for name in self._pods:
            proof_of_pod(
                self._kube, self._namespace, name, lambda pods, n=name: self._leaves(n, pods),  # type: ignore[misc]
                deadline=deadline, why=f"pod {name} leaving",
            )  # fmt: skip
        return Proof(f"{len(self._pods)} pods were told to leave", self._uids, self._injected)

    def recover(self) -> None:
        """They are gone."""
        if self._hold:
            let_go(self._kube, self._namespace, self._pods)

    def _leaves(self, name: str, pods: list[Object]) -> Proof | None:
        pod = pods[0] if pods else None
        same = pod is not None and pod["metadata"]["uid"] == self._uids[name]
        if same and pod is not None and "deletionTimestamp" not in pod["metadata"]:
            return None
        return Proof("leaving", {}, self._injected)


def hold(kube: Kube, namespace: str, pods: Sequence[str], *, seconds: int = LEAVING) -> None:
    """Keep pods that will be deleted; whoever plays their kubelet then says that they Failed."""
    meta = {"finalizers": [HELD], "annotations": {fakepods.LEAVE_FOR: str(seconds)}}
    for name in pods:
        kube.patch(PODS, name, {"metadata": meta}, namespace)


@contextmanager
def held(kube: Kube, namespace: str, pods: Sequence[str]) -> Iterator[None]:
    """Pods that are deleted within are there until the end of it."""
    hold(kube, namespace, pods)
    try:
        yield
    finally:
        let_go(kube, namespace, pods)


def let_go(kube: Kube, namespace: str, pods: Sequence[str]) -> None:
    """The pods that were held are gone."""
    for name in pods:
        found = kube.get(PODS, name, namespace)
        if found is not None and HELD in (found["metadata"].get("finalizers") or []):
            kube.patch(PODS, name, {"metadata": {"finalizers": None}}, namespace)
