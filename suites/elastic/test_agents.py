"""An agent lost above the minimum: training goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.faults.base import Fault, Proof
from chaos.faults.pod import DeletePod
from chaos.faults.process import KillAgent
from clusters.cluster import Cluster, ClusterProvider
from clusters.kube import PODS, Kube
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.runtimes import Runtime
from fixtures.workloads import SAMPLES
from oracles import samples
from suites import jobs
from suites.elastic import trainer
from suites.training import Training

#: seconds until training goes on; measured 51-82 with torchrun's own read_timeout of 60 s
GOES_ON = 120.0
Injecting = Callable[[Fault], Proof]
JOB, VICTIM = "survive", "survive-worker-1"


@pytest.mark.behaviour("E05", case="agent killed")
def test_training_goes_on_after_an_agent_was_killed(
    system: SystemUnderTest,
    provider: ClusterProvider,
    torch: Runtime,
    ns: str,
    inject: Injecting,
    expect: Expecting,
    measure: Measuring,
) -> None:
    """SIGKILL to the agent of worker 1 of 3 (minimum 2); its pod stays."""
    fault = KillAgent(system.cluster, provider, ns, VICTIM, "pytorch")
    _survives(system.cluster, torch, ns, fault, inject, expect, measure)


@pytest.mark.behaviour("E05", case="pod deleted")
def test_training_goes_on_after_a_pod_was_deleted(
    system: SystemUnderTest,
    torch: Runtime,
    ns: str,
    inject: Injecting,
    expect: Expecting,
    measure: Measuring,
) -> None:
    """The pod of worker 1 of 3 (minimum 2) is deleted without grace."""
    fault = DeletePod(system.cluster, ns, VICTIM, grace=0)
    _survives(system.cluster, torch, ns, fault, inject, expect, measure)


def _survives(
    cluster: Cluster,
    torch: Runtime,
    namespace: str,
    fault: Fault,
    inject: Injecting,
    expect: Expecting,
    measure: Measuring,
) -> None:
    job = trainer.start(cluster, torch, namespace, JOB, workers=3, low=2, high=3)
    with expect("three workers train"):
        job.wait_steps(12, world=3, deadline=trainer.STARTED)
    before = _containers(cluster.kube, namespace)

    proof = inject(fault)
    with expect(f"training goes on after: {proof.what}"):
        group = job.wait_steps(5, since=proof.t + 1.0, deadline=GOES_ON)
    measure("training again after", group[0].t - proof.t, "s")
    measure("world after", group[0].world or 0, "ranks")
    _measure_cost(job, cluster.kube, namespace, before, measure)
    wrong = samples.faults(job.lines(), size=SAMPLES, interval=trainer.INTERVAL)
    assert not wrong, "; ".join(wrong)


def _measure_cost(
    job: Training, kube: Kube, namespace: str, before: dict[str, str], measure: Measuring
) -> None:
    losses = samples.losses(job.lines())
    measure("steps lost", max((loss.steps for loss in losses), default=0), "steps")
    after = _containers(kube, namespace)
    others = [name for name in before if name != VICTIM]
    restarted = [name for name in others if after.get(name) != before[name]]
    measure("agents restarted beside the victim", len(restarted), "agents")


def _containers(kube: Kube, namespace: str) -> dict[str, str]:
    """Pod -> id of the container that its agent runs in."""
    found = {}
    for pod in kube.find(PODS, namespace, labels=jobs.of(JOB)):
        for status in pod["status"].get("containerStatuses") or []:
            found[pod["metadata"]["name"]] = status.get("containerID", "")
    return found
