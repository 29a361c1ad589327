"""TrainJobs whose pods fail, and whose operator is killed.

A TrainJob has no restart policy of its own. Its runtime says what a failure of a pod means
(``backoffLimit`` and ``restartPolicy`` of the Job) and what a failure of a Job does
(``failurePolicy`` of the JobSet).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.faults.base import Fault, Proof
from chaos.faults.systems import KillSystem
from chaos.site import Site
from chaos.target import Target
from clusters.kube import JOBS, JOBSETS, PODS, SERVICES, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems import answering
from fixtures.systems.operators import trainer_manifests
from suites import tables
from suites.trainjob.stage import INDEX_LABEL, KIND, TrainJobs, names, of, runs

pytestmark = pytest.mark.jobs(KIND)

#: seconds for which nothing may change
HOLD = 4.0
#: seconds until what an operator that was killed left undone is done: it starts within 2 to 5
BACK = 60.0
#: seconds until a Job makes another pod in place of a failed one: 10 after the first failure
#: (kube-controller-manager, Job: back-off of pods)
REPLACED = 45.0

_FAILED = tables.true("Failed")


@pytest.mark.behaviour("R02", case="TrainJob, no retries")
def test_without_retries_the_first_failure_fails_a_trainjob(trainjobs: TrainJobs) -> None:
    """One of two nodes fails: the job is Failed, the other node's pod is ended, none comes."""
    trainjobs.add("once", restart_policy="Never", backoff_limit=0)
    first = trainjobs.run()
    trainjobs.finish("once", 1, index=1)
    late = trainjobs.reach({"once": _FAILED})
    assert not late, f"a node failed for good, and the job is {late}"

    def others(pods: list[Object]) -> str:
        return names([p for p in pods if p["metadata"]["uid"] not in first])

    made = tables.held(trainjobs.kube, PODS, trainjobs.namespace, others, seconds=HOLD)
    assert not made, f"the job has failed, and pods were made: {made}"
    left = [pod for pod in trainjobs.pods("once") if runs(pod)]
    assert not left, f"the job has failed, and these run on: {names(left)}"


@pytest.mark.behaviour("R02", case="TrainJob, backoffLimit")
def test_a_failed_pod_of_a_trainjob_is_replaced_within_the_limit(
    trainjobs: TrainJobs, expect: Expecting
) -> None:
    """With a limit of 1 the first failure is answered with another pod, the second one ends all.

    The other node's pod is left alone meanwhile.
    """
    trainjobs.add("twice", restart_policy="Never", backoff_limit=1)
    trainjobs.run()
    zero = _node(trainjobs, "twice", 0)
    old = _node(trainjobs, "twice", 1)
    trainjobs.finish("twice", 1, index=1)

    def again(pods: list[Object]) -> bool | None:
        new = [p for p in pods if _index(p) == "1" and p["metadata"]["uid"] != old and runs(p)]
        return True if new else None

    with expect("the pod that failed is replaced"):
        trainjobs.kube.wait(
            PODS, again, namespace=trainjobs.namespace, labels=of("twice"), deadline=REPLACED,
            why="another pod of node 1 running",
        )  # fmt: skip
    assert not _FAILED(trainjobs.job("twice")), "one failure, with a limit of 1, and it is Failed"
    assert _node(trainjobs, "twice", 0) == zero, "node 1 failed, and node 0 was made again"
    trainjobs.finish("twice", 1, index=1)
    late = trainjobs.reach({"twice": _FAILED})
    assert not late, f"two failures, with a limit of 1, and the job is {late}"


