"""Gangs that an operator makes: which pods belong to them, and what becomes of their groups."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from chaos.faults.pod import DeletePod
from clusters.errors import WaitTimeout
from clusters.kube import PODS, PYTORCHJOBS, TFJOBS, Object, Resource, conditions
from clusters.resources import is_bound
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.workloads import Program, elastic_program_job, pytorchjob, tfjob
from oracles.errors import NotApplicable
from suites import groups, jobs, pods, promises
from suites.pods import ADMISSION
from suites.promises import Promise
from suites.steps import SHORT

#: no node has it
NOWHERE = {"muster.dev/no-node": "has-this"}
#: seconds within which an operator follows a change
FOLLOWS = 10.0
#: seconds for a job whose pods run for two
LIFE = 60.0


def _jobs() -> dict[str, tuple[Resource, str, Object]]:
    """Kind -> resource, field of its replicas, a job of all its roles; 4 pods each."""
    return {
        "TFJob": (
            TFJOBS, "tfReplicaSpecs", tfjob("roles", chief=1, ps=1, workers=2, gpus=0)
        ),
        "PyTorchJob": (PYTORCHJOBS, "pytorchReplicaSpecs", pytorchjob("roles", workers=3)),
    }  # fmt: skip


@pytest.mark.behaviour("G09")
@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("TFJob", "PS"),
        ("TFJob", "Chief"),
        ("TFJob", "Worker"),
        ("PyTorchJob", "Master"),
        ("PyTorchJob", "Worker"),
    ],
)
def test_no_role_is_bound_without_the_others(
    system: SystemUnderTest, ns: str, kind: str, role: str, expect: Expecting
) -> None:
    """The pods of one role fit nowhere, so those of the others have to wait, and be counted."""
    promises.require_gang_jobs(system.scheduler)
    promises.require(system.scheduler, Promise.FITS)
    kube, scheduler = system.cluster.kube, system.scheduler
    _, field, job = _jobs()[kind]
    job["spec"][field][role]["template"]["spec"]["nodeSelector"] = NOWHERE
    kube.create(job, namespace=ns)
    members = jobs.of("roles")
    least = 4 if scheduler.pods_before_admission else 0
    if least:
        pods.wait_created(kube, ns, least, labels=members)
    with expect("the group of the job is made"):
        group = groups.wait(system, ns, lambda _: True, deadline=FOLLOWS, why="the job's group")
    pods.hold_unbound(kube, ns, labels=members, seconds=SHORT, least=least)
    assert group.min_member == 4, f"the job has 4 pods, its group asks for {group.min_member}"


@pytest.mark.behaviour("G01", case="a job of one pod")
def test_a_job_of_one_pod_is_a_gang_of_one(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """kubeflow/trainer#922: it got no group, and its pod waited for one for ever."""
    promises.require_gang_jobs(system.scheduler)
    kube = system.cluster.kube
    kube.create(tfjob("one", ps=0, workers=1, gpus=0), namespace=ns)
    with expect("its pod is bound"):
        pods.wait_bound(kube, ns, 1, labels=jobs.of("one"), deadline=ADMISSION)
    groups.asks_for_all(system, ns, 1)


@pytest.mark.behaviour("G10", case="TFJob")
def test_a_job_whose_minimum_is_lowered_runs(
    system: SystemUnderTest, ns: str, gpus: Callable[[int], int], expect: Expecting
) -> None:
    """The minimum is given by the job's scheduling policy, and is more than its pods."""
    promises.require_gang_jobs(system.scheduler)
    promises.require(system.scheduler, Promise.NEW_MINIMUM)
    gpus(2)
    kube = system.cluster.kube

    def policy(minimum: int) -> Object:
        return {"schedulingPolicy": {"minAvailable": minimum}}

    job = tfjob("low", ps=1, workers=2, program=Program(seconds=2), run_policy=policy(5))
    kube.create(job, namespace=ns)
    members = jobs.of("low")
    least = 3 if system.scheduler.pods_before_admission else 0
    if least:
        pods.wait_created(kube, ns, least, labels=members)
    pods.hold_unbound(kube, ns, labels=members, seconds=SHORT, least=least)
    kube.patch(TFJOBS, "low", {"spec": {"runPolicy": policy(3)}}, ns)
    with expect("the job runs and succeeds"):
        jobs.wait_condition(kube, TFJOBS, ns, "low", "Succeeded", deadline=LIFE)


