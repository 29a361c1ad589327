"""Priority between gangs, and among the pods of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.kube import PODS, Object
from clusters.resources import is_bound
from clusters.topology import GPU
from fixtures.workloads import tfjob
from suites import jobs, pods, promises
from suites.gangs import gang
from suites.promises import Promise
from suites.rows import Row, case
from suites.stage import Stage
from suites.steps import SHORT, Bound, Free, Held, Made, Submit, WholeOrNone

#: seconds after which no pod waits in a back-off of kube-scheduler (``podMaxBackoffSeconds``, 10)
#: any more: before that the one that comes back first is tried first, whatever its priority
AFTER_BACKOFF = 12.0
#: seconds in which a preemption comes to its end: a pod's grace of 1 s, and the room's next user
PREEMPTED = 12.0

TABLE = [
    case(
        Row(
            (gang("low", 3, priority="low"), gang("high", 3, priority="high")),
            (
                Submit("low", "high"), Made("low", 3), Made("high", 3),
                Held(AFTER_BACKOFF, low=0, high=0),
                Free(1), Bound(high=3), Held(SHORT, low=0, high=3),
                Free(), Bound(low=3),
            ),
            spare=3,
            preemption="Never",
        ),
        pytest.mark.behaviour("S05", case="order"),
    ),
    case(
        # kubernetes-sigs/scheduler-plugins#581: preemption knows pods, not gangs
        Row(
            (gang("low", 8, priority="low"), gang("high", 4, priority="high")),
            (
                Submit("low"), Bound(low=8), Submit("high"), Made("high", 4),
                WholeOrNone(PREEMPTED, "low", "high"),
            ),
            room=8,
            needs=(Promise.PREEMPTION,),
            preemption="PreemptLowerPriority",
        ),
        pytest.mark.behaviour("S05", case="victim"),
    ),
    case(
        # kubernetes-sigs/scheduler-plugins#443: pods are evicted for a gang that cannot run at all
        Row(
            (gang("low", 8, priority="low"), gang("high", 9, priority="high")),
            (
                Submit("low"), Bound(low=8), Submit("high"), Made("high", 9),
                Held(PREEMPTED, low=8, high=0),
            ),
            room=8,
            needs=(Promise.PREEMPTION,),
            preemption="PreemptLowerPriority",
        ),
        pytest.mark.behaviour("S05", case="victim of a gang that cannot run"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE)
def test_gangs_of_different_priority(row: Row, playing: Callable[[Row], None]) -> None:
    """See the row."""
    playing(row)


@pytest.mark.behaviour("S06")
def test_the_important_pods_of_a_job_come_first(stage: Stage, gpus: Callable[[int], int]) -> None:
    """A TFJob that may start with two of its pods: the parameter servers, not two workers."""
    promises.require_gang_jobs(stage.scheduler)
    promises.require(stage.scheduler, Promise.ROLE_PRIORITY)
    gpus(stage.cluster.topology.gpus)
    stage.priorities("Never")
    stage.fill(2)
    job = tfjob("roles", ps=2, workers=4, run_policy={"schedulingPolicy": {"minAvailable": 2}})
    for role, word in (("PS", "high"), ("Worker", "low")):
        pod = job["spec"]["tfReplicaSpecs"][role]["template"]["spec"]
        pod["priorityClassName"] = stage.priority_class(word)
        pod["containers"][0]["resources"]["limits"] = {GPU: 1}
    stage.kube.create(job, namespace=stage.ns)
    members = jobs.of("roles")
    least = 6 if stage.scheduler.pods_before_admission else 0
    if least:
        pods.wait_created(stage.kube, stage.ns, least, labels=members)
    pods.hold_unbound(stage.kube, stage.ns, labels=members, seconds=AFTER_BACKOFF, least=least)

    stage.free(1)

    def two(found: list[Object]) -> bool:
        own = [p for p in found if p["metadata"]["labels"].get(jobs.JOB_LABEL) == "roles"]
        return len(own) == 6 and sum(map(is_bound, own)) == 2

    stage.wait("two of the six pods are bound", two)
    bound = [p for p in stage.kube.find(PODS, stage.ns, labels=members) if is_bound(p)]
    roles = sorted(p["metadata"]["labels"][jobs.ROLE_LABEL] for p in bound)
    assert roles == ["ps", "ps"], f"bound first: {pods.names(bound)}"
