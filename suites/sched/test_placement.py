"""Where pods are placed: the source thread's cluster and job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from clusters.kube import PODS, TFJOBS
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import tfjob
from suites import jobs, pods
from suites.pods import ADMISSION, HOLD


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
    planes = {n for n in system.cluster.container_names if "control-plane" in n}
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


@pytest.mark.behaviour("S04")
@pytest.mark.topology("thread")
def test_the_default_scheduler_places_a_part_and_a_gang_scheduler_none(
    system: SystemUnderTest, ns: str, gpus: Callable[[int], int], expect: Expecting
) -> None:
    """With 2 of 8 GPUs taken, 6 of the 7 workers fit: the contrast, on one cluster."""
    gpus(8)
    kube = system.cluster.kube
    pods.block_gpus(kube, ns, 2)

    kube.create(tfjob("parts", ps=1, workers=7, scheduler_name="default-scheduler"), namespace=ns)
    workers = jobs.of("parts", "worker")

    def six_bound(found: list[dict[str, object]]) -> bool | None:
        return True if len(found) == 7 and sum(map(pods.bound, found)) == 6 else None

    with expect("the default scheduler binds the PS and 6 of 7 workers"):
        pods.wait_bound(kube, ns, 1, labels=jobs.of("parts", "ps"), deadline=ADMISSION)
        kube.wait(
            PODS, six_bound, namespace=ns, labels=workers, deadline=ADMISSION, why="6 of 7 bound"
        )
    left = [p for p in kube.find(PODS, ns, labels=workers) if not pods.bound(p)]
    assert len(left) == 1
    index = left[0]["metadata"]["labels"][jobs.INDEX_LABEL]
    pods.hold_unbound(
        kube, ns, labels=f"{workers},{jobs.INDEX_LABEL}={index}", seconds=HOLD, least=1
    )
    kube.delete(TFJOBS, "parts", ns)
    pods.wait_created(kube, ns, 0, labels=jobs.of("parts"), deadline=60)

    kube.create(tfjob("gang", ps=1, workers=7), namespace=ns)
    members = jobs.of("gang")
    expected = 8 if system.scheduler.pods_before_admission else 0
    pods.wait_created(kube, ns, expected, labels=members)
    pods.hold_unbound(kube, ns, labels=members, seconds=HOLD, least=expected)
