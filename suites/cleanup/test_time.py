"""Time to live and deadline, on a quiet cluster."""

from __future__ import annotations

import time

import pytest

from clusters.kube import Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.workloads import Program
from suites import endings, tables
from suites.cast import ANSWER, KINDS, Cast, at, failed

#: seconds to live after the end
TTL = 4
#: seconds after its time to live within which a job is gone
LATE = 15.0
#: the deadline of a job whose pod has started before it is over, and how late it may fire
DEADLINE, PATIENCE = 8, 12.0


@pytest.mark.behaviour("C02")
@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("ending", ["success", "failure", "permanent exit", "backoff limit"])
def test_a_finished_job_is_deleted_when_its_time_is_over(
    system: SystemUnderTest, ns: str, expect: Expecting, measure: Measuring, ending: str
) -> None:
    """Not before, and not long after; nothing else happens meanwhile."""
    cast = Cast(system, ns, expect)
    names = endings.run(cast, ending, ttlSecondsAfterFinished=TTL)
    endings.bring(cast, names, ending)
    done: dict[str, float] = {}
    gone: dict[str, float] = {}

    def ended(name: str) -> tables.Check:
        def check(job: Object | None) -> bool:
            if job is None or not tables.true(endings.end(ending))(job):
                return False
            done[name] = at(job, "completionTime") or time.time()
            return True

        return check

    with tables.judged() as table:
        for name, seen in cast.reach({name: ended(name) for name in names}).items():
            table.broke(name, f"after {ending} the job is {seen}")
            done[name] = time.time()

        def over(name: str) -> tables.Check:
            def check(job: Object | None) -> bool:
                if job is not None:
                    return False
                gone[name] = time.time()
                return True

            return check

        late = cast.reach({name: over(name) for name in names}, deadline=TTL + LATE)
        for name in late:
            table.broke(name, f"{TTL + LATE:.0f} s after {ending} it is still there")
        for name, when in gone.items():
            # a completion time is in whole seconds
            table.hold(name, when - done[name] >= TTL - 1, "it was deleted before its time")
            measure(f"{name} deleted after", when - done[name], "s")


@pytest.mark.behaviour("C02", case="deadline on a quiet job")
def test_a_deadline_fires_on_a_quiet_job(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """The job runs, nothing happens to it, and nobody touches it."""
    cast = Cast(system, ns, expect)
    for kind in KINDS:
        cast.workers(
            kind, kind.lower(), 1, program=Program(beat_ms=1000),
            run_policy={"activeDeadlineSeconds": DEADLINE},
        )  # fmt: skip
    names = list(cast.kinds)
    running = cast.reach(dict.fromkeys(names, tables.true("Running")))
    assert not running, f"jobs do not run: {running}"
    started = max(at(cast.job(name) or {}, "startTime") for name in names)
    left = max(1.0, started + DEADLINE + PATIENCE - time.time())
    late = cast.reach(dict.fromkeys(names, failed), deadline=left)
    for name in late:
        cast.touch(name)
    woken = cast.reach(dict.fromkeys(late, failed), deadline=ANSWER) if late else {}
    with tables.judged() as table:
        for name in late:
            after = "" if name in woken else "; it did when somebody wrote to the job"
            table.broke(
                name,
                f"the deadline of {DEADLINE} s did not fire within {PATIENCE:.0f} s more{after}",
            )
