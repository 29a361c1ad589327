"""The kind configuration of a topology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from clusters import deviceplugin, ledger
from clusters.cluster import ClusterSpec
from clusters.engine import capabilities
from clusters.topology import GpuMode, Node

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


def write(spec: ClusterSpec, image: str) -> Path:
    """Write what kind and later commands read into the cluster's folder; that folder."""
    folder = ledger.folder(spec.name)
    (folder / "shared").mkdir(exist_ok=True)
    (folder / "topology.yaml").write_text(yaml.safe_dump(spec.topology.model_dump(mode="json")))
    config = render(spec, image, folder / "shared")
    (folder / "kind.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    return folder


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
        "kubeadmConfigPatches": [yaml.safe_dump(_kubelet(spec)), _cluster_configuration(spec)],
        "nodes": [_node(node, image, mounts) for node in spec.topology.each_node()],
    }
    if capabilities.lacking():
        # the kubelet must not insist on OOM scores and sysctls that this host refuses
        config["featureGates"] = {"KubeletInUserNamespace": True}
    return config


def _kubelet(spec: ClusterSpec) -> dict[str, Any]:
    if spec.topology.gpu.mode is not GpuMode.DEVICE_PLUGIN:
        return KUBELET
    return {
        **KUBELET,
        "nodeStatusUpdateFrequency": deviceplugin.STATUS_EVERY,
        # as it is by default, unless one sets the other
        "nodeStatusReportFrequency": "5m",
    }


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
    """Arguments of the control plane's parts, for a cluster of one that is thrown away."""
    return yaml.safe_dump(
        {
            "kind": "ClusterConfiguration",
            # the disk is the slowest part of most hosts, and nobody needs this data after a crash
            "etcd": {"local": _arguments(spec, {"unsafe-no-fsync": "true"})},
            # nobody to elect among; a lease costs seconds at the start (6 of 31 measured), requests
            # ever after, and on a busy host a lost lease ends the process. The start is also slowed
            # down by the default of 20 requests per second: each controller asks for a token.
            "controllerManager": _arguments(
                spec,
                {
                    "leader-elect": "false",
                    "kube-api-qps": "200",
                    "kube-api-burst": "400",
                    # an autoscaler that shrinks a job would look back on 5 minutes of load
                    "horizontal-pod-autoscaler-downscale-stabilization": "30s",
                },
            ),
            "scheduler": _arguments(spec, {"leader-elect": "false"}),
        }
    )


def _arguments(spec: ClusterSpec, arguments: dict[str, str]) -> dict[str, Any]:
    if int(spec.kubernetes.split(".")[1]) < 36:
        return {"extraArgs": arguments}
    # from there on kind writes kubeadm v1beta4, which takes names and values
    return {"extraArgs": [{"name": name, "value": value} for name, value in arguments.items()]}
