"""What changed, in words."""

from __future__ import annotations

from oracles.changes import changes
from tests.oracles.build import BEGIN, History


def told(h: History, **more: float) -> list[str]:
    found = changes(h.events, started=BEGIN, **more)  # type: ignore[arg-type]
    return [f"{change.subject}: {change}" for change in found]


def test_a_pods_life() -> None:
    h = History()
    pod = h.pod("p", "ns")
    pod.bind("n1")
    pod.run()
    pod.change(labels={"a": "b"})  # says nothing
    pod.run(restarts=1)
    pod.deleting()
    pod.gone()
    assert told(h) == [
        "Pod ns/p: created",
        "Pod ns/p: phase Pending",
        "Pod ns/p: bound to n1",
        "Pod ns/p: ready True",
        "Pod ns/p: phase Running (was Pending)",
        "Pod ns/p: restarts of main 1".replace("main", "pytorch"),
        "Pod ns/p: told to go",
        "Pod ns/p: gone",
    ]


def test_a_job() -> None:
    h = History()
    job = h.job("j", Worker=2)
    job.says("Created", counts={"Worker": (2, 0, 0)})
    job.says("Created", "Running", counts={"Worker": (1, 0, 1)})
    job.says("Created", "-Running", counts={"Worker": (0, 0, 2)})
    assert told(h)[1:] == [
        "PyTorchJob t/j: Worker asked 2",
        "PyTorchJob t/j: condition Created True",
        "PyTorchJob t/j: Worker active 2",
        "PyTorchJob t/j: condition Running True",
        "PyTorchJob t/j: Worker active 1 (was 2)",
        "PyTorchJob t/j: Worker failed 1",
        "PyTorchJob t/j: condition Running False (was True)",
        "PyTorchJob t/j: Worker failed 2 (was 1)",
        "PyTorchJob t/j: no Worker active (was 1)",
    ]


def test_nodes() -> None:
    h = History()
    node = h.node("n", gpus=4, taints=["k:NoSchedule"])
    node.change(spec={"unschedulable": True, "taints": []})
    node.change(status={"conditions": [{"type": "Ready", "status": "Unknown"}]})
    assert told(h) == [
        "Node n: created",
        "Node n: condition Ready True",
        "Node n: taint k NoSchedule",
        "Node n: allocatable nvidia.com/gpu 4",
        "Node n: cordoned",
        "Node n: no taint k (was NoSchedule)",
        "Node n: condition Ready Unknown (was True)",
    ]


def test_what_is_so_no_more() -> None:
    h = History()
    node = h.node("n")
    node.change(spec={"unschedulable": True})
    node.change(spec={"unschedulable": False})
    pod = h.pod("p", "ns")
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod.change(status={"conditions": [unscheduled]})
    pod.change(status={"conditions": []})
    crashed = {"terminated": {"exitCode": 1, "reason": "Error"}}
    for state in (crashed, {"waiting": {"reason": "CrashLoopBackOff"}}, {"running": {}}):
        pod.change(status={"containerStatuses": [{"name": "main", "state": state}]})
    found = told(h)
    assert [line for line in found if "cordoned" in line] == [
        "Node n: cordoned",
        "Node n: uncordoned",
    ]
    assert [line for line in found if line.startswith("Pod")][2:] == [
        "Pod ns/p: not scheduled: Unschedulable",
        "Pod ns/p: not scheduled: over (was Unschedulable)",
        "Pod ns/p: main ended: 1 Error",
        "Pod ns/p: main waits: CrashLoopBackOff",
        "Pod ns/p: main ended: over (was 1 Error)",
        "Pod ns/p: main waits: over (was CrashLoopBackOff)",
    ]


def test_what_was_there_before() -> None:
    h = History()
    h.t = -100
    h.node("old")
    h.t = 0
    h.node("state")
    h.node("new")
    assert [line.partition(",")[0] for line in told(h, state_until=2)][:3] == [
        "Node old: there",
        "Node state: there",
        "Node new: created",
    ]


def test_steps_are_not_told_but_new_worlds_are() -> None:
    h = History()
    pod = h.pod("p")
    pod.line("start", rank=0, world=2, generation="a")
    pod.line("step", rank=0, world=2, generation="a", step=1)
    pod.line("step", rank=0, world=3, generation="b", step=2)
    pod.line("step", rank=0, world=3, generation="b", step=3)
    pod.line("signal", signal="SIGTERM", code=143)
    assert told(h)[2:] == [
        "training t/p: start rank 0 world 2",
        "training t/p: world changed rank 0 world 3 step 2",
        "training t/p: signal signal SIGTERM code 143",
    ]


def test_faults_marks_gaps_and_the_clusters_events() -> None:
    h = History()
    h.fault("inject", "agent-kill", "p", pid=7)
    h.add("mark", "test-start", name="a::b")
    h.gap("Pod", 1)
    about = {"kind": "Pod", "namespace": "t", "name": "p"}
    h.add(
        "watch", "ADDED", "Event", "t", "p.1", "e1",
        {"involvedObject": about, "reason": "FailedScheduling", "message": "0/3\n nodes"},
    )  # fmt: skip
    assert told(h) == [
        "agent-kill t/p: fault inject: pid=7",
        "mark a::b: mark test-start",
        "Pod: gap begin",
        "Pod: gap end",
        "Pod t/p: event FailedScheduling: 0/3 nodes",
    ]
