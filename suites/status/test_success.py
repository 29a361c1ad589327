"""Whose success is the job's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from clusters.cluster import Capability
from clusters.kube import PODS, PYTORCHJOBS, Object, conditions
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import Program, order
from suites import jobs, pods, tables
from suites.cast import ANSWER, Cast
from suites.recovery import leaving

#: seconds for which a job that must not be over is watched
HOLD = 5.0


@dataclass(frozen=True)
class Shape:
    """A job, who finishes, and whether the job does.

    Attributes:
        leader: whether it has a master or chief.
        workers: how many.
        finish: orders that end pods well.
    """

    kind: str
    leader: bool
    workers: int
    finish: tuple[str, ...]
    over: bool
    more: dict[str, Any] = field(default_factory=dict)


SHAPES = {
    "the master decides": Shape("PyTorchJob", True, 2, (order("finish", role="master"),), True),
    "workers beside a master do not": Shape(
        "PyTorchJob", True, 2, (order("finish", role="worker"),), False
    ),
    "one of two workers does not": Shape("PyTorchJob", False, 2, (order("finish", rank=1),), False),
    "all workers do": Shape("PyTorchJob", False, 2, (order("finish"),), True),
    "the chief decides": Shape("TFJob", True, 2, (order("finish", role="chief"),), True),
    "workers beside a chief do not": Shape(
        "TFJob", True, 2, (order("finish", role="worker"),), False
    ),
    "worker 0 does by default": Shape("TFJob", False, 2, (order("finish", rank=0),), True),
    "worker 1 does not by default": Shape("TFJob", False, 2, (order("finish", rank=1),), False),
    "worker 0 alone does not with AllWorkers": Shape(
        "TFJob", False, 2, (order("finish", rank=0),), False, {"success_policy": "AllWorkers"}
    ),
    "all workers do with AllWorkers": Shape(
        "TFJob", False, 2, (order("finish"),), True, {"success_policy": "AllWorkers"}
    ),
}


@pytest.mark.behaviour("T06")
@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob"])
def test_success_is_decided_by_the_role_that_the_policy_names(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str
) -> None:
    """Ten shapes of jobs; those that are over succeed, the others run on."""
    cast = Cast(system, ns, expect)
    names = {
        f"shape-{index}": title
        for index, (title, shape) in enumerate(SHAPES.items())
        if shape.kind == kind
    }
    for name, title in names.items():
        shape = SHAPES[title]
        if shape.leader:
            cast.add(kind, name, others=shape.workers, **shape.more)
        else:
            cast.workers(kind, name, shape.workers, **shape.more)
    cast.run()
    for name, title in names.items():
        cast.tell(name, *SHAPES[title].finish)
    with tables.judged() as table:
        over = [name for name, title in names.items() if SHAPES[title].over]
        for name, seen in cast.reach(dict.fromkeys(over, tables.true("Succeeded"))).items():
            table.broke(names[name], f"not Succeeded, but {seen}")

        def ended(items: list[Object]) -> str:
            for item in items:
                name, now = item["metadata"]["name"], conditions(item)
                if name not in over and "True" in (now.get("Succeeded"), now.get("Failed")):
                    return str(name)
            return ""

        wrong = tables.held(cast.kube, next(iter(cast.kinds.values())), ns, ended, seconds=HOLD)
        if wrong:
            table.broke(names[wrong], f"it is {tables.told(cast.job(wrong))}")


@pytest.mark.behaviour("T06", case="scaled down, and the leaver fails")
def test_a_worker_that_fails_when_it_is_scaled_away_does_not_count(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Elastic workers exit with 1 on SIGTERM; taking two of three away is no failure.

    A fault of releases before 1.5, https://github.com/kubeflow/trainer/pull/1593.
    """
    real = Capability.CONTAINERS in system.cluster.capabilities
    cast = Cast(system, ns, expect)
    for policy in ("Never", "OnFailure"):
        program = Program(beat_ms=1000, term_code=1)
        cast.elastic(policy.lower(), 3, restart_policy=policy, program=program)
    cast.run()
    leavers = [f"{name}-worker-{index}" for name in cast.kinds for index in (1, 2)]
    with leaving.held(cast.kube, ns, [] if real else leavers):
        for name in cast.kinds:
            jobs.scale(cast.kube, PYTORCHJOBS, ns, name, 1)
        if not real:
            wanted = dict.fromkeys(leavers, _failed_and_leaving)
            late = tables.reach(cast.kube, PODS, ns, wanted, deadline=ANSWER)
            assert not late, f"workers that are too many are not deleted: {late}"
    with expect("one worker each is left"):
        pods.wait_running(cast.kube, ns, 2, deadline=60)

    def failed(items: list[Object]) -> str:
        bad = [i["metadata"]["name"] for i in items if tables.true("Failed")(i)]
        return ", ".join(bad)

    wrong = tables.held(cast.kube, PYTORCHJOBS, ns, failed, seconds=HOLD)
    with tables.judged() as table:
        for name in filter(None, wrong.split(", ")):
            table.broke(name, "it Failed because a worker that it was told to drop did")
        for name in cast.kinds:
            cast.tell(name, order("finish"))
        done = [name for name in cast.kinds if name not in wrong]
        for name, seen in cast.reach(dict.fromkeys(done, tables.true("Succeeded"))).items():
            table.broke(name, f"its last worker succeeded, and it is {seen}")


def _failed_and_leaving(pod: Object | None) -> bool:
    return (
        pod is not None
        and "deletionTimestamp" in pod["metadata"]
        and pod["status"].get("phase") == "Failed"
    )
