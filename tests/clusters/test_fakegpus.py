"""Fake GPUs: which nodes lack what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters import fakegpus, topology
from clusters.deviceplugin import Offer
from clusters.errors import WaitTimeout
from clusters.topology import GPU
from tests.clusters.api_server import Request, Server, listed, node, serving

NODES = fakegpus.node_names("muster-x", topology.load("small"))
WORKER = "muster-x-worker"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as running:
        yield running


def whole() -> list[dict[str, Any]]:
    """The nodes as the API shows them when all is well."""
    plane = node("muster-x-control-plane", capacity={}, allocatable={"cpu": "2"})
    worker = node(WORKER, capacity={GPU: "2"}, allocatable={GPU: "2"})
    worker["metadata"]["labels"] = {**NODES[WORKER].labels, "kubernetes.io/hostname": "x"}
    return [plane, worker]


def test_names_are_kinds() -> None:
    assert list(fakegpus.node_names("muster-x", topology.load("gpu-2x4"))) == [
        "muster-x-control-plane", "muster-x-worker", "muster-x-worker2",
    ]  # fmt: skip


def test_nothing_is_missing() -> None:
    assert fakegpus.missing(whole(), NODES) == []
    assert fakegpus.missing([*whole(), node("another")], NODES) == []


def test_what_is_missing() -> None:
    plane, worker = whole()
    assert fakegpus.missing([plane], NODES) == [f"{WORKER} is not there"]

    worker["status"]["allocatable"] = {GPU: "0"}
    assert fakegpus.missing([plane, worker], NODES) == [
        f"{WORKER} has 0 GPUs in allocatable instead of 2"
    ]
    worker["status"]["capacity"] = {}
    assert f"{WORKER} has 0 GPUs in capacity instead of 2" in fakegpus.missing(
        [plane, worker], NODES
    )

    plane, worker = whole()
    del worker["metadata"]["labels"][f"{GPU}.product"]
    worker["metadata"]["labels"]["gpu"] = "no"
    assert fakegpus.missing([plane, worker], NODES) == [
        f"{WORKER} lacks label {GPU}.product", f"{WORKER} lacks label gpu",
    ]  # fmt: skip

    plane, worker = whole()
    plane["status"]["allocatable"] = {GPU: "1"}  # GPUs where the topology has none
    assert len(fakegpus.missing([plane, worker], NODES)) == 1


def test_restore_writes_what_the_topology_says(server: Server) -> None:
    server.script = [lambda r: r.json({}), lambda r: r.json({}), listed(*whole())]
    fakegpus.restore(server.kube, NODES)
    labels, status = server.requests[:2]  # none for the control plane, which has neither
    assert (labels.method, labels.path) == ("PATCH", f"/api/v1/nodes/{WORKER}")
    assert labels.body == {"metadata": {"labels": NODES[WORKER].labels}}
    assert status.path == f"/api/v1/nodes/{WORKER}/status"
    assert status.body == {"status": {"capacity": {GPU: "2"}, "allocatable": {GPU: "2"}}}


def test_what_a_plugin_offers_is_not_written(server: Server) -> None:
    plane, worker = whole()
    worker["status"] |= {"capacity": {GPU: "2"}, "allocatable": {GPU: "1"}}
    server.script = [lambda r: r.json({}), listed(plane, worker)]
    fakegpus.restore(server.kube, NODES, {WORKER: Offer(2, (0,))})
    assert [(r.method, r.path) for r in server.requests] == [
        ("PATCH", f"/api/v1/nodes/{WORKER}"), ("GET", "/api/v1/nodes"),
    ]  # fmt: skip
    assert fakegpus.missing([plane, worker], NODES, {WORKER: Offer(2)}) == [
        f"{WORKER} has 1 GPUs in allocatable instead of 2"
    ]
    assert fakegpus.missing([plane, worker], NODES, {WORKER: Offer(3, (0, 1))}) == [
        f"{WORKER} has 2 GPUs in capacity instead of 3"
    ]


def test_gpus_are_waited_for(server: Server) -> None:
    server.script = [listed(whole()[1])]
    assert fakegpus.wait(server.kube, WORKER, 2)["metadata"]["name"] == WORKER
    assert "fieldSelector" in server.requests[0].query


def test_restore_waits_until_the_api_shows_them(server: Server) -> None:
    bare = [node(item["metadata"]["name"], capacity={}, allocatable={}) for item in whole()]

    def answer(request: Request) -> None:
        if request.method == "PATCH":
            request.json({})
        elif "watch" in request.query:
            request.stream(hold=0.1)
        else:
            listed(*bare)(request)

    server.script = [answer]
    with pytest.raises(WaitTimeout, match="fake GPUs on every node: not within 0 s"):
        fakegpus.restore(server.kube, NODES, deadline=0.4)
