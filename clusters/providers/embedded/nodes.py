"""The nodes of an embedded cluster: as a kubelet would register them, their heartbeats by kwok."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from clusters.errors import ClusterError
from clusters.kube import NODES, Kube, Object, conditions
from clusters.providers.embedded import stages
from clusters.topology import GPU, Node

PLANE = "node-role.kubernetes.io/control-plane"
#: what a usual machine with 8 GPUs has, and how many pods a kubelet takes by default
RESOURCES = {"cpu": "96", "memory": "1024Gi", "ephemeral-storage": "1024Gi", "pods": "110"}
#: taints of nodes that are not Ready, or were lost
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
#: connections that make nodes at the same time
WRITERS = 8


def make(kube: Kube, nodes: Mapping[str, Node], kubernetes: str) -> None:
    """Make them. Raises ApiError."""
    items = [
        node_object(name, node, number, kubernetes)
        for number, (name, node) in enumerate(nodes.items())
    ]
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(kube.create, items))


def node_object(name: str, node: Node, number: int, kubernetes: str) -> Object:
    """A node with its resources, GPUs, labels and taints.

    Args:
        number: gives it its address.
    """
    role = {PLANE: ""} if node.role == "control-plane" else {}
    taints = [taint.model_dump(exclude_defaults=True) for taint in node.taints]
    if node.role == "control-plane" and not taints:
        taints = [{"key": PLANE, "effect": "NoSchedule"}]  # as kubeadm does
    resources = {**RESOURCES, **({GPU: str(node.gpus)} if node.gpus else {})}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    version = f"v{kubernetes}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", stages.KUBELET: stages.ON, **role, **node.labels,
            },
        },
        "spec": {"taints": taints, "podCIDR": "", "providerID": f"muster://{name}"},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "phase": "Running",
            "addresses": [
                {"type": "InternalIP", "address": f"10.97.{number // 250}.{number % 250 + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                {
                    "type": kind, "status": status, "reason": reason, "message": reason,
                    "lastHeartbeatTime": now, "lastTransitionTime": now,
                }
                for kind, status, reason in (
                    ("Ready", "True", "KubeletReady"),
                    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                    ("PIDPressure", "False", "KubeletHasSufficientPID"),
                )
            ],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "bootID": name,
                "machineID": name, "systemUUID": name, "kernelVersion": "fake",
                "osImage": "fake", "containerRuntimeVersion": "fake://1", "kubeletVersion": version,
                "kubeProxyVersion": version,
            },
        },
    }  # fmt: skip


def wait_ready(kube: Kube, names: Mapping[str, Node], *, deadline: float | None = None) -> None:
    """Wait until all of *names* are Ready and may get pods.

    Args:
        deadline: seconds; None: 90, and a fifth of a second more for each.

    Raises:
        WaitTimeout: with what was last seen.
    """
    first = 0  # up to here all are usable: a thousand nodes are not looked at for each event of one

    def ready(items: list[Object]) -> bool | None:
        nonlocal first
        while first < len(items) and _settled(items[first], names):
            first += 1
        if first < len(items):
            return None
        usable = {item["metadata"]["name"] for item in items if _usable(item)}
        first = 0
        return True if names.keys() <= usable else None

    seconds = 90.0 + len(names) / 5 if deadline is None else deadline
    kube.wait(NODES, ready, deadline=seconds, why=f"{len(names)} nodes Ready")


def _settled(item: Object, names: Mapping[str, Node]) -> bool:
    return item["metadata"]["name"] not in names or _usable(item)


def _usable(item: Object) -> bool:
    taints = {taint["key"] for taint in item["spec"].get("taints") or []}
    return conditions(item).get("Ready") == "True" and not taints & {NOT_READY, UNREACHABLE}


def heartbeat(kube: Kube, name: str, *, on: bool) -> None:
    """Let a node's heartbeats come, or no longer.

    Raises:
        ClusterError: no such node.
    """
    if kube.get(NODES, name) is None:
        raise ClusterError(f"there is no node {name!r}")
    labels = {stages.KUBELET: stages.ON if on else "off"}
    kube.patch(NODES, name, {"metadata": {"labels": labels}})
