"""A running cluster, and what can make one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Protocol

from clusters.errors import WrongName
from clusters.kube import Kube
from clusters.topology import Topology
from oracles.errors import NotApplicable, UsageError


class Capability(StrEnum):
    """What a provider can do beyond serving the API."""

    CONTAINERS = "run real containers"
    LOAD_IMAGE = "load an image into its nodes"
    HOST_FOLDERS = "mount folders of the host into pods"
    NODE_EXEC = "run commands on a node"
    NODE_POWER = "stop and start a node"
    OWN_CLUSTER = "change nodes, operators and schedulers"
    LOCAL_PROCESSES = "run a system as a process of this host"
    DEVICE_PLUGIN = "give GPUs out by a device plugin (--gpu-mode device-plugin)"


@dataclass(frozen=True)
class Mount:
    """A folder of the host that appears in every node at the path ``node``."""

    host: Path
    node: str
    read_only: bool = True


#: a node's container is named after it, and a host name has at most 63 characters
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True)
class ClusterSpec:
    """What to create.

    Attributes:
        run: labels whatever is made, so that it can be found after a crash.
        keep: when creation fails, what there is stays for somebody to look into.

    Raises:
        UsageError: a name that containers and folders cannot have.
    """

    name: str
    topology: Topology
    kubernetes: str
    run: str
    mounts: tuple[Mount, ...] = ()
    keep: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"{self.name!r} cannot be a cluster's name",
                hint="up to 40 of a-z, 0-9 and -, beginning and ending with a letter or digit",
            )


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up.

    Attributes:
        shared: a folder of the host that every node sees, read-write, at the same path; None
            where the provider has no host folders. Volumes that outlive pods lie in it.
        container_names: node name -> name of the container it runs in (kind only).
    """

    name: str
    provider: str
    kubernetes: str
    topology: Topology
    kubeconfig: Path
    context: str
    run: str
    capabilities: frozenset[Capability]
    shared: Path | None = None
    container_names: dict[str, str] = field(default_factory=dict)

    @cached_property
    def kube(self) -> Kube:
        """The cluster's API, as its administrator."""
        return Kube(self.kubeconfig, self.context)

    def require(self, *needed: Capability) -> None:
        """Raise NotApplicable, naming what is missing, unless the provider has all of *needed*."""
        missing = [c.value for c in needed if c not in self.capabilities]
        if missing:
            raise NotApplicable(f"provider {self.provider} cannot {', '.join(missing)}")


class ClusterProvider(Protocol):
    """Something that makes clusters. One module per provider in ``clusters.providers``."""

    name: str
    capabilities: frozenset[Capability]

    def prepare(self, kubernetes: Iterable[str], programs: Iterable[str] = ()) -> None:
        """What is done once, before the first cluster: look whether this host is fit for it,
        remove what killed runs left, and say what has to be built first and how long it takes.

        Args:
            kubernetes: versions that clusters are wanted of.
            programs: pinned programs that will be installed, ``NAME`` or ``NAME:VERSION``.

        Raises:
            HarnessError: the host is not fit; names all that is lacking, and how to get it.
        """

    def create(self, spec: ClusterSpec) -> Cluster:
        """Create it and return when all nodes are Ready, DNS answers and the GPUs are there.

        Raises:
            ClusterError: with the reason; nothing of the cluster is left behind.
        """

    def get(self, name: str) -> Cluster:
        """A cluster that is up. Raises ClusterError when there is none of that name."""

    def names(self) -> list[str]:
        """Names of the clusters that this provider made and that still exist."""

    def left_over(self) -> list[str]:
        """Names of those of them that nobody alive wants: their run was killed."""

    def delete(self, name: str) -> None:
        """Remove the cluster and everything made for it; no error when it is gone already."""

    def load_image(
        self, cluster: Cluster, references: Iterable[str], nodes: Iterable[str] | None = None
    ) -> None:
        """Make images of the Docker engine available in these nodes, or in every one."""

    def node_exec(
        self, cluster: Cluster, node: str, command: list[str], *, timeout: float = 30.0
    ) -> str:
        """Run a command on a node; its standard output. Raises CommandError."""

    def stop_node(self, cluster: Cluster, node: str) -> None:
        """Power the node off, without notice to anything on it."""

    def start_node(self, cluster: Cluster, node: str) -> None:
        """Power it on; returns when it is Ready with GPUs, labels and pod routes restored."""

    def restart_kubelet(self, cluster: Cluster, node: str) -> None:
        """Restart the node's kubelet; returns as :meth:`start_node` does."""


def no_such_cluster(name: str, known: list[str]) -> WrongName:
    """The error for a cluster name that is not there."""
    return WrongName(
        f"no cluster named {name!r} is up",
        hint=f"up now: {', '.join(known)}" if known else "python -m clusters up makes one",
    )
