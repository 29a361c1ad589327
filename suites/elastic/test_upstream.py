"""What was reported upstream about elastic training, each with a test of its own.

They run on every version, and nothing is taken to be mended once for all: #67742 came back in later
versions.
"""

from __future__ import annotations

import time

import pytest

from clusters.errors import ClusterError
from oracles.progress import ProgressLine
from suites.elastic import environment, trainer
from suites.elastic.disturbing import measure_cost
from suites.elastic.stage import CONTAINER, GOES_ON, Stage

ISSUES = "https://github.com/pytorch/pytorch/issues"


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(b, marks=pytest.mark.behaviour("E03", case=f"pytorch#65992 {b}"))
        for b in ("c10d", "etcd")
    ],
)
def test_master_addr_leads_to_rank_0_after_every_change(stage: Stage, backend: str) -> None:
    """pytorch#65992: at the start, in a larger world, and after the pod of rank 0 was replaced."""
    training = stage.start(2, 2, 3, backend=backend)
    with stage.expect("two workers train"):
        group = training.wait_steps(5, world=2, deadline=trainer.STARTED)
    _leads_to_rank_0(stage, group, "at the start")

    scaled = time.time()
    stage.scale(3)
    with stage.expect("three workers train"):
        group = stage.trains(world=3, since=scaled, deadline=GOES_ON)
    _leads_to_rank_0(stage, group, "in a larger world")

    first = next(line.pod for line in group if line.rank == 0)
    proof = stage.inject(stage.delete_pod(int(first.rpartition("-")[2])), by="any")
    with stage.expect("three workers train again after the pod of rank 0 was deleted"):
        group = stage.trains(world=3, since=proof.t + 1.0, deadline=GOES_ON)
    _leads_to_rank_0(stage, group, "after the pod of rank 0 was deleted")


@pytest.mark.behaviour("E05", case="pytorch#67616")
def test_a_failed_agent_is_survived_under_etcd(stage: Stage) -> None:
    """pytorch#67616: an agent killed under an etcd rendezvous."""
    training = stage.start(3, 2, 3, backend="etcd")
    with stage.expect("three workers train"):
        training.wait_steps(12, world=3, deadline=trainer.STARTED)
    before = stage.agents()
    proof = stage.inject(stage.kill_agent(1))
    group = stage.goes_on(proof.what, since=proof.t + 1.0)
    stage.measure("training again after", group[0].t - proof.t, "s")
    stage.measure("world after", group[0].world or 0, "ranks")
    measure_cost(stage, before, proof.t, victims=[stage.worker(1)])
    stage.sound(group)


@pytest.mark.behaviour("E06", case="pytorch#67742")
def test_a_worker_that_leaves_does_not_close_the_rendezvous(stage: Stage) -> None:
    """pytorch#67742: after scaling down from 3 to 2, and so SIGTERM to one agent, a third may join.

    In versions with the fault the agent that ends closes the rendezvous for all. Their kubelets
    start them again, which makes up for it, so what they were told is looked at as well.
    """
    training = stage.start(3, 1, 3)
    with stage.expect("three workers train"):
        training.wait_steps(12, world=3, deadline=trainer.STARTED)
    before = stage.agents()
    down = time.time()
    stage.scale(2)
    with stage.expect("two workers train on"):
        group = stage.trains(world=2, since=down, deadline=GOES_ON)
    stage.measure("smaller world trains after", group[0].t - down, "s")
    measure_cost(stage, before, down, victims=[stage.worker(2)])
    up = time.time()
    stage.scale(3)
    with stage.expect("the rendezvous is open, so that a third worker is let in"):
        group = stage.trains(world=3, since=up, deadline=GOES_ON)
    stage.measure("larger world trains after", group[0].t - up, "s")
    stage.sound(group)
    stage.open_to_all(but=stage.worker(2))


def _leads_to_rank_0(stage: Stage, group: list[ProgressLine], when: str) -> None:
    """Assert that each process of a group resolves its MASTER_ADDR to the pod of rank 0."""
    address = {p["metadata"]["name"]: p["status"].get("podIP", "") for p in stage.pods()}
    host = next(line.pod for line in group if line.rank == 0)
    wrong = []
    for line in {line.rank: line for line in group}.values():
        name = environment.of_process(stage.kube, stage.namespace, line.pod, line.pid).get(
            "MASTER_ADDR", ""
        )
        found = _resolve(stage, line.pod, name)
        if found != address[host]:
            wrong.append(
                f"{when}: MASTER_ADDR of rank {line.rank} is {name!r}, which is"
                f" {found or 'nobody'}, not {address[host]} of {host}, where rank 0 is"
            )
    assert not wrong, "; ".join(wrong)


def _resolve(stage: Stage, pod: str, name: str) -> str:
    """The address of a host as a pod sees it; "" for none."""
    command = ["getent", "ahostsv4", name]
    result = stage.kube.exec(stage.namespace, pod, command, container=CONTAINER)
    if result.code not in (0, 2):  # 2: no such host
        raise ClusterError(f"{' '.join(command)} failed in {pod}: {result.stderr}")
    return result.stdout.split()[0] if result.stdout.split() else ""
