"""A real embedded cluster: control plane, scheduler and operator are, nodes and pods are not."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from clusters import belonging, fakegpus, ledger, local
from clusters.cluster import Capability, Cluster, ClusterSpec
from clusters.kube import (
    NAMESPACES,
    NODES,
    PODS,
    TFJOBS,
    Kube,
    Object,
    Resource,
    conditions,
    until_true,
)
from clusters.parts import pins
from clusters.providers import embedded
from clusters.providers.embedded import provider as making
from clusters.topology import GPU, load
from fixtures.systems import registry
from fixtures.workloads import Program, finish, gang_pods, tfjob
from oracles.errors import NotApplicable

pytestmark = pytest.mark.smoke

NAME = "smoke-e"
EMBEDDED = embedded.EmbeddedProvider()
ACCOUNTS = Resource("v1", "serviceaccounts", "ServiceAccount")
SCHEDULER = registry.scheduler("coscheduling")
OPERATOR = registry.operator("training-operator")
#: seconds for what takes one or two on a free machine
SOON = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """With scheduler and operator; when it is deleted, nothing of it is left."""
    making.sweep()
    name = f"{NAME}{os.getpid()}"
    spec = ClusterSpec(name, load("thread"), pins.pins().kubernetes.default, "smoke")
    folder = ledger.folder(name)
    try:
        made = EMBEDDED.create(spec)
        SCHEDULER.install(made)
        OPERATOR.install(made, SCHEDULER)
        assert len(belonging.alive(folder)) >= 8
        yield made
    finally:
        EMBEDDED.delete(name)
    assert belonging.alive(folder) == []
    assert not folder.exists()
    assert name not in EMBEDDED.names()


@pytest.fixture(scope="module")
def kube(cluster: Cluster) -> Kube:
    """A client of it."""
    return cluster.kube


@pytest.fixture
def space(kube: Kube) -> Iterator[str]:
    """A namespace of the test's own, in which pods can be made."""
    name = f"smoke-{secrets.token_hex(3)}"
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    kube.wait(
        ACCOUNTS, lambda found: True if found else None, namespace=name,
        fields="metadata.name=default", deadline=SOON, why="its service account",
    )  # fmt: skip
    yield name
    kube.delete(NAMESPACES, name)


def gang(kube: Kube, space: str, name: str, count: int) -> None:
    """A gang of pods with a GPU each."""
    kube.create(SCHEDULER.group(name, space, count))
    for pod in gang_pods(name, count, gpus=1, image="none"):
        SCHEDULER.join(pod, name)
        kube.create(pod, namespace=space)


def wait(kube: Kube, space: str, name: str, phase: str, count: int) -> list[Object]:
    """The pods of *name*, once *count* are in that phase."""

    def there(pods: list[Object]) -> list[Object] | None:
        found = [pod for pod in pods if pod["status"].get("phase") == phase]
        return found if len(found) == count else None

    return kube.wait(
        PODS, there, namespace=space, labels=f"app={name}", deadline=SOON,
        why=f"{count} pods of {name} {phase}",
    )  # fmt: skip


def test_nodes_are_as_the_topology_says(cluster: Cluster, kube: Kube) -> None:
    nodes = {item["metadata"]["name"]: item for item in kube.find(NODES)}
    expected = making.of(cluster)
    assert fakegpus.missing(list(nodes.values()), expected) == []
    assert [conditions(item)["Ready"] for item in nodes.values()] == ["True"] * 3
    plane, worker, _ = expected
    (taint,) = nodes[plane]["spec"]["taints"]
    assert taint["key"] == "node-role.kubernetes.io/master"
    assert nodes[worker]["status"]["allocatable"][GPU] == "4"
    assert "taints" not in nodes[worker]["spec"]


def test_a_gang_is_bound_whole_or_not_at_all(kube: Kube, space: str) -> None:
    """Nine on eight GPUs are refused; the eight that come after them are bound, and run."""
    gang(kube, space, "nine", 9)
    kube.wait(
        PODS, lambda pods: True if len(pods) == 9 and all(map(refused, pods)) else None,
        namespace=space, labels="app=nine", deadline=SOON, why="all nine refused",
    )  # fmt: skip
    gang(kube, space, "eight", 8)
    pods = wait(kube, space, "eight", "Running", 8)
    assert {conditions(pod)["Ready"] for pod in pods} == {"True"}
    assert len({pod["status"]["podIP"] for pod in pods}) == 8
    nine = kube.find(PODS, space, labels="app=nine")
    assert [pod["spec"].get("nodeName") for pod in nine] == [None] * 9
    kube.delete(PODS, "eight-0", space)


