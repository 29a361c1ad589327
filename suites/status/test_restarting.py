"""Conditions of a job that is restarted, and of one that is written to at once."""

from __future__ import annotations

import pytest

from clusters.kube import conditions
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import Program, order
from suites import jobs, tables
from suites.cast import KINDS, LEADERS, Cast
from suites.status.test_conditions import EXCLUSIVE, follow

#: seconds for a job that is restarted once
LIFE = 90.0
JOBS = 8


@pytest.mark.behaviour("T01")
@pytest.mark.parametrize("kind", list(KINDS), ids=[f"restarted, {kind}" for kind in KINDS])
def test_restarting_and_running_replace_each_other(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str
) -> None:
    """Running, Restarting, Running, Succeeded: read from every version of the job."""
    cast = Cast(system, ns, expect)
    made = cast.add(kind, "restarted", restart="ExitCode")
    cast.run()
    cast.tell("restarted", order("exit", 137, role="worker", times=1, id="once"))
    seen: list[str] = []
    down = False
    for number, version in enumerate(follow(system.cluster.kube, KINDS[kind], made, deadline=LIFE)):
        now = conditions(version)
        for one, other in EXCLUSIVE:
            assert not (now.get(one) == now.get(other) == "True"), (
                f"version {number}: {one} and {other} are both True"
            )
        for name in ("Running", "Restarting", "Succeeded", "Failed"):
            if now.get(name) == "True" and seen[-1:] != [name]:
                seen.append(name)
        down = down or ("Running" in seen and not jobs.replicas(version, "Worker")["active"])
        back = down and jobs.replicas(version, "Worker")["active"] == 1
        assert not back or "Restarting" in seen, (
            f"version {number}: its worker was replaced, and Restarting was never True"
        )
        if seen[-2:] == ["Restarting", "Running"]:
            cast.tell("restarted", order("finish", role=LEADERS[kind]))
    assert seen == ["Running", "Restarting", "Running", "Succeeded"], (
        f"conditions that were True, in order: {seen}"
    )


@pytest.mark.behaviour("T01", case="written to at once")
def test_a_job_that_is_written_to_at_once_is_created(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Somebody (kubectl, a mutating controller) writes to jobs right after they were submitted."""
    cast = Cast(system, ns, expect)
    for index in range(JOBS):
        kind = "PyTorchJob" if index % 2 else "TFJob"
        name = f"touched-{index}"
        cast.workers(kind, name, 1, program=Program(seconds=2))
        cast.touch(name)
    with tables.judged() as table:
        late = cast.reach(dict.fromkeys(cast.kinds, tables.true("Succeeded")), deadline=60)
        for name, seen in late.items():
            table.broke(name, f"its only pod runs 2 s, and the job is {seen}")
        for name in cast.kinds:
            job = cast.job(name)
            table.hold(name, tables.true("Created")(job), f"not Created, but {tables.told(job)}")
