"""Fake GPUs: capacity and labels of the nodes, in either mode.

Mode ``patched``: both are written to the nodes. ``status.capacity`` of an extended resource stays
while a kubelet runs, and the scheduler honours it. A kubelet that registers again after its
container was made anew may set it to zero (kubelet: ``reconcileExtendedResource``), so whatever
restarts a node calls :func:`restore` before it says that the node is back.

Mode ``device-plugin``: the kubelet says what its plugin offers (:mod:`clusters.deviceplugin`), and
only the labels are written.
"""

from __future__ import annotations

from collections.abc import Mapping

from clusters import deviceplugin
from clusters.cluster import Cluster
from clusters.deviceplugin import Offer
from clusters.kube import NODES, Kube, Object
from clusters.topology import GPU, Node, Topology


def node_names(cluster: str, topology: Topology) -> dict[str, Node]:
    """Node name -> node, named as kind names them."""
    names: dict[str, Node] = {}
    for node in topology.each_node():
        suffix = "" if node.index == 0 else str(node.index + 1)
        names[f"{cluster}-{node.role}{suffix}"] = node
    return names


def restore(
    kube: Kube,
    nodes: dict[str, Node],
    offers: Mapping[str, Offer] | None = None,
    *,
    deadline: float = 30.0,
) -> None:
    """Write labels and GPU capacity to *nodes*, and wait until the API shows both.

    Args:
        offers: what device plugins offer, where they say how many GPUs there are.

    Raises:
        WaitTimeout: a node does not keep them.
    """
    for name, node in nodes.items():
        if node.labels:
            kube.patch(NODES, name, {"metadata": {"labels": node.labels}})
        if node.gpus and offers is None:
            kube.patch(NODES, name, written(node.gpus), subresource="status")
    kube.wait(
        NODES,
        lambda items: True if not missing(items, nodes, offers) else None,
        deadline=deadline,
        why="fake GPUs on every node",
    )


def missing(
    items: list[Object], nodes: dict[str, Node], offers: Mapping[str, Offer] | None = None
) -> list[str]:
    """What of the topology, or of *offers*, the API does not show, one line each."""
    seen = {item["metadata"]["name"]: item for item in items}
    lacking = []
    for name, node in nodes.items():
        item = seen.get(name)
        if item is None:
            lacking.append(f"{name} is not there")
            continue
        labels = item["metadata"].get("labels") or {}
        lacking += [f"{name} lacks label {k}" for k, v in node.labels.items() if labels.get(k) != v]
        here = (offers or {}).get(name, Offer(node.gpus))
        for where, wanted in (("capacity", here.count), ("allocatable", here.healthy)):
            got = int(item["status"].get(where, {}).get(GPU, "0"))
            if got != wanted:
                lacking.append(f"{name} has {got} GPUs in {where} instead of {wanted}")
    return lacking


def change(cluster: Cluster, node: str, count: int) -> None:
    """Let a node have *count* GPUs from now on, in the cluster's mode; pods on it stay.

    The API shows it at once, or when the kubelet next tells (:func:`wait`).

    Raises:
        ClusterError: there is no such node, or it has no device plugin where it needs one.
    """
    if deviceplugin.used(cluster):
        deviceplugin.change(cluster, node, Offer(count))
    else:
        cluster.kube.patch(NODES, node, written(count), subresource="status")


def wait(kube: Kube, node: str, count: int, *, deadline: float = 30.0) -> Object:
    """Wait until a node has *count* GPUs for use; the node. Raises WaitTimeout."""

    def so(items: list[Object]) -> Object | None:
        return next((item for item in items if allocatable(item) == count), None)

    return kube.wait(
        NODES, so, fields=f"metadata.name={node}", deadline=deadline,
        why=f"{node} with {count} GPUs for use",
    )  # fmt: skip


def allocatable(node: Object) -> int:
    """GPUs of a node that pods may have."""
    return int((node["status"].get("allocatable") or {}).get(GPU, "0"))


def written(count: int) -> Object:
    """A patch of a node's status: so many GPUs, mode ``patched``."""
    have = {GPU: str(count)}
    return {"status": {"capacity": have, "allocatable": have}}
