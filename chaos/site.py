"""Where things are broken: a cluster, and what can change its nodes."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.errors import FaultError
from clusters.cluster import Capability, Cluster, ClusterProvider
from clusters.errors import CommandError
from clusters.kube import NODES, PODS, Kube, Object
from clusters.providers import provider
from oracles.errors import NotApplicable

#: labels of a node of the control plane, the older name last
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
#: what the engine says of a command in a container that does not run
_OFF = ("is not running", "no such container")


@dataclass(frozen=True)
class Site:
    """A cluster and its provider."""

    cluster: Cluster
    provider: ClusterProvider

    @classmethod
    def of(cls, cluster: Cluster) -> Site:
        """The cluster with the provider that made it."""
        return cls(cluster, provider(cluster.provider))

    @property
    def kube(self) -> Kube:
        """The cluster's API, as its administrator."""
        return self.cluster.kube

    def on(self, node: str, script: str, *, timeout: float = 30.0) -> str:
        """Run a shell script on a node; its output.

        Raises:
            NotApplicable: the provider cannot.
            CommandError: it failed; or the node is off.
        """
        self.cluster.require(Capability.NODE_EXEC)
        return self.provider.node_exec(self.cluster, node, ["bash", "-c", script], timeout=timeout)

    def unit(self, node: str, name: str) -> str:
        """What systemd says of a unit on a node, such as ``active``. Raises as :meth:`on`."""
        return self.on(node, f"systemctl is-active {name} || true").strip()

    def answers(self, node: str) -> bool:
        """Whether the node is on.

        Raises:
            CommandError: nobody can say: it is slow to answer, or the engine is away. That is not
                to be taken for a node that is off, of which nothing would have to be undone.
        """
        try:
            self.on(node, "true")
        except CommandError as error:
            if any(word in f"{error}".lower() for word in _OFF):
                return False
            raise
        return True

    def node(self, name: str) -> Object:
        """A node. Raises FaultError when there is none of that name."""
        found = self.kube.get(NODES, name)
        if found is None:
            raise FaultError(f"{self.cluster.name} has no node {name}")
        return found

    def pod(self, namespace: str, name: str) -> Object:
        """A pod that is there to stay. Raises FaultError when there is none."""
        found = self.kube.get(PODS, name, namespace)
        if found is None:
            raise FaultError(f"there is no pod {namespace}/{name}")
        if "deletionTimestamp" in found["metadata"]:
            raise FaultError(f"pod {namespace}/{name} is ending already")
        return found

    def control_plane(self) -> str:
        """Name of the first node of the control plane.

        Raises:
            NotApplicable: no node says that it is one, as in managed clusters.
        """
        for label in CONTROL_PLANE:
            for item in self.kube.find(NODES, labels=label):
                return str(item["metadata"]["name"])
        raise NotApplicable(f"no node of {self.cluster.name} is known as its control plane")
