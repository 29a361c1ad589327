"""Whose success is the job's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from clusters.cluster import Capability
from clusters.kube import PODS, PYTORCHJOBS, TFJOBS, Kube, Object, conditions
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.runtimes import Runtime
from fixtures.workloads import Program, control, order
from oracles.progress import Event
from suites import jobs, parameter_servers, pods, tables
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


@pytest.mark.behaviour("T06", case="TensorFlow")
def test_the_chief_ends_a_training_whose_servers_never_end(
    system: SystemUnderTest, tensorflow: Runtime, ns: str, expect: Expecting, measure: Measuring
) -> None:
    """Parameter server and workers serve for ever: they are told to stop once the chief is done."""
    kube = system.cluster.kube
    training = parameter_servers.start(system.cluster, tensorflow, ns, "led", gpus=0)
    servers = ["led-ps-0", "led-worker-0", "led-worker-1"]
    with expect("both workers train"):
        training.wait(
            lambda lines: parameter_servers.all_work(lines, 2) or None,
            deadline=parameter_servers.STARTED, why="a step of each worker",
        )  # fmt: skip
    _counts(kube, ns, {"Chief": (1, 0), "PS": (1, 0), "Worker": (2, 0)})
    peaks = [_peak(kube, ns, pod) for pod in ("led-chief-0", *servers)]
    measure("memory of a replica", max(peaks), "MB")

    control(training.folder.parent, order("finish"))
    with expect("the job succeeds when the chief has ended"):
        jobs.wait_condition(kube, TFJOBS, ns, "led", "Succeeded", deadline=ANSWER)
    with expect("the pods that still ran are removed"):
        (chief,) = kube.wait(
            PODS, lambda found: found if len(found) == 1 else None,
            namespace=ns, labels=jobs.of("led"), deadline=ANSWER, why="one pod left",
        )  # fmt: skip
    (state,) = chief["status"]["containerStatuses"]
    assert chief["metadata"]["name"] == "led-chief-0", f"left is {chief['metadata']['name']}"
    assert state["state"]["terminated"]["exitCode"] == 0, f"the chief ended so: {state}"
    lines = training.lines()
    (end,) = [line for line in lines if line.event is Event.END]
    stopped = {x.pod: x.t for x in lines if x.event is Event.SIGNAL and x.code == 143}
    assert sorted(stopped) == servers, f"told to stop: {sorted(stopped)}, not {servers}"
    early = sorted(pod for pod, t in stopped.items() if t < end.t)
    assert not early, f"told to stop before the chief had ended: {', '.join(early)}"
    measure("servers stopped after the chief's end", max(stopped.values()) - end.t, "s")
    _counts(kube, ns, {"Chief": (0, 1), "PS": (0, None), "Worker": (0, None)})
    wrong = parameter_servers.step_faults(lines, servers[1:])
    assert not wrong, "; ".join(wrong)


def _counts(kube: Kube, ns: str, wanted: dict[str, tuple[int, int | None]]) -> None:
    """Wait until the job counts so many active, succeeded (None: whatever) and no failed pods."""

    def so(job: Object | None) -> bool:
        if job is None:
            return False
        told = {role: jobs.replicas(job, role) for role in wanted}
        return all(
            told[role]["active"] == active
            and told[role]["failed"] == 0
            and (succeeded is None or told[role]["succeeded"] == succeeded)
            for role, (active, succeeded) in wanted.items()
        )

    late = tables.reach(
        kube, TFJOBS, ns, {"led": so}, deadline=ANSWER,
        describe=lambda job: str(job.get("status", {}).get("replicaStatuses")),
    )  # fmt: skip
    assert not late, f"the counts are {late['led']}; wanted (active, succeeded): {wanted}"


def _peak(kube: Kube, ns: str, pod: str) -> float:
    """Most memory that a replica's process had so far, in MB (10^6 bytes)."""
    status = kube.exec(ns, pod, ["cat", "/proc/1/status"], container=parameter_servers.CONTAINER)
    line = next(x for x in status.stdout.splitlines() if x.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6
