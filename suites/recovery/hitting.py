"""What faults of pods by name have in common."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.errors import FaultError
from chaos.faults.base import Scope
from clusters.cluster import Cluster
from clusters.kube import PODS


class OfPods:
    """A fault of some pods of a namespace, which are told from later ones by their uids."""

    scope = Scope.NAMESPACE

    def __init__(self, cluster: Cluster, namespace: str, pods: Sequence[str]) -> None:
        self._kube = cluster.kube
        self._namespace = namespace
        self._pods = tuple(pods)
        self._uids: dict[str, str] = {}
        self._injected = 0.0

    def _look(self, doing: str) -> None:
        """Note whom it will hit. Raises FaultError when one is not there."""
        for name in self._pods:
            pod = self._kube.get(PODS, name, self._namespace)
            if pod is None:
                raise FaultError(f"there is no pod {self._namespace}/{name} to {doing}")
            self._uids[name] = pod["metadata"]["uid"]
