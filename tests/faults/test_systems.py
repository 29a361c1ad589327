"""Operator, scheduler, control plane, and one client's way to the API server."""

from __future__ import annotations

import time

import pytest

from chaos.faults.api import (
    ApiTrouble,
    ThroughProxy,
    away,
    held,
    refusing,
    slow,
    watches_cut,
    watches_stale,
)
from chaos.faults.control_plane import ApiServerAway, FreezeComponent, KillComponent
from chaos.faults.failover import FailOver
from chaos.faults.jobs import ScaleJob, SuspendJob
from chaos.faults.systems import FreezeSystem, KillSystem, RollSystem, TakeSystemAway
from chaos.injecting import Injector
from chaos.site import Site
from chaos.target import Target
from clusters.kube import PODS, PYTORCHJOBS, Kube
from fixtures import workloads
from fixtures.systems.protocols import GangScheduler, Operator

pytestmark = pytest.mark.faults


@pytest.fixture
def target(request: pytest.FixtureRequest, operator: Operator, scheduler: GangScheduler) -> Target:
    """The operator, or the scheduler."""
    if request.param == "operator":
        return Target.operator(operator)
    return Target.scheduler(scheduler)


BOTH = pytest.mark.parametrize("target", ["operator", "scheduler"], indirect=True)


@BOTH
@pytest.mark.parametrize("how", ["process", "pod"])
def test_killed(site: Site, inject: Injector, target: Target, how: str) -> None:
    proof = inject(KillSystem(site, target, how))  # type: ignore[arg-type]
    assert proof.evidence


@BOTH
def test_frozen(site: Site, inject: Injector, target: Target) -> None:
    fault = FreezeSystem(site, target)
    assert all(line.endswith("-> T") for line in inject(fault).evidence.values())
    inject.recover(fault)


@BOTH
def test_away(site: Site, inject: Injector, target: Target) -> None:
    assert inject(TakeSystemAway(site, target)).evidence == {"pods": "0"}


def test_rolled_to_another_version(
    site: Site, space: str, inject: Injector, operator: Operator
) -> None:
    """A job that runs meanwhile keeps its pods."""
    program_job(site, space, "work", 2)
    before = {pod["metadata"]["uid"] for pod in site.kube.find(PODS, space)}
    fault = RollSystem(
        site, Target.operator(operator), operator="training-operator", scheduler="coscheduling",
        to="training-operator:1.9.3",
    )  # fmt: skip
    evidence = inject(fault).evidence
    assert evidence["before"] != evidence["now"]
    inject.recover(fault)
    assert {pod["metadata"]["uid"] for pod in site.kube.find(PODS, space)} == before


@BOTH
def test_the_leader_of_two_is_killed(site: Site, inject: Injector, target: Target) -> None:
    proof = inject(FailOver(site, target))
    assert proof.evidence["leader before"] != proof.evidence["leader now"]


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver", "kube-scheduler"])
def test_a_part_of_the_control_plane_is_frozen(
    site: Site, inject: Injector, component: str
) -> None:
    fault = FreezeComponent(site, component)  # type: ignore[arg-type]
    inject(fault)
    inject.recover(fault)


def test_a_part_of_the_control_plane_is_killed(site: Site, inject: Injector) -> None:
    inject(KillComponent(site, "kube-scheduler"))


@pytest.mark.parametrize("how", ["refused", "silent"])
@pytest.mark.parametrize("spare_us", [True, False])
def test_the_api_server_is_away(
    site: Site, kube: Kube, inject: Injector, how: str, spare_us: bool
) -> None:
    fault = ApiServerAway(site, how, spare_us=spare_us)  # type: ignore[arg-type]
    inject(fault)
    assert kube.ready() == spare_us
    inject.recover(fault)
    assert kube.ready()


def program_job(site: Site, space: str, name: str, workers: int) -> None:
    site.kube.create(workloads.elastic_program_job(name, workers=workers, low=1, high=4),
                     namespace=space)  # fmt: skip
    wait_pods(site, space, workers)


def wait_pods(site: Site, space: str, count: int) -> None:
    site.kube.wait(
        PODS, lambda pods: True if len(pods) == count else None, namespace=space, deadline=60,
        why=f"{count} pods",
    )  # fmt: skip


def test_a_job_is_scaled_and_back(site: Site, space: str, inject: Injector) -> None:
    program_job(site, space, "work", 2)
    fault = ScaleJob(site, PYTORCHJOBS, space, "work", 3)
    assert "work-worker-2" in inject(fault).evidence["pods now"]
    inject.recover(fault)
    wait_pods(site, space, 2)


def test_a_job_is_suspended_and_resumed(site: Site, space: str, inject: Injector) -> None:
    program_job(site, space, "work", 2)
    fault = SuspendJob(site, PYTORCHJOBS, space, "work")
    inject(fault)
    inject.recover(fault)
    wait_pods(site, space, 2)


# through the proxy -------------------------------------------------------------------------


@pytest.fixture
def route(site: Site, inject: Injector, operator: Operator) -> ThroughProxy:
    """The operator goes through a proxy."""
    it = ThroughProxy(
        site, Target.operator(operator), operator="training-operator", scheduler="coscheduling"
    )
    inject(it)
    return it


def test_one_client_is_in_trouble_and_nobody_else(
    site: Site, kube: Kube, space: str, inject: Injector, route: ThroughProxy
) -> None:
    """All rules on one route: to install a system takes longer than all of them."""

    def submit(name: str) -> None:
        job = workloads.elastic_program_job(name, workers=1, low=1, high=2)
        kube.create(job, namespace=space)

    def pods(count: int) -> None:
        wait_pods(site, space, count)

    pods(0)
    # held: the n-th write of a kind, and only that
    hold = ApiTrouble(route, held("create", f"/{space}/pods$"), acts=0)
    inject(hold)
    submit("held")
    assert hold.wait_held(1, deadline=60) == 1
    assert kube.find(PODS, space) == []
    inject.recover(hold)
    pods(1)
    # refused, each by chance
    refuse = ApiTrouble(route, refusing(500, share=0.5, seed=1), acts=0)
    inject(refuse)
    submit("refused")
    pods(2)
    inject.recover(refuse)
    # slow
    late = ApiTrouble(route, slow(300), acts=0)
    inject(late)
    submit("late")
    pods(3)
    assert late.counts().acted > 0
    inject.recover(late)
    # stale: nothing is seen, then everything
    stale = ApiTrouble(route, watches_stale())
    inject(stale)
    submit("unseen")
    time.sleep(5)
    assert len(kube.find(PODS, space)) == 3
    inject.recover(stale)
    pods(4)
    # cut, and away
    for rule in (watches_cut(), away()):
        cut = ApiTrouble(route, rule)
        inject(cut)
        assert kube.ready()
        time.sleep(2)
        inject.recover(cut)
    submit("after")
    pods(5)


def test_a_rule_waits_for_its_moment(
    site: Site, kube: Kube, space: str, inject: Injector, route: ThroughProxy
) -> None:
    """The third pod that the operator makes is held, and no other."""
    rule = held("create", f"/{space}/pods$", after=2, times=1)
    fault = ApiTrouble(route, rule, acts=0)
    inject(fault)
    job = workloads.elastic_program_job("work", workers=3, low=1, high=4)
    kube.create(job, namespace=space)
    assert fault.wait_held(1, deadline=60) == 1
    assert fault.counts().matched == 3
    assert len(kube.find(PODS, space)) == 2
    inject.recover(fault)
    wait_pods(site, space, 3)
