"""Kubeflow Trainer and its TrainJobs, broken from outside or by themselves, embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from chaos.faults.base import Fault
from chaos.faults.base import Proof as Proven
from clusters.kube import JOBS, PODS, TRAINJOBS, Kube, Object, Resource
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.plugin.options import Combination
from suites import collecting, tables
from suites.cast import ANSWER
from suites.trainjob import test_api, test_deletion, test_gang, test_recovery, test_status
from suites.trainjob.stage import JOB_LABEL, TrainJobs
from tests.proofs import breaking, elsewhere

RELEASE = "trainer:2.0.0"
pytestmark = [
    pytest.mark.proof,
    pytest.mark.parametrize("release", [RELEASE], indirect=True, scope="module"),
]

HOOKS = Resource(
    "admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
#: of Trainer
HOOK = "validator.trainer.kubeflow.org"

Inject = Callable[[Fault], Proven]


@pytest.fixture(name="_found")
def _instead(
    request: pytest.FixtureRequest, _muster_system: Combination, release: SystemUnderTest
) -> SystemUnderTest:
    return elsewhere.stands_in(request, release)


@pytest.fixture
def trainjobs(system: SystemUnderTest, ns: str, expect: Expecting) -> TrainJobs:
    return TrainJobs(system, ns, expect)


# by itself -------------------------------------------------------------------------------------


@pytest.mark.proves(
    "T10",
    by="Trainer 2.0.0, which never reads who manages a TrainJob",
    shows="made for a job of another controller: theirs",
)
def test_the_jobs_of_others_are_run(system: SystemUnderTest, ns: str, trainjobs: TrainJobs) -> None:
    test_status.test_a_trainjob_of_another_controller_is_left_alone(system, ns, trainjobs)


@pytest.mark.proves(
    "V01", by="Trainer 2.0.0, which takes any number of nodes", shows="zero nodes: accepted"
)
def test_no_nodes_are_accepted(system: SystemUnderTest, ns: str, trainjobs: TrainJobs) -> None:
    test_api.test_what_is_forbidden_of_trainjobs_is_refused(
        system, ns, trainjobs, "TrainJob, zero nodes"
    )


@pytest.mark.proves(
    "V02",
    by="Trainer 2.0.0, which tells nodes nothing when their job leaves all to its runtime",
    shows="a node is told {}",
)
def test_nodes_are_told_nothing(trainjobs: TrainJobs, ns: str) -> None:
    test_api.test_each_node_of_a_trainjob_is_told_where_the_others_are(trainjobs, ns, False)


@pytest.mark.proves(
    "G09",
    by="Trainer 2.0.0, whose groups leave out what a TrainJob says of its nodes",
    shows="its pods ask for 100m of CPU and 2 GPUs, its group for ",
)
def test_the_group_asks_for_less(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    trainjobs: TrainJobs,
    expect: Expecting,
) -> None:
    test_gang.test_the_group_of_a_trainjob_asks_for_what_its_pods_ask_for(
        system, ns, gpus, trainjobs, expect, True
    )


# from outside ----------------------------------------------------------------------------------


@pytest.mark.proves(
    "T01", by="a TrainJob was told Complete while its pods run", shows="and its pods are ["
)
def test_complete_too_early(trainjobs: TrainJobs) -> None:
    kube, ns = trainjobs.kube, trainjobs.namespace

    def act(jobs: list[Object]) -> bool:
        told = {
            "type": "Complete", "status": "True", "reason": "ByHand", "message": "by hand",
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }  # fmt: skip
        for job in jobs:
            name = job["metadata"]["name"]
            breaking.status(kube, TRAINJOBS, ns, name, {"conditions": [told]})
        return bool(jobs)

    with breaking.meddling(kube, TRAINJOBS, ns, act):
        test_status.test_a_trainjob_has_no_end_before_its_pods_have(trainjobs, 0, "Complete")


@pytest.mark.proves(
    "T02", by="a TrainJob's Complete was flipped back", rule="condition-transitions"
)
def test_complete_is_taken_back(trainjobs: TrainJobs) -> None:
    trainjobs.add("done", restart_policy="Never", backoff_limit=0)
    trainjobs.run()
    trainjobs.finish("done")
    assert not trainjobs.reach({"done": tables.true("Complete")}, deadline=ANSWER)
    job = trainjobs.job("done")
    assert job is not None
    kube, ns = trainjobs.kube, trainjobs.namespace
    breaking.condition(kube, TRAINJOBS, ns, job, Complete="False")


@pytest.mark.proves(
    "R02",
    by="a Job of a TrainJob was given more retries than its runtime says",
    shows="a node failed for good, and the job is {'once': 'no condition'}",
)
def test_more_retries(trainjobs: TrainJobs) -> None:
    kube, ns = trainjobs.kube, trainjobs.namespace

    def act(jobs: list[Object]) -> bool:
        for job in jobs:
            kube.patch(JOBS, job["metadata"]["name"], {"spec": {"backoffLimit": 5}}, ns)
        return bool(jobs)

    with breaking.meddling(kube, JOBS, ns, act):
        test_recovery.test_without_retries_the_first_failure_fails_a_trainjob(trainjobs)


@pytest.mark.proves(
    "R05",
    by="a second Job was put into a TrainJob while its operator was killed",
    shows="jobs: more than 1 for each job",
)
def test_a_job_more(system: SystemUnderTest, trainjobs: TrainJobs, inject: Inject) -> None:
    kube, ns = trainjobs.kube, trainjobs.namespace

    def act(jobs: list[Object]) -> bool:
        for job in jobs[:1]:
            template = job["spec"]["template"]["spec"]
            spec = {"suspend": True, "template": {"spec": template}}
            twin = {
                "apiVersion": JOBS.api_version,
                "kind": JOBS.kind,
                "metadata": {"name": "twin"},
                "spec": spec,
            }
            kube.create(twin, namespace=ns)
        return bool(jobs)

    with breaking.meddling(kube, JOBS, ns, act):
        test_recovery.test_a_killed_operator_changes_nothing_about_a_trainjobs_end(
            system, trainjobs, inject, "TrainJob, as jobs run"
        )


@pytest.mark.proves(
    "C03", by="somebody's finalizer keeps a Job of a deleted TrainJob", rule="leftovers"
)
def test_a_job_that_stays(system: SystemUnderTest, trainjobs: TrainJobs, expect: Expecting) -> None:
    collecting.wait(system)
    kube, ns = trainjobs.kube, trainjobs.namespace
    kept: list[str] = []

    def act(jobs: list[Object]) -> bool:
        for job in jobs[:1]:
            name, held = job["metadata"]["name"], job["metadata"].get("finalizers") or []
            kube.patch(JOBS, name, {"metadata": {"finalizers": [*held, breaking.FINALIZER]}}, ns)
            kept.append(name)
        return bool(jobs)

    try:
        with breaking.meddling(kube, JOBS, ns, act):
            test_deletion.test_a_trainjob_deleted_in_any_state_leaves_nothing(trainjobs, expect)
    finally:
        for name in kept:
            kube.patch(JOBS, name, {"metadata": {"finalizers": []}}, ns)


@pytest.mark.proves(
    "V03",
    by="Trainer's webhook was taken away",
    shows="podSpecOverrides while it runs of a TrainJob that runs could be changed",
)
def test_nobody_refuses(trainjobs: TrainJobs) -> None:
    with _without_webhook(trainjobs.kube):
        test_api.test_an_immutable_field_of_a_trainjob_cannot_be_changed(
            trainjobs, "TrainJob, podSpecOverrides while it runs"
        )


@pytest.mark.proves(
    "G04", by="a member of a TrainJob's gang was bound by hand", shows="may be bound"
)
def test_a_member_is_bound(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    trainjobs: TrainJobs,
    expect: Expecting,
    measure: Measuring,
) -> None:
    kube = trainjobs.kube
    total = system.cluster.topology.gpus

    def act(pods: list[Object]) -> bool:
        members = [p for p in pods if p["metadata"]["labels"].get(JOB_LABEL) == "gang"]
        if len(members) < total - 1:
            return False
        node, _ = breaking.gpu_node(kube)
        breaking.bind(kube, ns, members[0]["metadata"]["name"], node)
        return True

    with breaking.meddling(kube, PODS, ns, act):
        test_gang.test_too_little_room_binds_no_node_then_all(
            system, ns, gpus, trainjobs, expect, measure
        )


@contextmanager
def _without_webhook(kube: Kube) -> Iterator[None]:
    hook = kube.get(HOOKS, HOOK)
    assert hook is not None
    kube.delete(HOOKS, HOOK)
    try:
        yield
    finally:
        meta = {"name": HOOK, "labels": hook["metadata"].get("labels", {})}
        kube.create({**hook, "metadata": meta})
