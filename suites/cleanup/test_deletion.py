"""What is left of a job that was deleted, and of one that has ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.kube import PODS, SERVICES, Object, Resource
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems.protocols import Feature
from fixtures.workloads import Program
from suites import endings, tables
from suites.cast import KINDS, Cast
from suites.status.test_autoscaler import AUTOSCALERS, METRICS

#: seconds until the garbage collector has removed all; measured 2.2 and the pods' grace period
GONE = 30.0
#: seconds for which nothing may come back
HOLD = 4.0

State = Callable[[Cast, str, str], None]


def _running(cast: Cast, kind: str, name: str) -> None:
    cast.add(kind, name)


def _ending(restart: str, code: int = 0) -> State:
    """A job whose pods all end after a second."""

    def add(cast: Cast, kind: str, name: str) -> None:
        program = Program(seconds=1, code=code)
        cast.add(kind, name, restart=restart, program=program, policy={"cleanPodPolicy": "None"})

    return add


def _pending(cast: Cast, kind: str, name: str) -> None:
    cast.add(kind, name, node_selector={"muster.dev/nowhere": "yes"})


def _suspended(cast: Cast, kind: str, name: str) -> None:
    cast.add(kind, name, policy={"suspend": True})


#: state -> how a job comes into it, and the condition that tells that it is
STATES: dict[str, tuple[State, str]] = {
    "just submitted": (_running, ""),
    "running": (_running, "Running"),
    "restarting": (_ending("ExitCode", 137), "Restarting"),
    "crashing": (_ending("OnFailure", 1), "Running"),
    "pending": (_pending, "Created"),
    "succeeded": (_ending("OnFailure"), "Succeeded"),
    "failed": (_ending("Never", 1), "Failed"),
    "suspended": (_suspended, "Suspended"),
}


def kinds_of_children(system: SystemUnderTest) -> list[Resource]:
    """What an operator makes for a job."""
    group = system.scheduler.group_resource()
    return [PODS, SERVICES, AUTOSCALERS, *([group] if group is not None else [])]


def _children(items: list[Object]) -> str:
    return ", ".join(item["metadata"]["name"] for item in items)


@pytest.mark.behaviour("C03")
@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_job_deleted_in_any_state_leaves_nothing(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str
) -> None:
    """One job per state, deleted as soon as it is in it."""
    cast = Cast(system, ns, expect)

    def lacks(feature: Feature) -> str:
        return system.operator.lacks(feature, system.cluster.kubernetes, system.scheduler)

    without = {"suspended"} if lacks(Feature.SUSPEND) else set()
    states = {state: how for state, how in STATES.items() if state not in without}
    names = {state.replace(" ", "-"): state for state in states}
    for name, state in names.items():
        states[state][0](cast, kind, name)
        if not states[state][1]:
            cast.kube.delete(KINDS[kind], name, ns)
    if kind == "PyTorchJob" and not lacks(Feature.AUTOSCALER):
        cast.elastic("autoscaled", 1, policy={"metrics": METRICS})
        names["autoscaled"] = "running"
    wanted = {n: tables.true(states[s][1]) for n, s in names.items() if states[s][1]}
    late = cast.reach(wanted, deadline=90)
    assert not late, f"jobs did not come into their states: {late}"
    for name in wanted:
        cast.kube.delete(KINDS[kind], name, ns)
    with tables.judged() as table:
        for what in kinds_of_children(system):
            with expect(f"no {what.plural} of deleted jobs are left"):
                cast.kube.wait(
                    what, lambda items: None if items else True, namespace=ns, deadline=GONE,
                    why=f"{what.plural} gone",
                )  # fmt: skip
        for what in kinds_of_children(system)[:2]:
            back = tables.held(cast.kube, what, ns, _children, seconds=HOLD)
            table.hold(what.plural, not back, f"made again after their job was deleted: {back}")


@pytest.mark.behaviour("C04")
@pytest.mark.parametrize("ending", ["success", "failure", "permanent exit", "backoff limit"])
def test_a_finished_job_does_not_start_again(
    system: SystemUnderTest, ns: str, expect: Expecting, ending: str
) -> None:
    """Its pods, services and groups are deleted one after the other, and it is written to."""
    cast = Cast(system, ns, expect)
    names = endings.ended(cast, ending, cleanPodPolicy="None")
    for what in reversed(kinds_of_children(system)):
        for item in cast.kube.find(what, ns):
            cast.kube.delete(what, item["metadata"]["name"], ns, grace=0)
    for name in names:
        cast.touch(name)
    with tables.judged() as table:
        back = tables.held(cast.kube, PODS, ns, _children, seconds=endings.WATCHED)
        table.hold("pods", not back, f"made again after {ending}: {back}")
        for name in names:
            job = cast.job(name)
            same = tables.true(endings.end(ending))(job)
            table.hold(name, same, f"it was {endings.end(ending)}, and is {tables.told(job)}")
