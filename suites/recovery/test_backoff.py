"""The backoff limit, on each way in which a failure is retried."""

from __future__ import annotations

import pytest

from clusters.cluster import Capability
from clusters.kube import PODS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.workloads import order
from suites import jobs, tables
from suites.cast import ANSWER, LEADERS, Cast, failed

KINDS = ["PyTorchJob", "TFJob"]
LIMIT = 2
#: failures after which a limit of LIMIT counts as ignored, with one for a status that is late
TOO_MANY = LIMIT + 3
#: seconds for a pod that its kubelet restarts a second time: after 10 s of back-off
SECOND = 45.0


@pytest.mark.behaviour("R02", case="restarted in place, limit reached")
def test_a_limit_that_is_reached_fails_the_job(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """OnFailure: the kubelet restarts the container, the operator reads its count."""
    cast = Cast(system, ns, expect)
    cells = {f"{kind.lower()}-{limit}": (kind, limit) for kind in KINDS for limit in (0, 1)}
    for name, (kind, limit) in cells.items():
        cast.add(kind, name, policy={"backoffLimit": limit})
    cast.run()
    for name in cells:
        cast.tell(name, order("exit", 1, role="worker"))
    with tables.judged() as table:
        late = cast.reach(dict.fromkeys(cells, failed), deadline=SECOND)
        for name, seen in late.items():
            table.broke(name, f"its worker fails again and again, but the job is {seen}")


@pytest.mark.behaviour("R02", case="restarted in place, below the limit")
def test_below_the_limit_the_job_goes_on(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Two failures with a limit of three; then the job succeeds."""
    system.cluster.require(Capability.CONTAINERS)
    cast = Cast(system, ns, expect)
    names = {f"{kind.lower()}-below": kind for kind in KINDS}
    for name, kind in names.items():
        cast.add(kind, name, policy={"backoffLimit": 3})
    cast.run()
    for name in names:
        cast.tell(name, order("exit", 1, role="worker", times=2, id="twice"))

    def twice(pod: Object | None) -> bool:
        states = (pod or {}).get("status", {}).get("containerStatuses") or []
        return any(s["restartCount"] == 2 and "running" in s["state"] for s in states)

    wanted = {f"{name}-worker-0": twice for name in names}
    late = tables.reach(system.cluster.kube, PODS, ns, wanted, deadline=SECOND)
    assert not late, f"workers were not restarted twice: {late}"
    for name, kind in names.items():
        cast.tell(name, order("finish", role=LEADERS[kind]))
    with tables.judged() as table:
        late = cast.reach(dict.fromkeys(names, tables.true("Succeeded")))
        for name, seen in late.items():
            table.broke(name, f"two failures with a limit of 3, and the job is {seen}")


@pytest.mark.behaviour("R02")
@pytest.mark.parametrize("kind", KINDS, ids=[f"replaced by new pods, {kind}" for kind in KINDS])
def test_the_limit_counts_pods_that_are_replaced(
    system: SystemUnderTest, ns: str, expect: Expecting, measure: Measuring, kind: str
) -> None:
    """ExitCode: a pod with a retryable code is replaced; each one counts."""
    cast = Cast(system, ns, expect)
    cast.add(kind, "replaced", restart="ExitCode", policy={"backoffLimit": LIMIT})
    cast.run()
    failures: set[str] = set()
    running: set[str] = set()

    def enough(pods: list[Object]) -> bool | None:
        for pod in pods:
            uid, phase = pod["metadata"]["uid"], pod["status"].get("phase")
            if phase == "Failed":
                failures.add(uid)
            elif phase == "Running" and uid not in running:
                running.add(uid)
                cast.tell("replaced", order("exit", 137, role="worker"))
        return True if len(failures) >= TOO_MANY or failed(cast.job("replaced")) else None

    with expect(f"the job fails, or its worker does {TOO_MANY} times"):
        system.cluster.kube.wait(
            PODS, enough, namespace=ns, labels=jobs.of("replaced", "worker"), deadline=3 * ANSWER,
            why="failures counted",
        )  # fmt: skip
    measure("failures", len(failures), "pods")
    job = cast.job("replaced")
    assert failed(job), (
        f"{len(failures)} workers failed with a backoff limit of {LIMIT}, and the job is"
        f" {tables.told(job)}"
    )


@pytest.mark.behaviour("R02", case="Never")
def test_a_policy_without_retries_needs_no_limit(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Never: the first failure ends the job, whatever the limit; no pod is made again."""
    cast = Cast(system, ns, expect)
    names = {f"{kind.lower()}-never": kind for kind in KINDS}
    for name, kind in names.items():
        cast.add(kind, name, restart="Never", policy={"backoffLimit": 3})
    cast.run()
    before = cast.uids()
    for name in names:
        cast.tell(name, order("exit", 1, role="worker"))
    with tables.judged() as table:
        for name, seen in cast.reach(dict.fromkeys(names, failed)).items():
            table.broke(name, f"a worker failed for good, and the job is {seen}")
        for name in names:
            pod = f"{name}-worker-0"
            table.hold(name, cast.uids().get(pod) == before[pod], "its worker was made again")
