"""Where pods are placed: the source thread's cluster and job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from clusters.kube import NODES, PODS, TFJOBS, Kube, Object
from clusters.resources import is_bound
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import quick_pods, tfjob
from suites import jobs, pods, promises
from suites.gangs import gang
from suites.pods import ADMISSION, HOLD
from suites.promises import Promise
from suites.stage import Stage, gpus_by_node
from suites.steps import SHORT

#: the taint of the source thread's master
MASTER = "node-role.kubernetes.io/master"


def tainted(kube: Kube) -> list[str]:
    """Names of the nodes with the source thread's taint: its master. At least one."""
    found = [
        node["metadata"]["name"]
        for node in kube.find(NODES)
        if any(taint["key"] == MASTER for taint in node["spec"].get("taints") or [])
    ]
    assert found, "no node has the taint of the source thread's master"
    return found


@pytest.mark.core
@pytest.mark.e2e
@pytest.mark.behaviour("S02")
@pytest.mark.topology("thread")
def test_the_tainted_master_gets_no_pod_of_the_job(
    system: SystemUnderTest, ns: str, gpus: Callable[[int], int], expect: Expecting
) -> None:
    """The thread's 7 workers + 1 PS: one worker was placed on the tainted master without GPUs."""
    gpus(7)
    kube = system.cluster.kube
    kube.create(tfjob("thread", ps=1, workers=7), namespace=ns)
    with expect("all 8 pods are bound"):
        bound = pods.wait_bound(kube, ns, 8, labels=jobs.of("thread"), deadline=ADMISSION)
    planes = set(tainted(kube))
    placed = Counter(pod["spec"]["nodeName"] for pod in bound)
    assert not planes & set(placed), f"a pod is on the tainted master: {dict(placed)}"
    gpu_pods = Counter(p["spec"]["nodeName"] for p in bound if pods.gpus_of(p))
    assert sum(gpu_pods.values()) == 7
    assert max(gpu_pods.values()) <= 4, f"a node of 4 GPUs got more: {dict(gpu_pods)}"

    def all_active(job: dict[str, object]) -> bool:
        return (
            jobs.replicas(job, "Worker")["active"] == 7 and jobs.replicas(job, "PS")["active"] == 1
        )

    with expect("the job's status counts 7 active workers and 1 active PS"):
        jobs.wait(kube, TFJOBS, ns, "thread", all_active, deadline=ADMISSION, why="8 active")
    failed = [p for p in kube.find(PODS, ns) if p["status"].get("phase") == "Failed"]
    assert not failed, f"pods failed: {pods.names(failed)}"


@pytest.mark.core
@pytest.mark.e2e
@pytest.mark.behaviour("S04")
@pytest.mark.topology("thread")
def test_the_default_scheduler_places_a_part_and_a_gang_scheduler_none(
    system: SystemUnderTest,
    ns: str,
    bare_ns: str,
    gpus: Callable[[int], int],
    expect: Expecting,
) -> None:
    """With 2 of 8 GPUs taken, 6 of the 7 workers fit: the contrast, on one cluster."""
    promises.require_gang_jobs(system.scheduler)
    gpus(8)
    kube = system.cluster.kube
    pods.block_gpus(kube, ns, 2)

    contrast = tfjob("parts", ps=1, workers=7, scheduler_name="default-scheduler")
    kube.create(contrast, namespace=bare_ns)
    workers = jobs.of("parts", "worker")

    def six_bound(found: list[dict[str, object]]) -> bool | None:
        return True if len(found) == 7 and sum(map(is_bound, found)) == 6 else None

    with expect("the default scheduler binds the PS and 6 of 7 workers"):
        pods.wait_bound(kube, bare_ns, 1, labels=jobs.of("parts", "ps"), deadline=ADMISSION)
        kube.wait(
            PODS, six_bound, namespace=bare_ns, labels=workers, deadline=ADMISSION,
            why="6 of 7 bound",
        )  # fmt: skip
    left = [p for p in kube.find(PODS, bare_ns, labels=workers) if not is_bound(p)]
    assert len(left) == 1
    index = left[0]["metadata"]["labels"][jobs.INDEX_LABEL]
    pods.hold_unbound(
        kube, bare_ns, labels=f"{workers},{jobs.INDEX_LABEL}={index}", seconds=SHORT, least=1
    )
    kube.delete(TFJOBS, "parts", bare_ns)
    pods.wait_created(kube, bare_ns, 0, labels=jobs.of("parts"), deadline=60)

    kube.create(tfjob("gang", ps=1, workers=7), namespace=ns)
    members = jobs.of("gang")
    expected = 8 if system.scheduler.pods_before_admission else 0
    pods.wait_created(kube, ns, expected, labels=members)
    pods.hold_unbound(kube, ns, labels=members, seconds=HOLD, least=expected)


