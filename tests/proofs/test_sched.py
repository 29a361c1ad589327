"""Pods on nodes that cannot or may not take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clusters.cluster import Capability
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.workloads import gang_pods
from oracles.errors import NotApplicable
from suites.sched import test_kubelet
from tests.proofs import breaking
from tests.proofs.staging import Doubling, OnStage, staged

pytestmark = pytest.mark.proof


@pytest.mark.proves("S01", by="one GPU pod more than a node has room for", rule="gpu-capacity")
def test_a_node_is_overbooked(system: SystemUnderTest, ns: str, gpus: Callable[[int], int]) -> None:
    kube = system.cluster.kube
    gpus(system.cluster.topology.gpus)
    node, count = breaking.gpu_node(kube)
    for pod in gang_pods("pod", count + 1, gpus=1, scheduler_name=breaking.NOBODY):
        kube.create(pod, namespace=ns)
        breaking.bind(kube, ns, pod["metadata"]["name"], node)


@pytest.mark.proves("S02", by="a GPU pod on the tainted node without GPUs", rule="placement")
def test_a_gpu_pod_on_the_tainted_node(
    system: SystemUnderTest, ns: str, gpus: Callable[[int], int]
) -> None:
    kube = system.cluster.kube
    gpus(1)
    (pod,) = gang_pods("pod", 1, gpus=1, scheduler_name=breaking.NOBODY)
    kube.create(pod, namespace=ns)
    breaking.bind(kube, ns, "pod-0", breaking.tainted_node(kube))


@pytest.mark.proves("S03", by="a pod on a node that its selector excludes", rule="placement")
def test_a_selector_is_not_honoured(system: SystemUnderTest, ns: str) -> None:
    kube = system.cluster.kube
    selector = {"muster.dev/nowhere": "yes"}
    (pod,) = gang_pods("pod", 1, node_selector=selector, scheduler_name=breaking.NOBODY)
    kube.create(pod, namespace=ns)
    breaking.bind(kube, ns, "pod-0", breaking.gpu_node(kube)[0])


@pytest.mark.proves(
    "S11", by="nodes that take every pod, played by kwok", shows="had to refuse pod late-0"
)
def test_nobody_counts_gpus(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    expect: Expecting,
    measure: Measuring,
) -> None:
    cluster = system.cluster
    if Capability.CONTAINERS in cluster.capabilities:
        raise NotApplicable("the kubelets of this cluster are real, and count")
    claimed = replace(cluster, capabilities=cluster.capabilities | {Capability.CONTAINERS})
    with staged(replace(system, cluster=claimed), ns, expect, measure) as stage:
        test_kubelet.test_a_pod_bound_by_hand_gets_no_gpu_that_is_taken(stage, gpus, expect)


@pytest.mark.exclusive
@pytest.mark.proves(
    "S11", by="a node that says that it has twice its GPUs", shows="had to refuse pod late-0"
)
def test_a_node_boasts(on_stage: OnStage, gpus: Callable[[int], int], expect: Expecting) -> None:
    with on_stage(kind=Doubling) as stage:
        test_kubelet.test_a_pod_bound_by_hand_gets_no_gpu_that_is_taken(stage, gpus, expect)
