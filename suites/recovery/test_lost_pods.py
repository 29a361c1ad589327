"""Pods that are lost: killed with their node, or told to leave it; role by role.

Nothing of a job has failed then by itself, and its policy is to restart what fails: so the pod
comes back under its name, and the job goes on.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.faults.base import Fault, Proof
from chaos.faults.pod import DeletePod
from clusters.cluster import Capability
from clusters.kube import PODS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.workloads import order
from oracles.errors import NotApplicable
from suites import jobs, tables
from suites.cast import ANSWER, KINDS, LEADERS, Cast, failed
from suites.recovery.leaving import Leave
from suites.recovery.test_restart_policy import ROLES

POLICIES = ("OnFailure", "ExitCode")
#: a pod that is killed at once is marked as leaving for milliseconds, which TFJob's controller
#: takes for a failure when it happens to see it (3 times of 8 in 1.7.0): its answer to that is
#: told by the pod that takes its time, and is not left to chance here
LOST = [
    ("PyTorchJob", "killed at once"),
    ("PyTorchJob", "told to leave"),
    ("TFJob", "told to leave"),
]
#: seconds for which a job whose pod is leaving is watched
HOLD = 4.0
#: seconds until a job tells of a pod that was deleted; a second or two, as all of its answers
SAID = 20.0


@pytest.mark.behaviour("R08")
@pytest.mark.parametrize(("kind", "how"), LOST, ids=["-".join(lost) for lost in LOST])
def test_a_pod_that_is_lost_comes_back(
    system: SystemUnderTest,
    ns: str,
    expect: Expecting,
    inject: Callable[[Fault], Proof],
    measure: Measuring,
    kind: str,
    how: str,
) -> None:
    """One job for each role and policy; of each that one pod is lost, and the job succeeds."""
    cast = Cast(system, ns, expect)
    cells = {f"{role}-{p.lower()}": (role, p) for role in ROLES[kind] for p in POLICIES}
    for name, (role, policy) in cells.items():
        cast.add(kind, name, role=role, restart=policy)
    before = cast.run()
    lost = {f"{name}-{role}-0": name for name, (role, _) in cells.items()}
    with tables.judged() as table:
        if how == "told to leave":
            leave = Leave(system.cluster, ns, list(lost))
            inject(leave)
            early: set[str] = set()

            def ended(items: list[Object]) -> str:
                early.update(item["metadata"]["name"] for item in items if failed(item))
                return ""

            tables.held(cast.kube, KINDS[kind], ns, ended, seconds=HOLD)
            for name in sorted(early):
                table.broke(_cell(*cells[name]), "the job Failed while its pod was leaving")
            leave.recover()
        else:
            for pod in lost:
                inject(DeletePod(system.cluster, ns, pod))
        wanted = {
            pod: tables.anew(before[pod]["metadata"]["uid"])
            for pod, name in lost.items()
            if not failed(cast.job(name))
        }
        late = tables.reach(cast.kube, PODS, ns, wanted, deadline=ANSWER)
        for pod, seen in late.items():
            table.broke(_cell(*cells[lost[pod]]), f"its pod is not replaced: {seen}")
        measure("jobs that go on", len(wanted) - len(late), "jobs")
        left = [name for pod, name in lost.items() if pod in wanted and pod not in late]
        told = cast.reach(dict.fromkeys(left, tables.true("Running")))
        for name, seen in told.items():
            table.broke(_cell(*cells[name]), f"its pods run again, and the job is {seen}")
        for name in left:
            cast.tell(name, order("finish", role=LEADERS[kind]))
        for name, seen in cast.reach(dict.fromkeys(left, tables.true("Succeeded"))).items():
            table.broke(_cell(*cells[name]), f"its leader succeeded, and the job is {seen}")
        for name in cells:
            if name not in left:
                seen = tables.told(cast.job(name))
                table.broke(_cell(*cells[name]), f"one pod was lost, and the job is {seen}")


@pytest.mark.behaviour("R04")
@pytest.mark.parametrize("kind", list(ROLES), ids=[f"a silent node, {kind}" for kind in ROLES])
def test_a_pod_of_a_silent_node_is_told_of_and_replaced(
    system: SystemUnderTest,
    ns: str,
    expect: Expecting,
    inject: Callable[[Fault], Proof],
    kind: str,
) -> None:
    """Its pods are deleted, and no kubelet says that they have ended, until the node is removed.

    As the API shows it; whole nodes are lost in ``chaos/experiments``. Before, no other pod can
    have the name, so the job can only say so: it does not count such a worker as active, and is
    not Failed, as its policy is to restart. Afterwards it goes on.
    """
    if Capability.CONTAINERS in system.cluster.capabilities:
        raise NotApplicable("a real kubelet says that a pod has ended; see chaos/experiments")
    cast = Cast(system, ns, expect)
    names = [f"silent-{policy.lower()}" for policy in POLICIES]
    for name, policy in zip(names, POLICIES, strict=True):
        cast.add(kind, name, restart=policy)
    before = cast.run()
    lost = {f"{name}-worker-0": name for name in names}
    leave = Leave(system.cluster, ns, list(lost), seconds=600)
    inject(leave)
    with tables.judged() as table:
        told = dict.fromkeys(names, _no_worker_is_active)
        for name in cast.reach(told, deadline=SAID):
            table.broke(name, "its worker's node is silent, and it counts it as active")
        for name in names:
            table.hold(name, not failed(cast.job(name)), "it Failed while its node was silent")
        leave.recover()
        left = [name for name in names if not failed(cast.job(name))]
        wanted = {
            pod: tables.anew(before[pod]["metadata"]["uid"])
            for pod, name in lost.items()
            if name in left
        }
        late = tables.reach(cast.kube, PODS, ns, wanted, deadline=ANSWER)
        for pod, seen in late.items():
            table.broke(lost[pod], f"the node is gone, and its pod is not replaced: {seen}")
        for name, seen in cast.reach(dict.fromkeys(left, tables.true("Running"))).items():
            table.broke(name, f"its pods run again, and the job is {seen}")


def _no_worker_is_active(job: Object | None) -> bool:
    return job is not None and not jobs.replicas(job, "Worker")["active"]


def _cell(role: str, policy: str) -> str:
    return f"{role}, {policy}"
