"""The operator's way to the API server is troubled while jobs live: slow, refused, cut or stale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pytest

from chaos.faults import api
from chaos.faults.api import ApiTrouble
from chaos.injecting import Injector
from chaos.proxy import Rule
from chaos.target import Target
from clusters.kube import PODS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.workloads import order
from oracles.errors import HarnessError
from suites import groups, tables
from suites.cast import KINDS, LEADERS, Cast
from suites.routes import through_proxy

#: seconds until jobs have ended after their pods have: an operator that was refused asks again
#: after up to 16 s (controller-runtime's back-off after a dozen refusals), and every answer of one
#: that is slow comes a second late
ENDS = 90.0
#: seconds for which nothing may be made again
HOLD = 3.0
JOBS_OF_A_KIND = 2
#: how often a job that stands still is written to, and for how many seconds it is then looked at
TOUCHES, TOUCHED = 5, 5.0


@dataclass(frozen=True)
class Trouble:
    """What happens to the operator's requests.

    Attributes:
        passes: whether it is over before the jobs are told to end, and acts at once; else it lasts
            as long as they, and acts when the operator asks.
    """

    rule: Callable[[int], Rule]
    passes: bool = False


TROUBLES = {
    "slow": Trouble(lambda seed: api.slow(1000)),
    "every third write conflicts": Trouble(lambda seed: api.refusing(409, share=0.33, seed=seed)),
    "every third write is too many": Trouble(lambda seed: api.refusing(429, share=0.33, seed=seed)),
    "every third write fails": Trouble(lambda seed: api.refusing(500, share=0.33, seed=seed)),
    "away": Trouble(lambda seed: api.away(), passes=True),
    "watches are cut": Trouble(lambda seed: api.watches_cut(), passes=True),
    "watches are stale": Trouble(lambda seed: api.watches_stale(), passes=True),
}
#: seconds for which what passes lasts, once the jobs' pods have changed
LASTS = 10.0


@pytest.mark.exclusive
@pytest.mark.behaviour("R07")
@pytest.mark.parametrize("trouble", list(TROUBLES))
def test_a_troubled_api_server_changes_nothing_about_the_end(
    system: SystemUnderTest,
    ns: str,
    seed: int,
    expect: Expecting,
    measure: Measuring,
    inject: Injector,
    trouble: str,
) -> None:
    """Two jobs of each kind start, lose a worker and end, and no pod of them is made twice.

    A worker is lost by exiting with 137, which ``ExitCode`` answers with another pod.
    """
    what = TROUBLES[trouble]
    route = through_proxy(system, Target.operator(system.operator))
    inject(route)
    cast = Cast(system, ns, expect)
    since = groups.version(cast.kube, PODS, ns)
    fault = ApiTrouble(route, what.rule(seed), acts=int(what.passes))
    if not what.passes:
        inject(fault)
    _submit(cast)
    with tables.judged() as table:
        _reached(cast, table, "Running", "its pods run")
    uids = cast.uids()
    lost = {name: f"{name}-worker-0" for name in cast.kinds}
    if what.passes:
        inject(fault)
    for name in cast.kinds:
        cast.tell(name, order("exit", 137, role="worker", times=1, id="once"))
    if what.passes:
        # on the watch, and not asleep: a watch that breaks meanwhile makes this inconclusive
        tables.held(cast.kube, PODS, ns, lambda found: "", seconds=LASTS)
        inject.recover(fault)
    with tables.judged() as table:
        _replaced(cast, table, {name: (pod, uids[pod]) for name, pod in lost.items()})
        for name, kind in cast.kinds.items():
            cast.tell(name, order("finish", role=LEADERS[kind.kind]))
        _reached(cast, table, "Succeeded", "its leader succeeded")
        made = groups.made(cast.kube, PODS, ns, since=since, seconds=HOLD)
        for pod in sorted(set(made)):
            lives = 2 if pod in lost.values() else 1
            count = made.count(pod)
            table.hold(pod, count <= lives, f"it was made {count} times, for {lives} lives")
    if not what.passes:
        acted = fault.counts().acted
        measure("requests troubled", acted, "1")
        if not acted:
            raise HarnessError(f"{trouble}: no request of the operator was troubled")


def _submit(cast: Cast) -> None:
    # their pods stay at the end, so that what was made is still to be seen
    policy: Object = {"cleanPodPolicy": "None"}
    for kind in KINDS:
        for number in range(JOBS_OF_A_KIND):
            cast.add(kind, f"{kind.lower()}-{number}", restart="ExitCode", policy=policy)


def _reached(cast: Cast, table: tables.Cells, condition: str, why: str) -> None:
    """Break for each job that does not say so in time; one that has failed is not waited for."""
    check, failed = tables.true(condition), tables.true("Failed")
    lost: set[str] = set()

    def over(name: str, job: Object | None) -> bool:
        if check(job):
            return True
        if failed(job):
            lost.add(name)
        return name in lost

    wanted = {name: partial(over, name) for name in cast.kinds}
    late = cast.reach(wanted, deadline=ENDS)
    for name in lost:
        table.broke(name, f"{why}, and it is {tables.told(cast.job(name))}")
    for name, seen in late.items():
        again = _touched(cast, name, partial(cast.reach, {name: check}, deadline=TOUCHED))
        table.broke(name, _still(why, seen, again))


def _replaced(cast: Cast, table: tables.Cells, lost: Mapping[str, tuple[str, str]]) -> None:
    """Break for each job whose pod, of that name and uid, is not made again in time."""

    def left(pods: Mapping[str, tables.Check], deadline: float) -> Mapping[str, str]:
        return tables.reach(cast.kube, PODS, cast.namespace, pods, deadline=deadline)

    anew = {pod: tables.anew(uid) for pod, uid in lost.values()}
    late = left(anew, ENDS)
    for name, (pod, _) in lost.items():
        if pod in late:
            why, job = "its worker exited with 137 and is not replaced", cast.job(name)
            if tables.true("Failed")(job):
                table.broke(name, f"{why}, and it is {tables.told(job)}")
                continue
            again = _touched(cast, name, partial(left, {pod: anew[pod]}, TOUCHED))
            table.broke(name, _still(why, tables.told(job), again))


def _touched(cast: Cast, name: str, left: Callable[[], Mapping[str, str]]) -> str:
    """Whether writing to a job helps, in words."""
    for _ in range(TOUCHES):  # that write may be refused its consequences, too
        cast.touch(name)
        if not left():
            return "until somebody writes to it"
    return "also when somebody writes to it"


def _still(why: str, seen: str, again: str) -> str:
    return f"{why}, and for {ENDS:.0f} s it is {seen}, {again}"
