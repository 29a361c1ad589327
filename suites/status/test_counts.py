"""Replica counts, against what the pods do."""

from __future__ import annotations

import pytest

from clusters.kube import Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import order
from suites import endings, jobs, tables
from suites.cast import LEADERS, Cast

#: seconds within which pods and counts have done what they were told; measured 2.6, and more than
#: 15 on 2 cores at a load average of 130
BOUND = 20.0
KINDS = ["PyTorchJob", "TFJob"]
ENDINGS = ["failure", "backoff limit", "deadline"]


def counts(role: str, active: int, succeeded: int = 0, failed: int = 0) -> tables.Check:
    """Whether a job counts exactly so."""
    wanted = {"active": active, "succeeded": succeeded, "failed": failed}

    def check(job: Object | None) -> bool:
        return job is not None and jobs.replicas(job, role) == wanted

    return check


def _expect(cast: Cast, name: str, step: str, *wanted: tables.Check) -> None:
    late = cast.reach({name: lambda job: all(check(job) for check in wanted)}, deadline=BOUND)
    if late:
        job = cast.job(name) or {}
        said = {
            role: jobs.replicas(job, role)
            for role in job.get("status", {}).get("replicaStatuses") or {}
        }
        raise AssertionError(f"{step}: the counts are {said} after {BOUND:.0f} s")


@pytest.mark.behaviour("T03")
@pytest.mark.parametrize("kind", KINDS)
def test_counts_follow_the_pods(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str
) -> None:
    """Three workers run, one is replaced, one succeeds, and the leader ends the job."""
    cast = Cast(system, ns, expect)
    leader = LEADERS[kind].capitalize()
    cast.add(kind, "counted", others=3, restart="ExitCode")
    cast.run()
    _expect(cast, "counted", "all run", counts("Worker", 3), counts(leader, 1))
    # first, while all of its gang exist: coscheduling does not place a replaced member once another
    # one has succeeded ("cannot find enough sibling pods"), which is no matter of counts
    once = order("exit", 137, pod="counted-worker-2", times=1, id="once")
    cast.tell("counted", once)
    with expect("a worker that failed is not counted as active until it is replaced"):
        jobs.wait(
            cast.kube, cast.kinds["counted"], ns, "counted",
            lambda job: jobs.replicas(job, "Worker")["active"] < 3, deadline=BOUND, why="fewer",
        )  # fmt: skip
    _expect(cast, "counted", "it was replaced", counts("Worker", 3))
    cast.tell("counted", order("finish", pod="counted-worker-1"))
    _expect(cast, "counted", "one worker has succeeded", counts("Worker", 2, 1))
    cast.tell("counted", order("finish"))
    _expect(cast, "counted", "all have succeeded", counts(leader, 0, 1))


@pytest.mark.behaviour("T03")
@pytest.mark.parametrize(
    "ending", ENDINGS, ids=[f"ended with running pods by {ending}" for ending in ENDINGS]
)
def test_a_job_that_ended_counts_no_pod_that_is_gone(
    system: SystemUnderTest, ns: str, expect: Expecting, ending: str
) -> None:
    """Policy All: no pod is left, so none may be counted as active."""
    cast = Cast(system, ns, expect)
    names = endings.ended(cast, ending, cleanPodPolicy="All")

    def none_active(job: Object | None) -> bool:
        roles = (job or {}).get("status", {}).get("replicaStatuses") or {}
        return not any(role.get("active") for role in roles.values())

    with tables.judged() as table:
        for name in cast.reach(dict.fromkeys(names, none_active), deadline=BOUND):
            left = len(cast.of(name))
            table.broke(name, f"it has ended, {left} pods are left, and it counts active ones")
