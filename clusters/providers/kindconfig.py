"""The kind configuration of a topology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from clusters.cluster import ClusterSpec
from clusters.engine import capabilities
from clusters.topology import Node

#: what every node's kubelet gets; each line says why
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    # images come from the engine, many pods start at once: nothing to be gained from a queue
    "serializeImagePulls": False,
    "registryPullQPS": 0,
    # a host with little free disk must not evict the pods of a test
    "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%"},
    "imageGCHighThresholdPercent": 100,
    # events explain outcomes: none may be dropped
    "eventRecordQPS": 0,
}


def render(spec: ClusterSpec, image: str, shared: Path) -> dict[str, Any]:
    """The configuration; *shared* appears in every node at its own path, read-write."""
    mounts = [{"hostPath": str(shared), "containerPath": str(shared), "readOnly": False}]
    mounts += [
        {"hostPath": str(m.host), "containerPath": m.node, "readOnly": m.read_only}
        for m in spec.mounts
    ]
    config: dict[str, Any] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": {
            "ipFamily": "ipv4",
            "disableDefaultCNI": True,  # see clusters.podnetwork
            "apiServerAddress": "127.0.0.1",
        },
        "kubeadmConfigPatches": [yaml.safe_dump(KUBELET), _cluster_configuration(spec)],
        "nodes": [_node(node, image, mounts) for node in spec.topology.each_node()],
    }
    if capabilities.lacking():
        # the kubelet must not insist on OOM scores and sysctls that this host refuses
        config["featureGates"] = {"KubeletInUserNamespace": True}
    return config


def _node(node: Node, image: str, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {"role": node.role, "image": image, "extraMounts": mounts}
    if node.labels:
        result["labels"] = node.labels
    if node.taints:
        taints = [t.model_dump(exclude_defaults=True) for t in node.taints]
        result["kubeadmConfigPatches"] = [
            yaml.safe_dump({"kind": kind, "nodeRegistration": {"taints": taints}})
            for kind in ("InitConfiguration", "JoinConfiguration")
        ]
    return result


def _cluster_configuration(spec: ClusterSpec) -> str:
    """etcd without fsync: the clusters are thrown away, and the disk is the slowest part."""
    minor = int(spec.kubernetes.split(".")[1])
    arguments: Any = {"unsafe-no-fsync": "true"}
    if minor >= 36:  # from there kind writes kubeadm v1beta4, which takes names and values
        arguments = [{"name": "unsafe-no-fsync", "value": "true"}]
    return yaml.safe_dump(
        {"kind": "ClusterConfiguration", "etcd": {"local": {"extraArgs": arguments}}}
    )
