"""Fake GPUs, mode ``patched``: capacity and labels written to the nodes.

``status.capacity`` of an extended resource stays while a kubelet runs, and the scheduler honours
it. A kubelet that registers again after its container was made anew may set it to zero
(kubelet: ``reconcileExtendedResource``), so whatever restarts a node calls :func:`restore` before
it says that the node is back.
"""

from __future__ import annotations

from clusters.kube import NODES, Kube, Object
from clusters.topology import GPU, Node, Topology


def node_names(cluster: str, topology: Topology) -> dict[str, Node]:
    """Node name -> node, named as kind names them."""
    names: dict[str, Node] = {}
    for node in topology.each_node():
        suffix = "" if node.index == 0 else str(node.index + 1)
        names[f"{cluster}-{node.role}{suffix}"] = node
    return names


def restore(kube: Kube, nodes: dict[str, Node], *, deadline: float = 30.0) -> None:
    """Write labels and GPU capacity to *nodes*, and wait until the API shows both.

    Raises:
        WaitTimeout: a node does not keep them.
    """
    for name, node in nodes.items():
        if node.labels:
            kube.patch(NODES, name, {"metadata": {"labels": node.labels}})
        if node.gpus:
            count = {GPU: str(node.gpus)}
            kube.patch(
                NODES,
                name,
                {"status": {"capacity": count, "allocatable": count}},
                subresource="status",
            )
    kube.wait(
        NODES,
        lambda items: True if not missing(items, nodes) else None,
        deadline=deadline,
        why="fake GPUs on every node",
    )


def missing(items: list[Object], nodes: dict[str, Node]) -> list[str]:
    """What of the topology the API does not show, one line each."""
    seen = {item["metadata"]["name"]: item for item in items}
    lacking = []
    for name, node in nodes.items():
        item = seen.get(name)
        if item is None:
            lacking.append(f"{name} is not there")
            continue
        labels = item["metadata"].get("labels") or {}
        lacking += [f"{name} lacks label {k}" for k, v in node.labels.items() if labels.get(k) != v]
        for where in ("capacity", "allocatable"):
            got = int(item["status"].get(where, {}).get(GPU, "0"))
            if got != node.gpus:
                lacking.append(f"{name} has {got} GPUs in {where} instead of {node.gpus}")
    return lacking