@pytest.mark.behaviour("G13")
@pytest.mark.parametrize("kind", ["TFJob", pytest.param("PyTorchJob", marks=pytest.mark.core)])
def test_a_lost_pod_comes_back_alone(
    system: SystemUnderTest,
    ns: str,
    kind: str,
    inject: Callable[..., Any],
    expect: Expecting,
    measure: Measuring,
) -> None:
    """A worker's pod is deleted. The operator replaces it; the others run on untouched.

    A deleted pod is made again and no other one is touched (training-operator's reconciler; the
    restart policy is about containers that ended).
    """
    kube = system.cluster.kube
    kube.create(_jobs()[kind][2], namespace=ns)
    members = jobs.of("roles")
    with expect("all 4 pods are bound"):
        first = pods.wait_bound(kube, ns, 4, labels=members, deadline=ADMISSION)
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in first}
    victim = "roles-worker-1"
    proof = inject(DeletePod(system.cluster, ns, victim))

    def replaced(found: list[Object]) -> list[Object] | None:
        uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}
        back = uids.get(victim) not in (None, before[victim])
        return found if back and len(found) == 4 and all(map(is_bound, found)) else None

    with expect("the lost pod is made again and bound"):
        try:
            now = kube.wait(
                PODS, replaced, namespace=ns, labels=members, deadline=ADMISSION,
                why="4 bound again",
            )  # fmt: skip
        except WaitTimeout:
            job = kube.get(_jobs()[kind][0], "roles", ns) or {}
            failed = conditions(job).get("Failed") == "True"
            assert not failed, f"{victim} was deleted, and the job Failed instead of making another"
            raise
    measure("bound again within", time.time() - proof.t, "s")
    after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in now}
    touched = sorted(n for n in before if n != victim and after.get(n) != before[n])
    assert not touched, f"{victim} was lost, and these were made again too: {', '.join(touched)}"


# groups of elastic jobs ------------------------------------------------------------------------


def _elastic(workers: int, low: int, run_policy: Object | None = None) -> Object:
    return elastic_program_job("elastic", workers=workers, low=low, high=4, run_policy=run_policy)


def _require_elastic(system: SystemUnderTest) -> None:
    promises.require_gang_jobs(system.scheduler)
    promises.require(system.scheduler, Promise.SURPLUS)


def _follows(system: SystemUnderTest, ns: str, minimum: int, why: str) -> None:
    """kubeflow/trainer#1515: the operator asks for all workers, whatever the policy says."""
    groups.asks_for(system, ns, minimum, deadline=FOLLOWS, why=why)


def _settled(system: SystemUnderTest, ns: str) -> None:
    """A job that is written to before its first status loses that status: T01 is about that."""
    jobs.wait_condition(
        system.cluster.kube, PYTORCHJOBS, ns, "elastic", "Created", deadline=ADMISSION
    )


@pytest.mark.behaviour("G14", case="the policy's minimum")
def test_the_group_of_an_elastic_job_asks_for_the_policys_minimum(
    system: SystemUnderTest, ns: str
) -> None:
    """Three workers, of which two are enough."""
    _require_elastic(system)
    system.cluster.kube.create(_elastic(3, 2), namespace=ns)
    _follows(system, ns, 2, "an elastic job of 3 workers and minReplicas 2")


@pytest.mark.behaviour("G14", case="rescaled")
def test_the_minimum_stays_when_an_elastic_job_is_rescaled(
    system: SystemUnderTest, ns: str
) -> None:
    """From two workers, which is its minimum, to four."""
    _require_elastic(system)
    kube = system.cluster.kube
    kube.create(_elastic(2, 2), namespace=ns)
    _follows(system, ns, 2, "an elastic job of 2 workers and minReplicas 2")
    _settled(system, ns)
    jobs.scale(kube, PYTORCHJOBS, ns, "elastic", 4)
    pods.wait_created(kube, ns, 4, labels=jobs.of("elastic"))
    _follows(system, ns, 2, "scaled from 2 to 4 workers, with minReplicas 2")


