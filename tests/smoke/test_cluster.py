"""A real small cluster: what a topology promises, and that it survives restarts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters import engine, fakegpus, parts
from clusters.cluster import Cluster
from clusters.engine import probe
from clusters.kube import NAMESPACES, NODES, PODS, Kube, Object, conditions, epoch
from clusters.parts import archive, images
from clusters.providers.kind import KindProvider
from clusters.topology import GPU

pytestmark = pytest.mark.smoke

#: of its own in each run: a namespace takes a while to go
SPACE = f"smoke-{secrets.token_hex(3)}"
KIND = KindProvider()

#: answers every connection with its pod's name; perl is what Debian has even at its smallest
SERVER = r"""
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalPort => 8080, Listen => 5, ReuseAddr => 1) or die "$!";
while (my $peer = $server->accept) { print $peer "hello from $ENV{HOSTNAME}\n"; close $peer }
"""


@pytest.fixture(scope="module")
def nodes(small: Cluster) -> dict[str, str]:
    """Role -> name of the node."""
    plane, worker = small.container_names
    return {"plane": plane, "worker": worker}


@pytest.fixture(scope="module")
def space(kube: Kube) -> Iterator[str]:
    """A namespace, until the module ends."""
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    yield SPACE
    kube.delete(NAMESPACES, SPACE)


def pod(name: str, image: str, **spec: Any) -> Object:
    """A pod of one container."""
    container = {"name": "main", "image": image, "imagePullPolicy": "Never"}
    for key in ("command", "resources"):
        if key in spec:
            container[key] = spec.pop(key)
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }  # fmt: skip


@pytest.fixture(scope="module")
def servers(kube: Kube, space: str, nodes: dict[str, str]) -> dict[str, str]:
    """Role -> name of a pod on that node that answers on port 8080; the worker's has both GPUs."""
    base = parts.base_image()
    command = ["perl", "-e", SERVER]
    gpus = {"limits": {GPU: "2"}}
    anywhere = [{"operator": "Exists"}]
    kube.apply(
        pod("on-worker", base, command=command, resources=gpus),
        pod("on-plane", base, command=command, nodeName=nodes["plane"], tolerations=anywhere),
        namespace=space,
    )
    found = {"worker": "on-worker", "plane": "on-plane"}
    for name in found.values():
        running_since(kube, name, 0.0)
    return found


def running_since(kube: Kube, name: str, since: float) -> Object:
    """The pod, once its container runs, was started at or after *since*, and is Ready."""

    def runs(items: list[Object]) -> Object | None:
        for item in items:
            for status in item["status"].get("containerStatuses") or []:
                started = status["state"].get("running", {}).get("startedAt")
                if started and epoch(started) >= since and conditions(item)["Ready"] == "True":
                    return item
        return None

    return kube.wait(
        PODS, runs, namespace=SPACE, fields=f"metadata.name={name}", deadline=60,
        why=f"{name} running",
    )  # fmt: skip


def talk(kube: Kube, origin: str, target: str) -> str:
    """What *origin* hears from *target*, by its address in the pod network."""
    found = kube.get(PODS, target, SPACE)
    assert found is not None
    address = found["status"]["podIP"]
    script = f"exec 3<>/dev/tcp/{address}/8080 && timeout 5 cat <&3"
    done = kube.exec(SPACE, origin, ["timeout", "8", "bash", "-c", script], timeout=15)
    return done.stdout.strip() or done.stderr.strip()


def assert_whole(small: Cluster, kube: Kube, servers: dict[str, str]) -> None:
    """GPUs, labels, readiness, and traffic between pods of two nodes both ways."""
    items = kube.find(NODES)
    assert (
        fakegpus.missing(items, fakegpus.node_names(f"muster-{small.name}", small.topology)) == []
    )
    assert [conditions(item)["Ready"] for item in items] == ["True"] * 2
    plane, worker = servers["plane"], servers["worker"]
    assert talk(kube, plane, worker) == f"hello from {worker}"
    assert talk(kube, worker, plane) == f"hello from {plane}"


def test_nodes_gpus_labels_and_traffic(
    small: Cluster, kube: Kube, servers: dict[str, str], nodes: dict[str, str]
) -> None:
    assert_whole(small, kube, servers)
    worker = kube.get(NODES, nodes["worker"])
    assert worker is not None
    assert worker["status"]["allocatable"][GPU] == "2"
    assert worker["metadata"]["labels"][f"{GPU}.product"] == "NVIDIA-A100-SXM4-40GB"
    placed = kube.get(PODS, servers["worker"], SPACE)
    assert placed is not None
    assert placed["spec"]["nodeName"] == nodes["worker"]