@pytest.mark.behaviour("R02", case="TrainJob, maxRestarts")
def test_a_failed_job_of_a_trainjob_restarts_all_of_it_within_the_limit(
    trainjobs: TrainJobs, expect: Expecting
) -> None:
    """With maxRestarts 1 the first failure makes all pods anew, the second one fails the job."""
    trainjobs.add(
        "anew", restart_policy="Never", backoff_limit=0, failure_policy={"maxRestarts": 1}
    )
    first = trainjobs.run()
    trainjobs.finish("anew", 1, index=1)
    second = trainjobs.run(but=first)
    assert not _FAILED(trainjobs.job("anew")), "one failure, with maxRestarts 1, and it is Failed"
    trainjobs.finish("anew", 1, index=0)
    late = trainjobs.reach({"anew": _FAILED})
    assert not late, f"two failures, with maxRestarts 1, and the job is {late}"
    left = [p for p in trainjobs.pods("anew") if runs(p) and p["metadata"]["uid"] in second]
    assert not left, f"the job has failed, and these run on: {names(left)}"


def _index(pod: Object) -> str:
    return str(pod["metadata"]["labels"].get(INDEX_LABEL))


def _node(trainjobs: TrainJobs, job: str, index: int) -> str:
    """The uid of a node's pod that runs; "" when none does."""
    found = [p for p in trainjobs.pods(job) if _index(p) == str(index) and runs(p)]
    return str(found[0]["metadata"]["uid"]) if found else ""


# the operator ------------------------------------------------------------------------------

Killing = Callable[[], None]
Moment = Callable[[TrainJobs, Killing], str]


def _submitted(trainjobs: TrainJobs, kill: Killing) -> str:
    kill()
    return _finish(trainjobs)


def _running(trainjobs: TrainJobs, kill: Killing) -> str:
    trainjobs.run()
    kill()
    return _finish(trainjobs)


def _it_ends(trainjobs: TrainJobs, kill: Killing) -> str:
    trainjobs.run()
    for name in trainjobs.nodes:
        trainjobs.finish(name)
    kill()
    return "Complete"


def _it_fails(trainjobs: TrainJobs, kill: Killing) -> str:
    trainjobs.run()
    for name in trainjobs.nodes:
        trainjobs.finish(name, 1, index=1)
    kill()
    return "Failed"


def _finish(trainjobs: TrainJobs) -> str:
    trainjobs.run()
    for name in trainjobs.nodes:
        trainjobs.finish(name)
    return "Complete"


#: moment -> what is done then; it says how the jobs are to end
MOMENTS: dict[str, Moment] = {
    "TrainJob, as jobs are submitted": _submitted,
    "TrainJob, as jobs run": _running,
    "TrainJob, as jobs complete": _it_ends,
    "TrainJob, as jobs fail": _it_fails,
}


@pytest.mark.exclusive
@pytest.mark.behaviour("R05")
@pytest.mark.parametrize("moment", list(MOMENTS))
def test_a_killed_operator_changes_nothing_about_a_trainjobs_end(
    system: SystemUnderTest, trainjobs: TrainJobs, inject: Callable[[Fault], Proof], moment: str
) -> None:
    """Two jobs end as they would have, and nothing of them is made twice; JobSet is killed too."""
    # on kind the kubelet keeps a container waiting that another test killed
    cases = trainer_manifests.webhook_cases()
    answering.webhooks_answer(trainjobs.kube, cases, deadline=BACK)
    for number in range(2):
        trainjobs.add(f"job-{number}", restart_policy="Never", backoff_limit=0)

    def kill() -> None:
        inject(KillSystem(Site.of(system.cluster), Target.operator(system.operator)))

    wanted = MOMENTS[moment](trainjobs, kill)
    late = trainjobs.reach(dict.fromkeys(trainjobs.nodes, tables.true(wanted)), deadline=BACK)
    with tables.judged() as table:
        for name, seen in late.items():
            table.broke(name, f"expected: {wanted}; {BACK:.0f} s after the operator it is {seen}")
        for what, each in ((JOBSETS, 1), (JOBS, 1), (SERVICES, 1), (PODS, 2)):
            found = trainjobs.kube.find(what, trainjobs.namespace)
            many = len(found) > each * len(trainjobs.nodes)
            table.hold(what.plural, not many, f"more than {each} for each job: {names(found)}")