# where pods may be placed -----------------------------------------------------------------------


@dataclass(frozen=True)
class Spot:
    """What pods say of nodes, and on which nodes they may be then; none: they stay unbound."""

    selector: Object = field(default_factory=dict)
    tolerations: tuple[Object, ...] = ()
    affinity: Object | None = None
    allowed: frozenset[str] = frozenset()


def _spots(kube: Kube) -> dict[str, Spot]:
    first, second = gpus_by_node(kube)
    master = tainted(kube)
    host = "kubernetes.io/hostname"
    not_first = {"key": host, "operator": "NotIn", "values": [first, *master]}
    rule = {"nodeSelectorTerms": [{"matchExpressions": [not_first]}]}
    return {
        "node selector": Spot({host: second}, allowed=frozenset({second})),
        "node selector that no node has": Spot({"muster.dev/no-node": "has-this"}),
        "taint": Spot({host: master[0]}),
        "taint that is tolerated": Spot(
            {host: master[0]},
            tolerations=({"key": MASTER, "operator": "Exists", "effect": "NoSchedule"},),
            allowed=frozenset(master),
        ),
        "node affinity": Spot(
            affinity={
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}
            },
            allowed=frozenset({second}),
        ),
    }  # fmt: skip


@pytest.mark.behaviour("S03")
@pytest.mark.topology("thread")
@pytest.mark.parametrize(
    "spot",
    [
        "node selector",
        "node selector that no node has",
        "taint",
        "taint that is tolerated",
        "node affinity",
    ],
)
def test_a_gang_is_placed_where_its_pods_may_be(stage: Stage, spot: str) -> None:
    """Three pods without GPUs."""
    kube, scheduler = stage.kube, stage.scheduler
    chosen = _spots(kube)[spot]
    members = quick_pods(
        "a", 3, node_selector=chosen.selector, tolerations=chosen.tolerations,
        affinity=chosen.affinity,
    )  # fmt: skip
    stage.gangs = {"a": gang("a", 3)}
    stage.group("a")
    for pod in members:
        scheduler.join(pod, "a", 3)
        kube.create(pod, namespace=stage.ns)
    if not chosen.allowed:
        pods.wait_created(kube, stage.ns, 3)
        stage.hold({"a": 0}, SHORT)
        return
    stage.wait_counts({"a": 3})
    placed = {pod["spec"]["nodeName"] for pod in kube.find(PODS, stage.ns)}
    assert placed <= chosen.allowed, f"on {sorted(placed)}, allowed: {sorted(chosen.allowed)}"


@pytest.mark.behaviour("S10")
def test_the_pods_of_a_job_share_a_node_when_they_fit(
    stage: Stage, gpus: Callable[[int], int]
) -> None:
    """Four pods of one GPU, on an empty cluster whose nodes have four GPUs or more."""
    gpus(stage.cluster.topology.gpus)
    most = max(gpus_by_node(stage.kube).values())
    stage.gangs = {"a": gang("a", min(4, most))}
    stage.group("a")
    stage.pods("a")
    stage.wait_counts({"a": min(4, most)})
    used = {pod["spec"]["nodeName"] for pod in stage.kube.find(PODS, stage.ns)}
    stage.measure("nodes used by four pods", len(used), "1")
    promises.require(stage.scheduler, Promise.ONE_NODE)
    assert len(used) == 1, f"spread over {sorted(used)}"
