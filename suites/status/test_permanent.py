"""A permanent exit code ends a job."""

from __future__ import annotations

import pytest

from clusters.kube import conditions
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import order
from suites import tables
from suites.cast import Cast, at
from suites.recovery.test_restart_policy import ROLES

#: below 128 (API documentation of RestartPolicyExitCode)
PERMANENT = (1, 127)


@pytest.mark.behaviour("T07")
@pytest.mark.parametrize("kind", list(ROLES))
def test_a_permanent_exit_code_fails_the_job(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str
) -> None:
    """Failed, not Restarting, and nothing is made anew."""
    cast = Cast(system, ns, expect)
    cells = {f"{role}-{code}": (role, code) for role in ROLES[kind] for code in PERMANENT}
    for name, (role, _) in cells.items():
        cast.add(kind, name, role=role, restart="ExitCode")
    cast.run()
    before = cast.uids()
    for name, (role, code) in cells.items():
        cast.tell(name, order("exit", code, role=role))
    with tables.judged() as table:
        late = cast.reach(dict.fromkeys(cells, tables.true("Failed")))
        now = cast.uids()
        for name, (role, code) in cells.items():
            cell = f"{role}, exit code {code}"
            job = cast.job(name) or {}
            table.hold(cell, name not in late, f"not Failed, but {late.get(name)}")
            pod = f"{name}-{role}-0"
            table.hold(cell, now.get(pod) == before[pod], "its pod was made again")
            restarting = conditions(job).get("Restarting") == "True"
            table.hold(cell, not restarting, "Restarting is true")


@pytest.mark.behaviour("T07", case="completion time")
def test_a_job_that_a_permanent_exit_code_failed_has_a_completion_time(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Whoever computes how long a job took, or cleans up after it, needs one."""
    cast = Cast(system, ns, expect)
    for kind in ROLES:
        cast.add(kind, kind.lower(), restart="ExitCode")
    cast.run()
    for name in cast.kinds:
        cast.tell(name, order("exit", 1, role="worker"))
    with tables.judged() as table:
        for name, seen in cast.reach(dict.fromkeys(cast.kinds, tables.true("Failed"))).items():
            table.broke(name, f"not Failed, but {seen}")
        with_time = {
            name: lambda job: job is not None and at(job, "completionTime") > 0
            for name in cast.kinds
        }
        for name in cast.reach(with_time, deadline=10):
            table.broke(name, "it has no completionTime")
