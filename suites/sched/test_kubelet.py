"""GPUs as the kubelet gives them out: what no scheduler can promise alone.

In the source thread a scheduler put a GPU pod on a node without GPUs, and the kubelet there failed
it with ``OutOfnvidia.com/gpu``. Here pods come to a node past every scheduler, or by one whose
view is old; and GPUs fall ill under pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from chaos.faults.gpus import SickenGpus
from chaos.injecting import Injector
from chaos.site import Site
from clusters import fakegpus, waiting
from clusters.cluster import Capability
from clusters.kube import PODS, Object
from clusters.resources import is_bound
from clusters.topology import GPU
from fixtures.plugin.given import Expecting
from fixtures.workloads import quick_pods
from oracles.errors import HarnessError, InvariantViolation
from suites import pods
from suites.gangs import Block, gang
from suites.pods import ADMISSION, LOOKED_AT
from suites.stage import Stage, gpus_by_node
from suites.steps import SHORT

#: how often a race is tried: the view is old for up to a second, a pod is bound within a fraction
#: of that
TRIES = 5
HOST = "kubernetes.io/hostname"


@pytest.mark.behaviour("S11", case="bound by hand")
def test_a_pod_bound_by_hand_gets_no_gpu_that_is_taken(
    stage: Stage, gpus: Callable[[int], int], expect: Expecting
) -> None:
    """All GPUs of a node are taken, and another pod comes with that node's name in it.

    Where a plugin gives them out its manager refuses; where they are the node's capacity alone, the
    kubelet adds up what it was asked for, and says ``OutOfnvidia.com/gpu``.
    """
    stage.cluster.require(Capability.CONTAINERS)
    gpus(stage.cluster.topology.gpus)
    node, have = next(iter(gpus_by_node(stage.kube).items()))
    stage.block([Block(have, 0)])
    before = _running(stage, "app=blocker")
    with expect("the kubelet refuses the pod, and its words name the resource"):
        refused = pods.wait_refused(stage.kube, stage.ns, _by_hand(stage, "late", node, 1))
        assert refused.resource == GPU, f"what there was too little of is not told: {refused}"
    with expect("the pods that had the GPUs run on"):
        _run_on(stage, before)


@pytest.mark.behaviour("S11", case="an old view")
@pytest.mark.exclusive
def test_a_pod_bound_on_an_old_view_gets_no_gpu_that_is_gone(stage: Stage) -> None:
    """A node's GPUs are gone, its kubelet knows, and the scheduler binds before it is told."""
    stage.cluster.require(Capability.DEVICE_PLUGIN)
    cluster, kube = stage.cluster, stage.kube
    node, have = next(iter(gpus_by_node(kube).items()))
    stage.undo.callback(fakegpus.wait, kube, node, have)
    stage.undo.callback(fakegpus.change, cluster, node, have)
    for number in range(TRIES):
        pod = quick_pods("racer", 1, first=number, gpus=1, node_selector={HOST: node})[0]
        fakegpus.change(cluster, node, 0)
        kube.create(pod, namespace=stage.ns)
        seen = _decided(stage, pod["metadata"]["name"])
        if is_bound(seen) and seen["status"]["phase"] == "Running":
            pass  # the pod was faster than the news of its node's own plugin
        elif seen["spec"].get("nodeName"):
            refused = pods.wait_refused(stage.kube, stage.ns, pod["metadata"]["name"])
            assert refused.resource == GPU, f"what there was too little of is not told: {refused}"
            stage.measure("races until a pod was bound on an old view", number + 1, "1")
            return
        kube.delete(PODS, pod["metadata"]["name"], stage.ns, grace=0)
        fakegpus.change(cluster, node, have)
        fakegpus.wait(kube, node, have)
    raise HarnessError(f"in {TRIES} races no pod was bound on an old view: nothing was tried")


@pytest.mark.behaviour("S12")
@pytest.mark.exclusive
def test_a_gpu_that_falls_ill_under_a_pod_is_given_to_nobody_else(
    stage: Stage, inject: Injector, expect: Expecting
) -> None:
    """The pod that has it runs on; one that needs it waits, or is refused, until it is well."""
    stage.cluster.require(Capability.DEVICE_PLUGIN)
    kube, site = stage.kube, Site.of(stage.cluster)
    node, have = next(iter(gpus_by_node(kube).items()))
    stage.block([Block(have, 0)])
    before = _running(stage, "app=blocker")
    holder = before[0]["metadata"]["name"]
    told = kube.exec(stage.ns, holder, ["printenv", "NVIDIA_VISIBLE_DEVICES"]).stdout.strip()
    assert told.split(",") == [f"gpu-{n}" for n in range(have)], f"the container was given {told}"
    fault = SickenGpus(site, node, which=(have - 1,))
    proof = inject(fault)
    assert proof.evidence["capacity"] == str(have), "a GPU that is ill is still there"
    with expect("the pod that has it runs on"):
        _run_on(stage, before)
    stage.free()
    stage.gangs = {"b": gang("b", 1, gpus=have, selector={HOST: node})}
    stage.group("b")
    stage.pods("b")
    with expect("the kubelet refuses a pod that would need it"):
        refused = pods.wait_refused(stage.kube, stage.ns, _by_hand(stage, "late", node, have))
        assert refused.resource == GPU, f"what there was too little of is not told: {refused}"
    with expect("no scheduler gives it out"):
        stage.hold({"b": 0}, SHORT)
    inject.recover(fault)
    with expect("it is used again when it is well"):
        stage.wait_counts({"b": 1})
        _running(stage, "app=b")


# pods ------------------------------------------------------------------------------------------


def _by_hand(stage: Stage, app: str, node: str, gpus: int) -> str:
    """Make a pod that comes with its node's name, so that no scheduler ever sees it; its name."""
    pod = quick_pods(app, 1, gpus=gpus)[0]
    pod["spec"]["nodeName"] = node
    stage.kube.create(pod, namespace=stage.ns)
    return str(pod["metadata"]["name"])


def _running(stage: Stage, labels: str) -> list[Object]:
    return pods.wait_running(stage.kube, stage.ns, 1, labels=labels, deadline=ADMISSION)


def _decided(stage: Stage, name: str) -> Object:
    """Wait until a scheduler has bound a pod, or says that it cannot; the pod."""

    def decided(found: list[Object]) -> Object | None:
        for pod in found:
            conditions = pod["status"].get("conditions") or []
            unfit = any(c.get("reason") == "Unschedulable" for c in conditions)
            if unfit or (pod["spec"].get("nodeName") and pod["status"]["phase"] != "Pending"):
                return pod
        return None

    return stage.kube.wait(
        PODS, decided, namespace=stage.ns, fields=f"metadata.name={name}", deadline=LOOKED_AT,
        why=f"pod {name} bound or not",
    )  # fmt: skip


def _run_on(stage: Stage, before: list[Object]) -> None:
    """Hold on the watch that the very containers of these pods go on running."""
    runs = {pod["metadata"]["name"]: _containers(pod) for pod in before}

    def check(found: Mapping[str, Object], after: float) -> None:
        for name, ids in runs.items():
            if name not in found or _containers(found[name]) != ids:
                raise InvariantViolation(
                    f"pod {name} did not run on: {found.get(name, {}).get('status', 'it is gone')}"
                )

    waiting.hold(stage.kube, PODS, stage.ns, check, seconds=SHORT)


def _containers(pod: Object) -> list[str]:
    """Ids of the containers that run."""
    statuses = pod["status"].get("containerStatuses") or []
    return [s["containerID"] for s in statuses if "running" in s.get("state", {})]