def test_gpus_that_are_taken_are_taken(kube: Kube, space: str, servers: dict[str, str]) -> None:
    taker = pod("too-much", parts.base_image(), command=["true"], resources={"limits": {GPU: "1"}})
    kube.apply(taker, namespace=space)

    def refused(items: list[Object]) -> str | None:
        for item in items:
            for condition in item["status"].get("conditions") or []:
                if condition.get("reason") == "Unschedulable":
                    return str(condition["message"])
        return None

    reason = kube.wait(
        PODS, refused, namespace=space, fields="metadata.name=too-much", deadline=30,
        why="the pod refused",
    )  # fmt: skip
    assert f"Insufficient {GPU}" in reason
    kube.delete(PODS, "too-much", space, grace=0)


@pytest.mark.parametrize("name", ["kubernetes.default", "kube-dns.kube-system.svc.cluster.local"])
def test_dns(kube: Kube, servers: dict[str, str], name: str) -> None:
    for asker in servers.values():
        done = kube.exec(SPACE, asker, ["getent", "hosts", name])
        assert done.code == 0
        assert done.stdout.startswith("10.96.")


def test_kube_proxy_writes_all_its_rules(kube: Kube, servers: dict[str, str]) -> None:
    """A rule that it cannot write leaves the former ones: services go on with stale endpoints."""
    proxies = kube.find(PODS, "kube-system", labels="k8s-app=kube-proxy")
    assert len(proxies) == 2
    for proxy in proxies:
        log = kube.logs("kube-system", proxy["metadata"]["name"])
        assert "Failed to execute" not in log
        assert "Sync failed" not in log


def test_a_pod_runs_in_an_image_that_was_loaded(
    small: Cluster, kube: Kube, space: str, tmp_path: Path
) -> None:
    """Twice under one name: a node must not go on with the image that it knows by it."""
    reference = "muster/smoke:1"
    program = tmp_path / "program"
    program.write_bytes(probe.program())
    docker = engine.ensure()
    try:
        for attempt, path in enumerate(("/first", "/second")):
            layer = archive.binary_layer(tmp_path / "layer", {path: program})
            images.load(docker, archive.Image([reference], [layer], entrypoint=[path]))
            KIND.load_image(small, [reference])
            # only an image with that very file can run it
            kube.apply(
                pod(f"loaded-{attempt}", reference, command=[path], restartPolicy="Never"),
                namespace=space,
            )

            def ended(items: list[Object]) -> str | None:
                phases = [item["status"].get("phase") for item in items]
                return phases[0] if phases[:1] in (["Succeeded"], ["Failed"]) else None

            phase = kube.wait(
                PODS, ended, namespace=space, fields=f"metadata.name=loaded-{attempt}",
                deadline=60, why=f"the pod with {path}",
            )  # fmt: skip
            assert phase == "Succeeded"
    finally:
        docker.docker("rmi", "-f", reference)


def test_a_restarted_kubelet_keeps_gpus_labels_and_routes(
    small: Cluster, kube: Kube, servers: dict[str, str], nodes: dict[str, str]
) -> None:
    before = kube.get(PODS, servers["worker"], SPACE)
    KIND.restart_kubelet(small, nodes["worker"])
    assert_whole(small, kube, servers)
    after = kube.get(PODS, servers["worker"], SPACE)
    assert before is not None
    assert after is not None
    # it is the kubelet alone that was restarted
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


@pytest.mark.parametrize("role", ["worker", "plane"])
def test_a_node_that_was_off_keeps_gpus_labels_and_routes(
    small: Cluster, kube: Kube, servers: dict[str, str], nodes: dict[str, str], role: str
) -> None:
    off = time.time()
    KIND.stop_node(small, nodes[role])
    running = engine.ensure().docker("ps", "-q", "--filter", f"name=^{nodes[role]}$")
    assert running == "", "it must stay off until it is started"
    KIND.start_node(small, nodes[role])
    running_since(kube, servers[role], off)
    assert_whole(small, kube, servers)


def test_what_a_kubelet_took_away_is_restored(
    small: Cluster, kube: Kube, nodes: dict[str, str]
) -> None:
    """The last test: a kubelet that finds no GPUs may end the pods that had them."""
    worker = nodes["worker"]
    none = {GPU: "0"}
    kube.patch(
        NODES, worker, {"status": {"capacity": none, "allocatable": none}}, subresource="status"
    )
    kube.patch(NODES, worker, {"metadata": {"labels": {f"{GPU}.product": None, "gpu": "no"}}})
    KIND.restart_kubelet(small, worker)
    expected = fakegpus.node_names(f"muster-{small.name}", small.topology)
    assert fakegpus.missing(kube.find(NODES), expected) == []
