"""Somebody's own cluster, as found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters import topology
from clusters.cluster import Capability, Cluster, ClusterSpec
from clusters.errors import ClusterError, Unreachable
from clusters.providers import existing, provider
from clusters.providers.embedded import EmbeddedProvider
from clusters.providers.existing import ExistingProvider, describe, lacking
from clusters.providers.kind import KindProvider
from clusters.topology import GPU
from oracles.errors import NotApplicable, UsageError
from tests.clusters.api_server import Request, Server, listed, node, serving

READY = [{"type": "Ready", "status": "True"}]
PLANE = "node-role.kubernetes.io/control-plane"


def found(name: str, gpus: int = 0, *, taints: object = None, **labels: str) -> dict[str, Any]:
    item = node(name, conditions=READY, allocatable={GPU: str(gpus)} if gpus else {})
    item["metadata"]["labels"] = labels
    item["spec"]["taints"] = taints
    return item


def test_providers_by_name() -> None:
    assert isinstance(provider("kind"), KindProvider)
    assert isinstance(provider("embedded"), EmbeddedProvider)
    mine = provider("existing:some:context")
    assert isinstance(mine, ExistingProvider)
    assert mine.name == "existing:some:context"


@pytest.mark.parametrize(
    "name", ["", "kind:x", "embedded:x", "existing", "existing:", "minikube", "Kind"]
)
def test_no_such_provider(name: str) -> None:
    with pytest.raises(UsageError, match="one of kind, embedded, existing:CONTEXT") as caught:
        provider(name)
    assert caught.value.exit_code == 2


# describing


def test_describe() -> None:
    taint = {"key": "t", "value": "v", "effect": "NoSchedule", "timeAdded": "2020"}
    layout = describe(
        [
            found("w1", 4, gpu="yes", zone="x", **{f"{GPU}.product": "H100"}),
            found("m1", taints=[taint], **{PLANE: ""}),
            found("m2", **{PLANE: ""}),
        ]
    )
    plane, worker, second = layout.each_node()
    assert (plane.role, plane.taints[0].key, plane.taints[0].value) == ("control-plane", "t", "v")
    assert worker.gpus == 4
    assert worker.labels["gpu"] == "yes"
    assert "zone" not in worker.labels
    assert second.role == "worker"  # a topology has one control plane; others can run pods
    # GPU feature discovery's own labels win over ours
    assert worker.labels[f"{GPU}.product"] == "H100"


def test_a_managed_control_plane_shows_no_node() -> None:
    layout = describe([found("w1", 2), found("w2")])
    assert [n.role for n in layout.each_node()] == ["control-plane", "worker", "worker"]
    assert layout.gpus == 2


def test_lacking() -> None:
    wanted = topology.load("gpu-2x4")
    labels = {
        "gpu": "yes", f"{GPU}.product": "NVIDIA-A100-SXM4-40GB", f"{GPU}.present": "true",
        f"{GPU}.count": "4", f"{GPU}.memory": "40960",
    }  # fmt: skip
    enough = describe([found("m", **{PLANE: ""}), *(found(n, 4, **labels) for n in ("a", "b"))])
    assert lacking(enough, wanted) == []
    bare = describe([found("m", **{PLANE: ""}), *(found(n, 4, gpu="yes") for n in ("a", "b"))])
    assert f"a worker labelled {GPU}.present=true" in lacking(bare, wanted)
    short = describe([found("m", **{PLANE: ""}), found("a", 2, **{**labels, "gpu": "no"})])
    assert lacking(short, wanted) == [
        "2 worker nodes, it has 1", "8 GPUs, it has 2", "a worker labelled gpu=yes",
    ]  # fmt: skip


# looking


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving(tmp_path) as running:
        monkeypatch.setenv("KUBECONFIG", f"{running.kubeconfig}:/nowhere")
        yield running


def answering(*nodes: dict[str, Any]) -> Callable[[Request], None]:
    def answer(request: Request) -> None:
        if request.path == "/version":
            request.json({"gitVersion": "v1.30.1-gke.5"})
        else:
            listed(*nodes)(request)

    return answer


SPEC = ClusterSpec("any", topology.load("gpu-2x4"), "1.34.4", "run-1")


def test_create_only_looks(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    sick = node("sick", conditions=[{"type": "Ready", "status": "False"}], allocatable={GPU: "8"})
    server.script = [answering(found("m", **{PLANE: ""}), found("a", 2, gpu="yes"), sick)]
    mine = ExistingProvider("it")
    cluster = mine.create(SPEC)
    assert {request.method for request in server.requests} == {"GET"}
    assert (cluster.name, cluster.provider) == ("it", "existing:it")
    assert (cluster.context, cluster.run) == ("it", "run-1")
    assert cluster.kubernetes == "1.30.1-gke.5"
    assert cluster.topology.gpus == 2  # those of nodes that are Ready
    assert cluster.kubeconfig == server.kubeconfig
    assert cluster.shared is None
    assert "existing:it lacks: 8 GPUs, it has 2" in capsys.readouterr().err
    assert mine.get("whatever").name == "it"


def test_nothing_of_it_is_ours(server: Server) -> None:
    mine = ExistingProvider("it")
    assert mine.names() == []
    mine.delete("it")
    assert server.requests == []


def test_what_it_cannot_do_is_not_applicable(server: Server) -> None:
    server.script = [answering(found("a"))]
    mine = ExistingProvider("it")
    cluster = mine.create(SPEC)
    for call in (
        lambda: mine.node_exec(cluster, "a", ["true"]),
        lambda: mine.stop_node(cluster, "a"),
        lambda: mine.start_node(cluster, "a"),
        lambda: mine.restart_kubelet(cluster, "a"),
    ):
        with pytest.raises(NotApplicable, match="existing:it cannot"):
            call()
    cluster.require(Capability.CONTAINERS)
    with pytest.raises(NotApplicable, match="stop and start a node, change nodes"):
        cluster.require(Capability.NODE_POWER, Capability.CONTAINERS, Capability.OWN_CLUSTER)


def test_no_node_is_ready(server: Server) -> None:
    server.script = [answering(node("a"))]
    with pytest.raises(ClusterError, match="none of its 1 nodes is Ready"):
        ExistingProvider("it").create(SPEC)


def test_it_does_not_answer(server: Server) -> None:
    server.stop()
    with pytest.raises(Unreachable, match="no answer"):
        ExistingProvider("it").create(SPEC)


def test_no_such_context(server: Server) -> None:
    with pytest.raises(ClusterError, match="no usable context other"):
        ExistingProvider("other").create(SPEC)


def test_the_kubeconfig_that_has_the_context(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.script = [answering(found("a"))]
    broken, other = tmp_path / "broken", tmp_path / "other"
    broken.write_text("just words")
    other.write_text("contexts: [{name: other}]")
    files = [tmp_path / "nope", broken, other, server.kubeconfig]
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, files)))
    assert ExistingProvider("it").create(SPEC).kubeconfig == server.kubeconfig


def test_no_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nope"))
    with pytest.raises(ClusterError, match=r"(?s)there is no kubeconfig at .*nope.*set KUBECONFIG"):
        ExistingProvider("it").create(SPEC)
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setattr(existing.Path, "home", lambda: tmp_path)
    with pytest.raises(ClusterError, match=r"\.kube/config"):
        ExistingProvider("it").create(SPEC)


# names of clusters


@pytest.mark.parametrize("name", ["a", "muster", "h5-a", "0", "a" * 40])
def test_names_that_can_be(name: str) -> None:
    assert ClusterSpec(name, SPEC.topology, "1", "r").name == name


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a" * 41, "../x", "a/b", "a.b", "ä"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a cluster's name"):
        ClusterSpec(name, SPEC.topology, "1", "r")


def test_clusters_are_values() -> None:
    one = Cluster("a", "kind", "1", SPEC.topology, Path("/k"), "c", "r", frozenset())
    assert one.container_names == {}
