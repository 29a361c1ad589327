"""Gang admission of the source thread's job; of bare pods see ``test_bare_pods``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.kube import PODS
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.workloads import tfjob
from suites import groups, jobs, pods, promises
from suites.pods import ADMISSION, HOLD


@pytest.mark.core
@pytest.mark.e2e
@pytest.mark.behaviour("G01", case="TFJob")
def test_a_tfjob_with_room_is_bound_whole(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    expect: Expecting,
) -> None:
    """One parameter server and 7 GPU workers on 8 GPUs; the operator makes the group."""
    promises.require_gang_jobs(system.scheduler)
    gpus(7)
    kube = system.cluster.kube
    kube.create(tfjob("thread", ps=1, workers=7), namespace=ns)
    with expect("all 8 pods are bound"):
        pods.wait_bound(kube, ns, 8, labels=jobs.of("thread"), deadline=ADMISSION)
    groups.asks_for_all(system, ns, 8)


@pytest.mark.core
@pytest.mark.e2e
@pytest.mark.behaviour("G04", case="TFJob")
def test_too_little_room_binds_nobody_then_all(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    expect: Expecting,
    measure: Measuring,
) -> None:
    """Two of 8 GPUs are taken, the gang wants 7: nobody is bound until they are free."""
    promises.require_gang_jobs(system.scheduler)
    gpus(8)
    kube = system.cluster.kube
    blockers = pods.block_gpus(kube, ns, 2)

    kube.create(tfjob("thread", ps=1, workers=7), namespace=ns)
    members = jobs.of("thread")
    if system.scheduler.pods_before_admission:
        pods.wait_created(kube, ns, 8, labels=members)
    held = pods.hold_unbound(
        kube, ns, labels=members, seconds=HOLD,
        least=8 if system.scheduler.pods_before_admission else 0,
    )  # fmt: skip
    measure("held unbound", held, "pods")
    before = {
        p["metadata"]["name"]: p["metadata"]["uid"] for p in kube.find(PODS, ns, labels=members)
    }

    for name in blockers:
        kube.delete(PODS, name, ns, grace=0)
    with expect("all 8 pods are bound once the room is free"):
        bound = pods.wait_bound(kube, ns, 8, labels=members, deadline=ADMISSION)
    after = {p["metadata"]["name"]: p["metadata"]["uid"] for p in bound}
    assert before.items() <= after.items(), "members were created again instead of bound"
