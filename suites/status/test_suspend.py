"""A job that is suspended, and resumed."""

from __future__ import annotations

import pytest

from clusters.kube import PODS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.systems.protocols import Feature
from fixtures.workloads import order
from suites import jobs, tables
from suites.cast import ANSWER, Cast, at, needs

KINDS = ["PyTorchJob", "TFJob"]
#: seconds for which a suspended job is watched
HOLD = 5.0


def _suspend(cast: Cast, name: str, yes: bool) -> None:
    cast.patch(name, {"spec": {"runPolicy": {"suspend": yes}}})


def _no_pods(cast: Cast) -> None:
    cast.kube.wait(
        PODS, lambda pods: None if pods else True, namespace=cast.namespace,
        deadline=ANSWER, why="no pods",
    )  # fmt: skip


def _idle(job: Object | None) -> bool:
    roles = (job or {}).get("status", {}).get("replicaStatuses") or {}
    return not any(role.get("active") for role in roles.values())


def _any(items: list[Object]) -> str:
    return ", ".join(item["metadata"]["name"] for item in items)


@pytest.mark.behaviour("T09", case="suspended while it runs")
def test_a_running_job_is_suspended_and_resumed(
    system: SystemUnderTest, ns: str, expect: Expecting, measure: Measuring
) -> None:
    """No pods, counts zero, not Running; resumed, it starts anew and succeeds."""
    needs(system, Feature.SUSPEND)
    cast = Cast(system, ns, expect)
    for kind in KINDS:
        cast.add(kind, kind.lower())
    cast.run()
    began = {name: at(cast.job(name) or {}, "startTime") for name in cast.kinds}
    for name in cast.kinds:
        _suspend(cast, name, True)
    with expect("no pod of a suspended job is left"):
        _no_pods(cast)
    with tables.judged() as table:
        late = cast.reach(dict.fromkeys(cast.kinds, tables.true("Suspended")))
        for name, seen in late.items():
            table.broke(name, f"not Suspended, but {seen}")
        for name in cast.reach(dict.fromkeys(cast.kinds, _idle), deadline=10):
            table.broke(name, "it is suspended and counts active pods")
        for name in cast.kinds:
            running = tables.true("Running")(cast.job(name))
            table.hold(name, not running, "Running and Suspended are both true")
        made = tables.held(cast.kube, PODS, ns, _any, seconds=HOLD)
        if made:
            table.broke(made, "a pod was made for a suspended job")
    kept = sum(bool(at(cast.job(name) or {}, "startTime")) for name in cast.kinds)
    measure("jobs that keep a startTime while suspended", kept, "jobs")

    for name in cast.kinds:
        _suspend(cast, name, False)
    cast.run()
    with tables.judged() as table:
        for name in cast.kinds:
            job = cast.job(name) or {}
            table.hold(name, not tables.true("Suspended")(job), "resumed, and still Suspended")
            table.hold(name, at(job, "startTime") > began[name], "resumed, with its old startTime")
            cast.tell(name, order("finish"))
        for name, seen in cast.reach(dict.fromkeys(cast.kinds, tables.true("Succeeded"))).items():
            table.broke(name, f"resumed and finished, and it is {seen}")


@pytest.mark.behaviour("T09", case="submitted suspended")
def test_a_job_that_is_submitted_suspended_waits(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """As queueing systems submit them: nothing is made until somebody resumes it."""
    needs(system, Feature.SUSPEND)
    cast = Cast(system, ns, expect)
    for kind in KINDS:
        cast.add(kind, kind.lower(), policy={"suspend": True})
    made = tables.held(cast.kube, PODS, ns, _any, seconds=HOLD)
    assert not made, f"pods were made for jobs that are suspended: {made}"
    late = cast.reach(dict.fromkeys(cast.kinds, tables.true("Suspended")))
    assert not late, f"not Suspended: {late}"
    for name in cast.kinds:
        _suspend(cast, name, False)
    cast.run()
    for name in cast.kinds:
        cast.tell(name, order("finish"))
    late = cast.reach(dict.fromkeys(cast.kinds, tables.true("Succeeded")))
    assert not late, f"resumed and finished, but not Succeeded: {late}"
    left = [pod for pod in cast.kube.find(PODS, ns, labels=jobs.JOB_LABEL)
            if pod["status"].get("phase") == "Running"]  # fmt: skip
    assert not left, f"pods run on: {_any(left)}"
