"""Conditions of a job that is restarted, and of one that is written to at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from clusters.kube import Object, Resource, conditions
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import Program, order
from suites import jobs, tables
from suites.cast import KINDS, LEADERS, Cast
from suites.status.test_conditions import EXCLUSIVE

#: seconds for all of it
LIFE = 90.0
#: jobs at once, and how often each is restarted: PyTorchJob's controller goes through the roles in
#: a random order, and forgets that a job is restarting when the leader comes last. It forgot 2 of
#: 24 restarts, so that 48 show it in more than 9 of 10 runs
JOBS = 16
ROUNDS = 3
#: jobs that are written to at once
WRITTEN = 8
WHOLE = ["Running", *["Restarting", "Running"] * ROUNDS, "Succeeded"]


@pytest.mark.behaviour("T01")
@pytest.mark.parametrize("kind", list(KINDS), ids=[f"restarted, {kind}" for kind in KINDS])
def test_restarting_and_running_replace_each_other(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str
) -> None:
    """In turns, and Succeeded at the end: read from every version of each of the jobs."""
    cast = Cast(system, ns, expect)
    names = [f"restarted-{index}" for index in range(JOBS)]
    made = [cast.add(kind, name, restart="ExitCode") for name in names]
    cast.run()
    for name in names:
        cast.tell(name, _again(0))
    lives = {name: Life() for name in names}
    with tables.judged() as table:
        for job in _versions(cast, KINDS[kind], made[0], set(names)):
            name = job["metadata"]["name"]
            life = lives[name]
            life.see(job)
            table.hold(name, not life.both, life.both)
            if life.restarted:
                life.down = life.restarted = False
                life.told += 1
                last = order("finish", role=LEADERS[kind])
                cast.tell(name, _again(life.told) if life.told < ROUNDS else last)
        for name, life in lives.items():
            words = ", ".join(life.seen) or "none"
            table.hold(name, life.seen == WHOLE, f"conditions that were true, in order: {words}")


def _again(number: int) -> str:
    return order("exit", 137, role="worker", times=1, id=f"round-{number}")


@dataclass
class Life:
    """What the versions of a job show, whose worker is replaced again and again.

    Attributes:
        seen: conditions in the order in which they became true.
        both: two that exclude each other and were both true; "": none were.
        up: its worker was counted as active once: at first a leader may run alone.
        down: since it was last told something, its worker was counted as not active any more.
        restarted: and then as active again.
        told: how often it was restarted so far.
    """

    seen: list[str] = field(default_factory=list)
    both: str = ""
    up: bool = False
    down: bool = False
    restarted: bool = False
    told: int = 0

    def see(self, job: Object) -> None:
        """The next version."""
        now = conditions(job)
        for one, other in EXCLUSIVE:
            if now.get(one) == now.get(other) == "True":
                self.both = self.both or f"{one} and {other} were both true"
        for name in ("Running", "Restarting", "Succeeded", "Failed"):
            if now.get(name) == "True" and self.seen[-1:] != [name]:
                self.seen.append(name)
        active = jobs.replicas(job, "Worker")["active"]
        self.up = self.up or active == 1
        self.down = self.down or (self.up and not active)
        self.restarted = self.restarted or (self.down and active == 1)


def _versions(cast: Cast, what: Resource, first: Object, open_: set[str]) -> Iterator[Object]:
    """Every version of the jobs that the watch shows, until all are terminal, or LIFE is over."""
    for event in cast.kube.watch(
        what, cast.namespace, since=first["metadata"]["resourceVersion"], timeout=LIFE
    ):
        if event["type"] == "BOOKMARK":
            continue
        job = event["object"]
        yield job
        now = conditions(job)
        if "True" in (now.get("Succeeded"), now.get("Failed")):
            open_.discard(job["metadata"]["name"])
            if not open_:
                return


@pytest.mark.behaviour("T01", case="written to at once")
def test_a_job_that_is_written_to_at_once_is_created(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Somebody (kubectl, a mutating controller) writes to jobs right after they were submitted."""
    cast = Cast(system, ns, expect)
    for index in range(WRITTEN):
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