def refused(pod: Object) -> bool:
    """Whether the scheduler has said that it does not fit."""
    found = pod["status"].get("conditions") or []
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in found)


def test_a_pod_ends_when_it_is_told(cluster: Cluster, kube: Kube, space: str) -> None:
    (pod,) = gang_pods("told", 1, image="none", restart_policy="OnFailure")
    kube.create(pod, namespace=space)
    wait(kube, space, "told", "Running", 1)
    finish(cluster, space, "told-0", 3)

    def again(pods: list[Object]) -> Object | None:
        (status,) = pods[0]["status"]["containerStatuses"]
        return status if status["restartCount"] == 1 and "running" in status["state"] else None

    status = kube.wait(PODS, again, namespace=space, deadline=SOON, why="its second run")
    assert status["lastState"]["terminated"]["exitCode"] == 3
    finish(cluster, space, "told-0")
    (ended,) = wait(kube, space, "told", "Succeeded", 1)
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_a_job_of_the_operator_succeeds(kube: Kube, space: str) -> None:
    program = Program(seconds=1)
    job = tfjob("job", ps=0, workers=2, gpus=1, program=program, image="none")
    kube.create(job, namespace=space)
    kube.wait(
        TFJOBS,
        lambda jobs: True if any(conditions(j).get("Succeeded") == "True" for j in jobs) else None,
        namespace=space, deadline=SOON, why="the job Succeeded",
    )  # fmt: skip


def test_a_lost_node_is_noticed_and_comes_back(cluster: Cluster, kube: Kube) -> None:
    name = list(making.of(cluster))[-1]
    EMBEDDED.stop_node(cluster, name)
    kube.wait(
        NODES,
        lambda nodes: True if conditions(nodes[0]).get("Ready") == "Unknown" else None,
        fields=f"metadata.name={name}", deadline=SOON, why=f"{name} is not Ready",
    )  # fmt: skip
    EMBEDDED.start_node(cluster, name)
    assert fakegpus.missing(kube.find(NODES), making.of(cluster)) == []


def test_systems_are_restarted_and_tell(cluster: Cluster) -> None:
    processes = local.of(cluster)
    before = processes.state("training-operator")
    OPERATOR.restart(cluster)
    after = processes.state("training-operator")
    assert before is not None
    assert after is not None
    assert before.pid != after.pid
    assert "Certs ready" in OPERATOR.logs(cluster)["training-operator"]
    assert SCHEDULER.logs(cluster)


def test_what_it_cannot_is_not_applicable(cluster: Cluster) -> None:
    with pytest.raises(NotApplicable, match="provider embedded cannot run real containers"):
        cluster.require(Capability.CONTAINERS)
    with pytest.raises(NotApplicable, match="embedded provider runs no images"):
        registry.operator("training-operator@image:a/b:c").install(cluster, SCHEDULER)


_MAKER = """
import sys
from clusters.cluster import ClusterSpec
from clusters.providers.embedded import EmbeddedProvider
from clusters.topology import load
EmbeddedProvider().create(ClusterSpec(sys.argv[1], load("small"), sys.argv[2], "killed"))
"""


def test_what_a_killed_process_left_is_swept(cluster: Cluster) -> None:
    """While another cluster is up, which must not notice."""
    name = f"{NAME}killed{os.getpid()}"
    folder = ledger.folder(name)
    arguments = [sys.executable, "-c", _MAKER, name, cluster.kubernetes]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as maker:
        try:
            until_true(
                lambda: len(belonging.alive(folder)) > 3, deadline=SOON, why="it began", every=0.05
            )
        finally:
            maker.send_signal(signal.SIGKILL)
    assert EMBEDDED.left_over() == [name]
    assert belonging.alive(folder) != []
    making.sweep()
    assert belonging.alive(folder) == []
    assert not folder.exists()
    assert local.of(cluster).ended() == []