@pytest.mark.behaviour("G14", case="given and changed")
def test_the_group_follows_a_minimum_that_is_given(system: SystemUnderTest, ns: str) -> None:
    """The scheduling policy names the minimum, which is the way around kubeflow/trainer#1515."""

    def policy(minimum: int) -> Object:
        return {"schedulingPolicy": {"minAvailable": minimum}}

    _require_elastic(system)
    kube = system.cluster.kube
    kube.create(_elastic(3, 2, policy(2)), namespace=ns)
    _follows(system, ns, 2, "an elastic job of 3 workers and minAvailable 2")
    pods.wait_bound(kube, ns, 3, labels=jobs.of("elastic"), deadline=ADMISSION)
    _settled(system, ns)
    kube.patch(PYTORCHJOBS, "elastic", {"spec": {"runPolicy": policy(1)}}, ns)
    _follows(system, ns, 1, "minAvailable changed from 2 to 1")


# the end of groups -----------------------------------------------------------------------------


@pytest.mark.behaviour("G15")
@pytest.mark.parametrize(
    ("kind", "end"),
    [
        pytest.param("TFJob", "succeeds", marks=pytest.mark.core),
        ("PyTorchJob", "succeeds"),
        ("TFJob", "fails"),
        ("TFJob", "is deleted"),
        ("PyTorchJob", "is deleted"),
    ],
)
def test_a_group_goes_away_once(
    system: SystemUnderTest, ns: str, kind: str, end: str, expect: Expecting, measure: Measuring
) -> None:
    """kubeflow/trainer#1426: after the job's end its group was made and deleted for ever."""
    promises.require_gang_jobs(system.scheduler)
    what = system.scheduler.group_resource()
    assert what is not None
    if system.scheduler.makes_groups:
        raise NotApplicable(
            f"{system.scheduler.name} keeps a {what.kind} as the record of a job that has ended"
        )
    kube = system.cluster.kube
    job_kind = {"TFJob": TFJOBS, "PyTorchJob": PYTORCHJOBS}[kind]
    program = {
        "succeeds": Program(seconds=2),
        "fails": Program(seconds=2, code=1),
        "is deleted": Program(),
    }[end]
    job = (
        tfjob("ends", ps=0, workers=2, gpus=0, program=program, restart_policy="Never")
        if kind == "TFJob"
        else pytorchjob("ends", workers=1, program=program, restart_policy="Never")
    )
    since = groups.version(kube, what, ns)
    kube.create(job, namespace=ns)
    if end == "is deleted":
        with expect("both pods are bound"):
            pods.wait_bound(kube, ns, 2, labels=jobs.of("ends"), deadline=ADMISSION)
        kube.delete(job_kind, "ends", ns)
    else:
        done = "Succeeded" if end == "succeeds" else "Failed"
        with expect(f"the job {end}"):
            jobs.wait_condition(kube, job_kind, ns, "ends", done, deadline=LIFE)
    with expect("the group is gone"):
        kube.wait(
            what, lambda found: None if found else True, namespace=ns, deadline=FOLLOWS,
            why=f"no {what.kind} in {ns}",
        )  # fmt: skip
    if end != "is deleted":  # makes the operator look at the job again
        again = {"metadata": {"annotations": {"muster.dev/look": "again"}}}
        kube.patch(job_kind, "ends", again, ns)
    made = groups.made(kube, what, ns, since=since, seconds=SHORT)
    measure("group made", len(made), "1")
    # the garbage collector and the operator's last look at a deleted job may cross once
    allowed = 2 if end == "is deleted" else 1
    assert 1 <= len(made) <= allowed, f"the group was made {len(made)} times in the job's life"
    left = kube.find(what, ns)
    assert not left, f"groups are left or made again: {pods.names(left)}"
