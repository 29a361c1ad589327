"""Fake GPUs, mode ``device-plugin``: a real device plugin of each node's kubelet.

Its devices are pretended (``parts/deviceplugin.go``); all else is as on nodes with GPUs. Containers
get devices, by ids in ``NVIDIA_VISIBLE_DEVICES``; the node's capacity counts its devices, its
allocatable the healthy ones; and the kubelet refuses a pod for which no healthy device is free,
whoever put it on the node.

What a plugin offers stands in a file of the cluster's shared folder, and can be changed while it
runs (:func:`change`). It is a unit of systemd on its node: it comes back when it ends or the node
was off, and registers again at every new kubelet.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from clusters import parts
from clusters.cluster import Cluster
from clusters.errors import ClusterError
from clusters.parallel import in_parallel
from clusters.topology import GPU, GpuMode

#: the program of ``pins.yaml``
PROGRAM = "device-plugin"
#: the unit that systemd runs it as
UNIT = "muster-gpus"
#: a kubelet tells of its devices when it writes its node's status: every 10 s by default
STATUS_EVERY = "1s"
#: runs ``shell(node, script)`` on a node
Shell = Callable[[str, str], str]

_INSTALL = """
cat >/etc/systemd/system/{unit}.service <<'UNIT'
[Unit]
Description=pretended GPUs
Before=kubelet.service
StartLimitIntervalSec=0
[Service]
ExecStart={program} -resource {resource} -offer {offer}
Restart=always
RestartSec=200ms
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --quiet --now {unit}
"""


@dataclass(frozen=True)
class Offer:
    """What a plugin offers: ``count`` devices, of which ``unhealthy`` (indexes, from 0) are ill."""

    count: int
    unhealthy: tuple[int, ...] = ()

    @property
    def healthy(self) -> int:
        """How many may be given to containers."""
        return self.count - len({index for index in self.unhealthy if index < self.count})


def used(cluster: Cluster) -> bool:
    """Whether the cluster's GPUs are those of device plugins."""
    return cluster.topology.gpu.mode is GpuMode.DEVICE_PLUGIN


def offer(cluster: Cluster, node: str) -> Offer:
    """What a node's plugin is told to offer.

    Raises:
        ClusterError: the node has no plugin.
    """
    try:
        data = json.loads(_file(cluster, node).read_text())
    except OSError:
        raise ClusterError(
            f"{node} of cluster {cluster.name} has no device plugin",
            hint="those nodes have one that have GPUs in a topology of gpu mode device-plugin",
        ) from None
    return Offer(data["count"], tuple(data["unhealthy"]))


def change(cluster: Cluster, node: str, to: Offer) -> None:
    """Let a node's plugin offer something else from now on.

    Its kubelet is told at once; the API shows it when the kubelet next writes the node's status.

    Raises:
        ClusterError: the node has no plugin.
    """
    offer(cluster, node)
    _write(_file(cluster, node), to)


def start(cluster: Cluster, shell: Shell, gpus: dict[str, int]) -> None:
    """Start a plugin on every node that has GPUs (node -> how many).

    Raises:
        PartError: the program cannot be built.
        CommandError: a node does not start it.
    """
    folder = _folder(cluster)
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / PROGRAM
    shutil.copy2(parts.program(PROGRAM) / PROGRAM, program)

    def on(node: str) -> None:
        _write(_file(cluster, node), Offer(gpus[node]))
        words = {"unit": UNIT, "program": program, "resource": GPU, "offer": _file(cluster, node)}
        shell(node, _INSTALL.format(**words))

    in_parallel(on, gpus)


def offers(cluster: Cluster, nodes: Iterable[str]) -> dict[str, Offer] | None:
    """What the plugins of *nodes* offer, where they have one; None in another mode."""
    if not used(cluster):
        return None
    return {node: offer(cluster, node) for node in nodes if _file(cluster, node).exists()}


def _folder(cluster: Cluster) -> Path:
    if cluster.shared is None:
        raise ClusterError(f"cluster {cluster.name} shares no folder with its nodes")
    return cluster.shared / "gpus"


def _file(cluster: Cluster, node: str) -> Path:
    return _folder(cluster) / f"{node}.json"


def _write(path: Path, told: Offer) -> None:
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    partial.write_text(json.dumps(asdict(told)))
    partial.replace(path)  # never read half-written
