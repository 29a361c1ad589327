"""Jobs and gangs that somebody else meddles with, while a test of the suites looks at them.

For what no release of training-operator breaks by itself, or not each time; the rest is in
``test_releases.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from chaos.injecting import Injector
from clusters.kube import PODS, PYTORCHJOBS, SERVICES, TFJOBS, Kube, Object
from clusters.resources import is_bound
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.plugin.options import Combination
from fixtures.workloads import gang_pods
from suites import jobs, pods, tables
from suites.api import test_cluster_config
from suites.gang import test_killed_scheduler
from suites.recovery import test_api_trouble
from suites.stage import gpus_by_node
from suites.status import test_managed, test_refused, test_success, test_suspend
from tests.proofs import breaking, elsewhere
from tests.proofs.breaking import meddling
from tests.proofs.forbidding import forbidden
from tests.proofs.staging import OnStage
from tests.proofs.test_jobs import owned

pytestmark = pytest.mark.proof

on = elsewhere.on("1.9.3")


@pytest.fixture(name="_found")
def _instead(
    request: pytest.FixtureRequest, _muster_system: Combination, release: SystemUnderTest
) -> SystemUnderTest:
    return elsewhere.stands_in(request, release)


def named(found: list[Object], name: str) -> Object | None:
    """The object of that name."""
    return next((each for each in found if each["metadata"]["name"] == name), None)


# status ---------------------------------------------------------------------------------------


@on
@pytest.mark.proves(
    "T06",
    by="a job whose master runs was said to have Succeeded, when its workers had",
    shows="workers beside a master do not: it is ",
)
def test_workers_decide(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    kube, name = system.cluster.kube, f"shape-{_shape('workers beside a master do not')}"

    def succeed(found: list[Object]) -> bool:
        job = named(found, name)
        if job is None or jobs.replicas(job, "Worker")["succeeded"] != 2:
            return False
        breaking.condition(kube, PYTORCHJOBS, ns, job, Succeeded="True")
        return True

    with meddling(kube, PYTORCHJOBS, ns, succeed):
        test_success.test_success_is_decided_by_the_role_that_the_policy_names(
            system, ns, expect, "PyTorchJob"
        )


def _shape(title: str) -> int:
    return list(test_success.SHAPES).index(title)


@on
@pytest.mark.proves(
    "T09",
    by="jobs that are submitted suspended are resumed by somebody else",
    shows="pods were made for jobs that are suspended: ",
)
def test_a_suspended_job_is_resumed(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    kube = system.cluster.kube

    def resume(found: list[Object]) -> bool:
        for job in found:
            body = {"spec": {"runPolicy": {"suspend": False}}}
            kube.patch(TFJOBS, job["metadata"]["name"], body, ns)
        return bool(found)

    with meddling(kube, TFJOBS, ns, resume):
        test_suspend.test_a_job_that_is_submitted_suspended_waits(system, ns, expect)


@on
@pytest.mark.proves(
    "T08",
    by="an operator that may not write events",
    shows="the job says that a quota refuses its pods",
)
def test_nobody_says_why(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    kube = system.cluster.kube
    rule = {
        "apiGroups": ["", "events.k8s.io"], "apiVersions": ["v1"], "resources": ["events"],
        "operations": ["CREATE", "UPDATE"],
    }  # fmt: skip
    with forbidden(system, ns, rule, "false", partial(_say, kube, ns)):
        test_refused.test_a_quota_that_refuses_children_is_told(
            system, ns, expect, "PyTorchJob", "pods"
        )


def _say(kube: Kube, ns: str) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "heeded-"},
        "involvedObject": {"kind": "Namespace", "name": ns, "namespace": ns},
        "reason": "Proof",
        "message": "is it refused?",
    }
    kube.create(event, namespace=ns)


@on
@pytest.mark.proves(
    "T10",
    by="a pod was made for a job of another controller",
    shows="pods: made for a job of another controller: stray",
)
def test_a_pod_for_another_controllers_job(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    kube = system.cluster.kube

    def make(found: list[Object]) -> bool:
        for job in found:
            kube.create(owned(job, "stray"), namespace=ns)
        return bool(found)

    with meddling(kube, PYTORCHJOBS, ns, make):
        test_managed.test_a_job_of_another_controller_is_left_alone(system, ns, expect)


@on
@pytest.mark.proves(
    "T10",
    by="the status of a job of another controller was written",
    shows="pytorchjob: its status was written: {",
)
def test_a_status_for_another_controllers_job(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    kube = system.cluster.kube

    def write(found: list[Object]) -> bool:
        for job in found:
            breaking.condition(kube, PYTORCHJOBS, ns, job, Created="True")
        return bool(found)

    with meddling(kube, PYTORCHJOBS, ns, write):
        test_managed.test_a_job_of_another_controller_is_left_alone(system, ns, expect)


# recovery -------------------------------------------------------------------------------------


@on
@pytest.mark.exclusive
@pytest.mark.proves(
    "R07",
    by="somebody deletes a worker that was replaced while watches were cut",
    shows="pytorchjob-0-worker-0: it was made 3 times, for 2 lives",
)
def test_a_pod_is_made_once_more(
    system: SystemUnderTest,
    ns: str,
    seed: int,
    expect: Expecting,
    measure: Measuring,
    inject: Injector,
) -> None:
    kube, name, first = system.cluster.kube, "pytorchjob-0-worker-0", ""

    def delete(found: list[Object]) -> bool:
        nonlocal first
        pod = named(found, name)
        if pod is not None:
            first = first or pod["metadata"]["uid"]
        if not tables.anew(first)(pod):
            return False
        kube.delete(PODS, name, ns, grace=0)
        return True

    with meddling(kube, PODS, ns, delete):
        test_api_trouble.test_a_troubled_api_server_changes_nothing_about_the_end(
            system, ns, seed, expect, measure, inject, "watches are cut"
        )


@on
@pytest.mark.exclusive
@pytest.mark.proves(
    "R06",
    by="somebody deletes a pod of a gang that the next scheduler has completed",
    shows="gang a: 3 pods were bound",
)
def test_a_gang_is_taken_apart(
    on_stage: OnStage,
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    inject: Injector,
    measure: Measuring,
) -> None:
    kube = system.cluster.kube

    def delete(found: list[Object]) -> bool:
        bound = pods.names(list(filter(is_bound, found)))
        if len(bound) < test_killed_scheduler.MEMBERS:
            return False
        kube.delete(PODS, min(bound), ns, grace=0)
        return True

    with meddling(kube, PODS, ns, delete), on_stage() as stage:
        test_killed_scheduler.test_a_scheduler_killed_while_it_binds_leaves_no_partial_gang(
            stage, gpus, inject, measure, 1
        )


@on
@pytest.mark.exclusive
@pytest.mark.proves(
    "R06",
    by="somebody takes the room of a gang whose scheduler dies when it has bound one pod",
    shows="the next scheduler binds the whole gang: ",
)
def test_the_room_of_a_gang_is_taken(
    on_stage: OnStage,
    system: SystemUnderTest,
    ns: str,
    bare_ns: str,
    gpus: Callable[[int], int],
    inject: Injector,
    measure: Measuring,
) -> None:
    kube = system.cluster.kube

    def take(found: list[Object]) -> bool:
        bound = [pod for pod in found if is_bound(pod)]
        if not bound:
            return False
        for node, count in gpus_by_node(kube).items():
            own = [pod for pod in bound if pod["spec"]["nodeName"] == node]
            for pod in gang_pods(f"taken-{node}", count - sum(map(pods.gpus_of, own)), gpus=1):
                pod["spec"]["nodeName"] = node
                kube.create(pod, namespace=bare_ns)
        return True

    with meddling(kube, PODS, ns, take), on_stage() as stage:
        test_killed_scheduler.test_a_scheduler_killed_while_it_binds_leaves_no_partial_gang(
            stage, gpus, inject, measure, 1
        )


# API ------------------------------------------------------------------------------------------


@on
@pytest.mark.proves(
    "V02",
    by="a service that leads to another pod",
    shows="config-worker-1: its service leads to ['config-worker-0']",
)
def test_an_address_of_another(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    kube, name = system.cluster.kube, "config-worker-1"

    def lead(found: list[Object]) -> bool:
        if named(found, name) is None:
            return False
        kube.patch(SERVICES, name, {"spec": {"selector": {jobs.INDEX_LABEL: "0"}}}, ns)
        return True

    with meddling(kube, SERVICES, ns, lead):
        test_cluster_config.test_the_environment_of_master_and_workers(system, ns, expect)
