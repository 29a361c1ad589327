"""Pods and processes: what is done to them is proven, and told apart."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from chaos import processes
from chaos.errors import FaultError, NotProven
from chaos.faults.disk import FillVolume
from chaos.faults.pod import DeletePod, EvictPod
from chaos.faults.process import KillAgent
from chaos.faults.signals import SignalProcess, StopProcess
from chaos.injecting import Injector
from chaos.processes import Which
from chaos.site import Site
from clusters.kube import PODS, Kube, Object
from fixtures import workloads

pytestmark = pytest.mark.faults

Pods = Callable[..., list[Object]]


@pytest.mark.parametrize("kind", [DeletePod, EvictPod])
@pytest.mark.parametrize("grace", [0, 3])
def test_a_pod_is_gone(
    site: Site, space: str, inject: Injector, pods: Pods, kind: Any, grace: int
) -> None:
    pods("p")
    proof = inject(kind(site.cluster, space, "p-0", grace=grace))
    assert proof.evidence["pod uid before"] != proof.evidence["pod uid now"]
    with pytest.raises(FaultError, match="there is no pod"):
        inject(kind(site.cluster, space, "p-0", grace=grace))


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_first_process_ends_in_a_pod_that_stays(
    site: Site, space: str, inject: Injector, pods: Pods, sign: signal.Signals
) -> None:
    (pod,) = pods("p")
    proof = inject(SignalProcess(site, space, "p-0", "main", Which.MAIN, sign))
    assert proof.evidence["pod uid, before and after"] == pod["metadata"]["uid"]


def test_the_kubelet_says_how_a_container_ended(
    site: Site, space: str, inject: Injector, pods: Pods
) -> None:
    pods("p")
    fault = KillAgent(site.cluster, site.provider, space, "p-0", "main", signal.SIGKILL)
    assert inject(fault).evidence["exit code"] == "137"


@pytest.mark.parametrize("role", ["ps", "chief"])
def test_a_parameter_server_or_a_chief_is_killed(
    site: Site, kube: Kube, space: str, inject: Injector, role: str
) -> None:
    """In a job of a real operator: its pod stays, and its container is another one afterwards."""
    kube.create(workloads.tfjob("roles", chief=1, ps=1, workers=1, gpus=0), namespace=space)

    def up(found: list[Object]) -> bool | None:
        return True if [p["status"]["phase"] for p in found] == ["Running"] * 3 else None

    kube.wait(PODS, up, namespace=space, deadline=60, why="a chief, a ps and a worker run")
    pod = f"roles-{role}-0"
    proof = inject(KillAgent(site.cluster, site.provider, space, pod, "tensorflow"))
    assert proof.evidence["exit code"] == "137"

    def again(found: list[Object]) -> bool | None:
        (status,) = found[0]["status"]["containerStatuses"]
        return True if status["restartCount"] == 1 and status["ready"] else None

    kube.wait(
        PODS, again, namespace=space, fields=f"metadata.name={pod}", deadline=60,
        why=f"{pod} runs again",
    )  # fmt: skip


@pytest.mark.parametrize("which", [Which.MAIN, Which.ALL])
def test_processes_are_stopped_and_go_on(
    site: Site, space: str, inject: Injector, pods: Pods, which: Which
) -> None:
    (pod,) = pods("p")
    fault = StopProcess(site, space, "p-0", "main", which)
    proof = inject(fault)
    assert all(line.endswith("-> T") for line in proof.evidence.values())
    inject.recover(fault)
    _, now = processes.find(site, pod, "main", Which.ALL)
    assert all(process.state != "T" for process in now)


def test_agent_and_worker_process(
    site: Site, space: str, inject: Injector, kube: Any, pods: Pods
) -> None:
    """In a real container with an agent's and a worker's command lines."""
    (pod,) = workloads.gang_pods("p", 1)
    script = (
        "cd /tmp && printf 'while :; do bash -c \"exec -a worker sleep 3600\" train.py; done' >run"
        " && exec -a torchrun bash run train.py"
    )
    container = pod["spec"]["containers"][0]
    container["command"] = ["bash", "-c", script]
    kube.create(pod, namespace=space)
    (there,) = kube.wait(
        PODS,
        lambda items: items if items and items[0]["status"].get("phase") == "Running" else None,
        namespace=space, deadline=60, why="it runs",
    )  # fmt: skip
    _, (agent,) = processes.find(site, there, "main", Which.AGENT)
    assert agent.command.startswith("torchrun")
    with pytest.raises(FaultError, match="no process worker"):
        inject(SignalProcess(site, space, "p-0", "main", Which.WORKER))


def test_a_pod_that_is_deleted_meanwhile_is_no_kill(
    site: Site, space: str, inject: Injector, pods: Pods
) -> None:
    pods("p")
    fault = SignalProcess(site, space, "p-0", "main", Which.MAIN)
    fault.plan()
    send = fault.inject

    def and_delete() -> None:
        send()
        DeletePod(site.cluster, space, "p-0", grace=0).inject()

    fault.inject = and_delete  # type: ignore[method-assign]
    with pytest.raises(NotProven, match="was replaced"):
        inject(fault)


def test_a_small_volume_is_filled_and_emptied(
    site: Site, space: str, inject: Injector, kube: Any
) -> None:
    (pod,) = workloads.gang_pods("p", 1)
    volume = {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}
    disk: Object = {"name": "disk", "emptyDir": {}}
    pod["spec"]["volumes"] = [volume, disk]
    pod["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "data", "mountPath": "/data"},
        {"name": "disk", "mountPath": "/disk"},
    ]
    kube.create(pod, namespace=space)
    kube.wait(
        PODS,
        lambda items: True if items and items[0]["status"].get("phase") == "Running" else None,
        namespace=space, deadline=60, why="it runs",
    )  # fmt: skip
    fault = FillVolume(site, space, "p-0", "main", "/data")
    assert inject(fault).evidence["free"] == "0 kB"
    inject.recover(fault)
    done = kube.exec(space, "p-0", ["sh", "-c", "ls -A /data; df -k --output=avail /data"])
    assert done.stdout.split() == ["Avail", "8192"]
    for path in ("/disk", "/"):
        with pytest.raises(FaultError, match=r"not filled|no mount"):
            inject(FillVolume(site, space, "p-0", "main", path))
