"""Somebody's own cluster, by kubeconfig context: used as it is, nothing outside our namespaces
is touched."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import yaml

from clusters import doctor, fakegpus
from clusters.cluster import Capability, Cluster, ClusterSpec
from clusters.errors import ClusterError
from clusters.kube import NODES, Kube, Object, conditions
from clusters.progress import say
from clusters.topology import GPU, NodeGroup, Taint, Topology
from oracles.errors import NotApplicable


class ExistingProvider:
    """See :class:`clusters.cluster.ClusterProvider`.

    ``create`` only looks: it describes the cluster as a topology, from its nodes as they are, and
    says what of the asked topology is lacking.
    """

    capabilities = frozenset({Capability.CONTAINERS})

    def __init__(self, context: str) -> None:
        self.name = f"existing:{context}"
        self._context = context

    def prepare(self, kubernetes: Iterable[str], programs: Iterable[str] = ()) -> None:
        """See ``ClusterProvider.prepare``: nothing is built for a cluster that is there."""
        doctor.preflight(doctor.ELSEWHERE)

    def create(self, spec: ClusterSpec) -> Cluster:
        """Look at the cluster. Raises ClusterError when it cannot be reached."""
        cluster = self._look(spec.run)
        for line in lacking(cluster.topology, spec.topology):
            say(f"{self.name} lacks: {line}")
        return cluster

    def get(self, name: str) -> Cluster:
        """The cluster; *name* is not needed to find it."""
        return self._look("")

    def names(self) -> list[str]:
        """It is not ours, so it is not listed."""
        return []

    def left_over(self) -> list[str]:
        """None."""
        return []

    def delete(self, name: str) -> None:
        """Nothing of it is ours but namespaces, which their tests remove."""

    def load_image(
        self, cluster: Cluster, references: Iterable[str], nodes: Iterable[str] | None = None
    ) -> None:
        """Its nodes pull images by themselves."""

    def node_exec(
        self, cluster: Cluster, node: str, command: list[str], *, timeout: float = 30.0
    ) -> str:
        """Not possible."""
        self._cannot(Capability.NODE_EXEC)

    def stop_node(self, cluster: Cluster, node: str) -> None:
        """Not possible."""
        self._cannot(Capability.NODE_POWER)

    def start_node(self, cluster: Cluster, node: str) -> None:
        """Not possible."""
        self._cannot(Capability.NODE_POWER)

    def restart_kubelet(self, cluster: Cluster, node: str) -> None:
        """Not possible."""
        self._cannot(Capability.NODE_EXEC)

    def _cannot(self, what: Capability) -> NoReturn:
        raise NotApplicable(f"provider {self.name} cannot {what.value}")

    def _look(self, run: str) -> Cluster:
        kubeconfig = _kubeconfig(self._context)
        kube = Kube(kubeconfig, self._context)
        nodes = kube.find(NODES)
        ready = [n for n in nodes if conditions(n).get("Ready") == "True"]
        if not ready:
            raise ClusterError(f"{self.name}: none of its {len(nodes)} nodes is Ready")
        return Cluster(
            name=self._context,
            provider=self.name,
            kubernetes=kube.version(),
            topology=describe(ready),
            kubeconfig=kubeconfig,
            context=self._context,
            run=run,
            capabilities=self.capabilities,
        )


def _kubeconfig(context: str) -> Path:
    """The first file of KUBECONFIG that has *context*; the usual file when it is not set."""
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    paths = named or [Path.home() / ".kube" / "config"]
    there = [path for path in paths if path.is_file()]
    if not there:
        raise ClusterError(
            f"existing:{context}: there is no kubeconfig at {', '.join(map(str, paths))}",
            hint="set KUBECONFIG to the file that has the context",
        )
    return next((path for path in there if context in _contexts(path)), there[0])


def _contexts(path: Path) -> list[str]:
    try:
        data = yaml.safe_load(path.read_text())
        return [item["name"] for item in data["contexts"]]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return []  # if it is to be used after all, the client says what is wrong with it


def describe(nodes: list[Object]) -> Topology:
    """A topology of nodes as they are; one of them counts as the control plane if none says so."""
    groups = []
    planes = 0
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        plane = "node-role.kubernetes.io/control-plane" in labels and planes == 0
        planes += plane
        groups.append(
            NodeGroup(
                role="control-plane" if plane else "worker",
                gpus=fakegpus.allocatable(node),
                labels={k: v for k, v in labels.items() if k == "gpu" or k.startswith(GPU)},
                taints=[
                    Taint(key=t["key"], value=t.get("value", ""), effect=t["effect"])
                    for t in node["spec"].get("taints") or []
                ],
            )
        )
    if planes == 0:  # a managed control plane shows no node: stand in for it
        groups.insert(0, NodeGroup(role="control-plane"))
    return Topology(name="existing", description="somebody's cluster, as found", nodes=groups)


def lacking(found: Topology, wanted: Topology) -> list[str]:
    """What *found* has less of than *wanted*, one line each."""
    lines = []
    workers = [n for n in found.each_node() if n.role == "worker"]
    # labels as its nodes have them, without those that a topology adds for GPUs
    labels = [group.labels for group in found.nodes if group.role == "worker"]
    needed = [n for n in wanted.each_node() if n.role == "worker"]
    if len(workers) < len(needed):
        lines.append(f"{len(needed)} worker nodes, it has {len(workers)}")
    if found.gpus < wanted.gpus:
        lines.append(f"{wanted.gpus} GPUs, it has {found.gpus}")
    for key, value in {(k, v) for n in needed for k, v in n.labels.items()}:
        if not any(its.get(key) == value for its in labels):
            lines.append(f"a worker labelled {key}={value}")
    return sorted(lines)
