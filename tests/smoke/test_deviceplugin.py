"""A real cluster whose GPUs are those of a device plugin: what its kubelet does with them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from chaos.faults.gpus import SickenGpus, TakeGpus
from chaos.injecting import Injector
from chaos.site import Site
from clusters import deviceplugin, fakegpus, parts
from clusters.cluster import Cluster, ClusterSpec
from clusters.deviceplugin import Offer
from clusters.kube import NAMESPACES, NODES, PODS, Kube, Object, conditions, until_true
from clusters.parts import pins
from clusters.providers import kindnodes
from clusters.providers.kind import KindProvider
from clusters.refusals import UNEXPECTED, Refusal, refusal
from clusters.topology import GPU, load

pytestmark = pytest.mark.smoke

#: name of a cluster in that mode that is up and is used instead of a new one, and the version of
#: Kubernetes of a new one
REUSE, VERSION = "MUSTER_SMOKE_PLUGIN_CLUSTER", "MUSTER_SMOKE_KUBERNETES"
SPACE = f"plugin-{secrets.token_hex(3)}"
KIND = KindProvider()
#: seconds until a kubelet has told of a change
TOLD = 15.0
_SLEEP = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait $!"]


@pytest.fixture(scope="module")
def plugged() -> Iterator[Cluster]:
    """A kind cluster of the topology ``small``, its GPUs in the mode ``device-plugin``."""
    if name := os.environ.get(REUSE):
        yield KIND.get(name)
        return
    name = f"smoke-plugin-{os.getpid()}"
    version = os.environ.get(VERSION) or pins.pins().kubernetes.default
    spec = ClusterSpec(name, load("small").in_mode("device-plugin"), version, "smoke")
    try:
        yield KIND.create(spec)
    finally:
        KIND.delete(name)


@pytest.fixture(scope="module")
def kube(plugged: Cluster) -> Kube:
    """A client of it."""
    return plugged.kube


@pytest.fixture(scope="module")
def worker(plugged: Cluster) -> str:
    """Name of the node with 2 GPUs."""
    return list(plugged.container_names)[1]


@pytest.fixture(scope="module")
def space(kube: Kube) -> Iterator[str]:
    """A namespace, until the module ends."""
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    yield SPACE
    kube.delete(NAMESPACES, SPACE)


@pytest.fixture(autouse=True)
def _whole(plugged: Cluster, kube: Kube, space: str, worker: str) -> Iterator[None]:
    """Before and after each test all GPUs are well, and nobody has one."""
    yield
    deviceplugin.change(plugged, worker, Offer(2))
    for pod in kube.find(PODS, space):
        kube.delete(PODS, pod["metadata"]["name"], space, grace=0)
    kube.wait(
        PODS, lambda found: None if found else True, namespace=space, deadline=60, why="no pods"
    )
    fakegpus.wait(kube, worker, 2, deadline=TOLD)


def submit(kube: Kube, name: str, gpus: int, node: str = "") -> None:
    """A pod that asks for GPUs; with *node*, past the scheduler."""
    container = {
        "name": "main", "image": parts.base_image(), "imagePullPolicy": "Never",
        "command": _SLEEP, "resources": {"limits": {GPU: str(gpus)}},
    }  # fmt: skip
    spec: Object = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if node:
        spec["nodeName"] = node
    kube.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec},
        namespace=SPACE,
    )


def running(kube: Kube, name: str) -> Object:
    """The pod, once its container runs."""

    def runs(found: list[Object]) -> Object | None:
        return next((pod for pod in found if container_of(pod)), None)

    return kube.wait(
        PODS, runs, namespace=SPACE, fields=f"metadata.name={name}", deadline=60, why=f"{name} runs"
    )


def container_of(pod: Object) -> str:
    """Id of its container; "" when that does not run."""
    for status in pod["status"].get("containerStatuses") or []:
        if "running" in status["state"]:
            return str(status["containerID"])
    return ""


def refused(kube: Kube, name: str) -> Refusal:
    """Why its kubelet refused the pod, once it did."""
    return kube.wait(
        PODS, lambda found: next(filter(None, map(refusal, found)), None), namespace=SPACE,
        fields=f"metadata.name={name}", deadline=60, why=f"{name} refused by its kubelet",
    )  # fmt: skip


def devices(kube: Kube, name: str) -> list[str]:
    """The devices that a container was given."""
    done = kube.exec(SPACE, name, ["printenv", "NVIDIA_VISIBLE_DEVICES"])
    return done.stdout.strip().split(",")


def shows(kube: Kube, node: str, capacity: int, allocatable: int) -> None:
    """Wait until the node's status says so."""

    def so(found: list[Object]) -> bool | None:
        status = found[0]["status"]
        have = (status["capacity"].get(GPU), status["allocatable"].get(GPU))
        return True if have == (str(capacity), str(allocatable)) else None

    kube.wait(
        NODES, so, fields=f"metadata.name={node}", deadline=TOLD,
        why=f"{node} with {allocatable} of {capacity} GPUs",
    )  # fmt: skip


