"""The operator's process is killed at a moment of a job's life, and starts again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.faults.base import Fault, Proof
from chaos.faults.systems import KillSystem
from chaos.site import Site
from chaos.target import Target
from clusters.kube import PODS, SERVICES, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import order
from suites import jobs, tables
from suites.cast import KINDS, LEADERS, Cast

#: seconds until what an operator that was killed left undone is done: it starts within 2 to 5
BACK = 60.0
#: seconds for which nothing may be made again
HOLD = 3.0

Killing = Callable[[], None]
Moment = Callable[[Cast, Killing], str]


def _submitted(cast: Cast, kill: Killing) -> str:
    kill()
    return _finish(cast)


def _running(cast: Cast, kill: Killing) -> str:
    cast.run()
    kill()
    return _finish(cast)


def _a_worker_fails(cast: Cast, kill: Killing) -> str:
    cast.run()
    before = cast.uids()
    for name in cast.kinds:
        cast.tell(name, order("exit", 137, role="worker", times=1, id="once"))
    kill()
    workers = {f"{name}-worker-0": name for name in cast.kinds}

    def anew(pod: str) -> tables.Check:
        return lambda now: now is not None and now["metadata"]["uid"] != before[pod]

    late = tables.reach(
        cast.kube, PODS, cast.namespace, {pod: anew(pod) for pod in workers}, deadline=BACK
    )
    assert not late, f"workers that failed are not replaced: {late}"
    return _finish(cast)


def _it_ends(cast: Cast, kill: Killing) -> str:
    cast.run()
    for name, what in cast.kinds.items():
        cast.tell(name, order("finish", role=LEADERS[what.kind]))
    kill()
    return "Succeeded"


def _it_fails(cast: Cast, kill: Killing) -> str:
    cast.run()
    for name in cast.kinds:
        cast.tell(name, order("exit", 1, role="worker"))
    kill()
    return "Failed"


def _finish(cast: Cast) -> str:
    cast.run()
    for name, what in cast.kinds.items():
        cast.tell(name, order("finish", role=LEADERS[what.kind]))
    return "Succeeded"


#: moment -> restart policy, what is done then; it says how the jobs are to end
MOMENTS: dict[str, tuple[str, Moment]] = {
    "as jobs are submitted": ("OnFailure", _submitted),
    "as jobs run": ("OnFailure", _running),
    "as a worker is to be replaced": ("ExitCode", _a_worker_fails),
    "as jobs succeed": ("OnFailure", _it_ends),
    "as jobs fail": ("Never", _it_fails),
}


@pytest.mark.exclusive
@pytest.mark.behaviour("R05")
@pytest.mark.parametrize("moment", list(MOMENTS))
def test_a_killed_operator_changes_nothing_about_the_end(
    system: SystemUnderTest,
    ns: str,
    expect: Expecting,
    inject: Callable[[Fault], Proof],
    moment: str,
) -> None:
    """Two jobs of each kind end as they would have, and nothing of them is made twice."""
    cast = Cast(system, ns, expect)
    policy, act = MOMENTS[moment]
    for kind in KINDS:
        for number in range(2):
            cast.add(kind, f"{kind.lower()}-{number}", restart=policy, policy=_KEEP)
    killed: list[Fault] = []

    def kill() -> None:
        fault = KillSystem(Site.of(system.cluster), Target.operator(system.operator))
        inject(fault)
        killed.append(fault)

    wanted = act(cast, kill)
    with tables.judged() as table:
        late = cast.reach(dict.fromkeys(cast.kinds, tables.true(wanted)), deadline=BACK)
        for name, seen in late.items():
            table.broke(name, f"expected: {wanted}; {BACK:.0f} s after the operator it is {seen}")
        once = _names(cast.kube.find(PODS, ns)), _names(cast.kube.find(SERVICES, ns))

        def more(items: list[Object]) -> str:
            return ", ".join(sorted(_names(items) - once[0]))

        made = tables.held(cast.kube, PODS, ns, more, seconds=HOLD)
        table.hold("pods", not made, f"made after the jobs had ended: {made}")
        for name in cast.kinds:
            own = [p for p in cast.of(name) if p["metadata"]["labels"].get(jobs.ROLE_LABEL)]
            table.hold(name, len(own) <= 2, f"it has {len(own)} pods, for 2 replicas")


#: so that what was made is still to be seen at the end
_KEEP = {"cleanPodPolicy": "None"}


def _names(items: list[Object]) -> set[str]:
    return {item["metadata"]["uid"] for item in items}
