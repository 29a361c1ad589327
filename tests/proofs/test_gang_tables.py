"""The rows of the gang and scheduling tables, played on schedulers that are none, or wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Any, cast

import pytest

from clusters.kube import PODS, Object
from clusters.resources import is_bound
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.systems.protocols import GangScheduler
from fixtures.workloads import tfjob
from suites import jobs, pods
from suites.gang import test_bare_pods, test_jobs
from suites.rows import Row, play
from suites.sched import test_churn, test_nodes, test_placement, test_priority
from suites.stage import Stage
from tests.proofs import breaking, naive
from tests.proofs.naive import Instead

pytestmark = pytest.mark.proof

#: seconds that a broken system gets to bind what the suites give it a minute for
SOON = 8.0

TABLES = [*test_bare_pods.TABLE, *test_nodes.TABLE, *test_priority.TABLE]
ROWS: dict[str, Row] = {cast("Any", each).id: cast("Any", each).values[0] for each in TABLES}


class Greedy(Instead):
    """A scheduler whose groups ask for more pods than they should, or for fewer."""

    def __init__(self, real: GangScheduler, more: int) -> None:
        super().__init__(real, real.scheduler_name)
        self._more = more

    def group(self, name: str, namespace: str, min_member: int, **fields: object) -> Object:
        """With a wrong minimum."""
        return self.real.group(name, namespace, max(1, min_member + self._more), **fields)


class Evicting(Instead):
    """A scheduler that takes a pod away from gang ``a`` whenever another one wants room."""

    def __init__(self, real: GangScheduler, system: SystemUnderTest, ns: str) -> None:
        super().__init__(real, real.scheduler_name)
        self._kube, self._ns = system.cluster.kube, ns

    def join(self, pod: Object, group: str, members: int | None = None) -> None:
        """Takes it when the pod is made."""
        super().join(pod, group, members)
        found = self._kube.find(PODS, self._ns, labels="app=a")
        bound = [p["metadata"]["name"] for p in found if is_bound(p)]
        if bound:
            self._kube.delete(PODS, max(bound), self._ns, grace=0)


#: what stands in place of the scheduler -> how it is told of
BY = {
    "default": "the default scheduler in place of a gang scheduler",
    "naive": "a scheduler that compares sums of GPUs, as the source thread's did",
    "one more": "groups whose minimum is one too high",
    "two less": "groups whose minimum is two too low",
    "evicting": "a scheduler that evicts a pod of a running gang for another",
    "priorities exchanged": "pods whose priorities were exchanged",
}


def _proof(name: str, by: str, shows: str) -> object:
    """A row, who plays the scheduler in it, and what has to be said of that."""
    mark = pytest.mark.proves(name[:3], by=BY[by], shows=shows)
    return pytest.param(name, by, id=f"{name}, {by}", marks=mark)


@pytest.mark.parametrize(
    ("name", "by"),
    [
        _proof("G01 pods", "one more", "bound: 4 of a"),
        _proof("G02 one pod short", "default", "gang a: "),
        _proof("G02 one pod short", "naive", "gang a: "),
        _proof("G02 one pod short", "two less", "gang a: "),
        _proof("G03 pods first", "default", "gang a: "),
        _proof("G04 pods, room is freed by deletion", "default", "gang a: "),
        _proof("G04 pods, room is freed by deletion", "naive", "gang a: "),
        _proof("G05 too many GPUs", "default", "gang a: "),
        _proof("G06 at once", "default", "exactly one of a and b"),
        _proof("G07 all at once", "one more", "bound: 2 of a"),
        _proof("G08 pods", "evicting", "gang a: "),
        _proof("G10 pods", "one more", "3 pods of a end with success"),
        _proof("G11 far too little room", "default", "gang a: "),
        _proof("G12 3 and 3 for 3 of 2", "default", "gang a: "),
        _proof("G13 pods, on an empty cluster", "evicting", "bound: 4 of a"),
        _proof("S05 order", "priorities exchanged", "3 of high"),
        _proof("S08 all nodes cordoned", "naive", "gang a: "),
    ],
)
def test_a_row_on_a_scheduler_that_is_none(
    name: str,
    by: str,
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    expect: Expecting,
    measure: Measuring,
    step: Expecting,
) -> None:
    row, real = ROWS[name], system.scheduler
    if by == "priorities exchanged":  # without any, either gang may be the first
        other = {"low": "high", "high": "low"}
        row = replace(
            row, gangs=tuple(replace(g, priority=other[cast("str", g.priority)]) for g in row.gangs)
        )
    wrong: dict[str, object] = {
        "default": Instead(real, "default-scheduler"),
        "naive": Instead(real, naive.NAME),
        "one more": Greedy(real, 1),
        "two less": Greedy(real, -2),
        "evicting": Evicting(real, system, ns),
        "priorities exchanged": real,
    }
    if lease := row.lease(system.cluster.topology.gpus):
        gpus(lease)
    with ExitStack() as undo:
        if by == "naive":
            undo.enter_context(naive.running(system.cluster))
        stood_in = replace(system, scheduler=cast("GangScheduler", wrong[by]))
        play(row, Stage(stood_in, ns, expect, measure, undo, admission=SOON), step)


@pytest.mark.proves("S02", by=BY["naive"], rule="placement")
def test_the_source_threads_job_under_its_comparison(
    system: SystemUnderTest, ns: str, gpus: Callable[[int], int], expect: Expecting
) -> None:
    gpus(7)
    kube = system.cluster.kube
    with naive.running(system.cluster):
        kube.create(tfjob("thread", ps=1, workers=7, scheduler_name=naive.NAME), namespace=ns)
        master = breaking.tainted_node(kube)

        def on_master(found: list[Object]) -> bool | None:
            """Its parameter server may be there first, which asks for no GPU: S03."""
            there = [pod for pod in found if pod["spec"].get("nodeName") == master]
            return True if any(map(pods.gpus_of, there)) else None

        with expect("a worker is bound to the tainted master"):
            kube.wait(PODS, on_master, namespace=ns, deadline=60, why=f"a worker on {master}")


@pytest.mark.proves("S01", by=BY["naive"], rule="gpu-capacity")
def test_gpus_are_given_twice(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    expect: Expecting,
    measure: Measuring,
) -> None:
    with ExitStack() as undo:
        undo.enter_context(naive.running(system.cluster))
        scheduler = cast("GangScheduler", Instead(system.scheduler, naive.NAME))
        stage = Stage(replace(system, scheduler=scheduler), ns, expect, measure, undo)
        test_churn.test_a_node_never_has_more_gpus_bound_than_it_has(stage, gpus, Random(1))


@pytest.mark.proves("S04", by=BY["default"], shows="was bound to")
def test_the_default_scheduler_binds_a_part(
    system: SystemUnderTest, ns: str, gpus: Callable[[int], int]
) -> None:
    gpus(8)
    kube = system.cluster.kube
    pods.block_gpus(kube, ns, 2)
    job = tfjob("gang", ps=1, workers=7, scheduler_name="default-scheduler")
    kube.create(job, namespace=ns)
    members = jobs.of("gang")
    pods.wait_created(kube, ns, 8, labels=members)
    pods.hold_unbound(kube, ns, labels=members, seconds=SOON, least=8)


@pytest.mark.proves(
    "G09", by="a job whose pods ask for the default scheduler", shows="was bound to"
)
def test_a_role_is_bound_without_the_others(
    system: SystemUnderTest, ns: str, expect: Expecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, field, job = test_jobs._jobs()["TFJob"]
    for role in job["spec"][field].values():
        role["template"]["spec"]["schedulerName"] = "default-scheduler"
    monkeypatch.setattr(test_jobs, "_jobs", lambda: {"TFJob": (kind, field, job)})
    test_jobs.test_no_role_is_bound_without_the_others(system, ns, "TFJob", "PS", expect)


@pytest.mark.proves("S03", by=BY["naive"])
def test_a_selector_is_not_seen(
    system: SystemUnderTest, ns: str, expect: Expecting, measure: Measuring
) -> None:
    with ExitStack() as undo:
        undo.enter_context(naive.running(system.cluster))
        scheduler = cast("GangScheduler", Instead(system.scheduler, naive.NAME))
        stage = Stage(replace(system, scheduler=scheduler), ns, expect, measure, undo)
        test_placement.test_a_gang_is_placed_where_its_pods_may_be(stage, "node selector")