def test_the_kubelet_says_how_many_there_are(plugged: Cluster, kube: Kube, worker: str) -> None:
    assert fakegpus.missing(kube.find(NODES), kindnodes.of(plugged)) == []
    # whoever else writes it is corrected: it is not the API that has the GPUs
    kube.patch(NODES, worker, fakegpus.written(7), subresource="status")
    shows(kube, worker, 2, 2)


def test_each_container_gets_devices_of_its_own(kube: Kube, space: str) -> None:
    for name in ("a", "b"):
        submit(kube, name, 1)
    for name in ("a", "b"):
        running(kube, name)
    given = [devices(kube, name) for name in ("a", "b")]
    assert sorted(map(len, given)) == [1, 1]
    assert {*given[0], *given[1]} == {"gpu-0", "gpu-1"}


def test_the_kubelet_refuses_whom_no_scheduler_should_have_sent(
    kube: Kube, space: str, worker: str
) -> None:
    submit(kube, "a", 2)
    before = running(kube, "a")
    submit(kube, "late", 1, node=worker)
    told = refused(kube, "late")
    assert (told.reason, told.resource) == (UNEXPECTED, GPU)
    assert "Requested: 1, Available: 0" in told.message
    assert container_of(running(kube, "a")) == container_of(before)
    kube.delete(PODS, "a", space, grace=0)
    submit(kube, "next", 2)
    running(kube, "next")  # what the refused one did not get is there for others


def test_gpus_vanish_and_fall_ill_under_a_pod(
    plugged: Cluster, kube: Kube, space: str, worker: str
) -> None:
    site = Site(plugged, KIND)
    submit(kube, "a", 2)
    before = running(kube, "a")
    for fault, capacity in (
        (TakeGpus(site, worker), 0),
        (SickenGpus(site, worker, which=[0, 1]), 2),
    ):
        injector = Injector(site)
        try:
            injector(fault)
            shows(kube, worker, capacity, 0)
            assert container_of(running(kube, "a")) == container_of(before)
            submit(kube, "late", 1, node=worker)
            told = refused(kube, "late")
            assert (told.reason, told.resource) == (UNEXPECTED, GPU)
            assert "no healthy devices present" in told.message
        finally:
            injector.close()
        shows(kube, worker, 2, 2)
        kube.delete(PODS, "late", space, grace=0)
        assert container_of(running(kube, "a")) == container_of(before)


def test_it_registers_at_a_new_kubelet(
    plugged: Cluster, kube: Kube, space: str, worker: str
) -> None:
    submit(kube, "a", 1)
    before, given = running(kube, "a"), devices(kube, "a")
    deviceplugin.change(plugged, worker, Offer(2, (int(given[0][-1]),)))
    shows(kube, worker, 2, 1)
    KIND.restart_kubelet(plugged, worker)
    shows(kube, worker, 2, 1)
    after = kube.get(PODS, "a", space)
    assert after is not None
    assert container_of(after) == container_of(before)
    deviceplugin.change(plugged, worker, Offer(2))
    shows(kube, worker, 2, 2)
    submit(kube, "late", 2, node=worker)  # the new kubelet knows what the old one gave away
    assert "Requested: 2, Available: 1" in refused(kube, "late").message


def test_it_comes_back_when_it_dies(plugged: Cluster, kube: Kube, space: str, worker: str) -> None:
    pid = f"systemctl show -p MainPID --value {deviceplugin.UNIT}"
    site = Site(plugged, KIND)
    before = site.on(worker, pid)
    site.on(worker, f"systemctl kill -s KILL {deviceplugin.UNIT}")

    def another() -> bool:
        return site.on(worker, pid).strip() not in ("0", before.strip())

    until_true(another, deadline=TOLD, why="another process of the plugin")
    submit(kube, "a", 2)
    running(kube, "a")


def test_a_node_that_was_off_has_its_gpus_again(
    plugged: Cluster, kube: Kube, space: str, worker: str
) -> None:
    submit(kube, "a", 1)
    running(kube, "a")
    KIND.stop_node(plugged, worker)
    KIND.start_node(plugged, worker)
    nodes = kube.find(NODES)
    assert fakegpus.missing(nodes, kindnodes.of(plugged)) == []
    assert [conditions(node)["Ready"] for node in nodes] == ["True"] * 2
    submit(kube, "b", 1)
    running(kube, "b")
