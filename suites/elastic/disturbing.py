"""Disturbing a job as a cell says, and measuring what it cost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.faults.base import Fault
from chaos.processes import Which
from clusters.errors import WaitTimeout
from clusters.kube import PODS, Object
from oracles import samples
from oracles.errors import HarnessError
from oracles.progress import Event, ProgressLine
from suites.elastic import checks, trainer
from suites.elastic.agents import Agents, job_restarts, torchrun_restarts
from suites.elastic.cells import Cell
from suites.elastic.stage import FROZEN, GOES_ON, Stage

#: seconds within which the world has the size that was asked for, where it ever gets it; looked
#: at, not judged: on some versions an agent that returns is not let in again
WHOLE = 30.0
#: seconds that agents wait for more of them, where the disturbance is to fall into that time
LAST_CALL = 8
#: seconds of grace of a pod that is deleted with grace
GRACE = 5
#: seconds for which a training process goes on that is told to end, where another one is to be hit
#: while it leaves: without them the others have failed before, for its connections are gone
LEAVES = 3
#: seconds until agents notice a new one, and until a worker too many is told to go
NOTICED = 180.0
_WHICH = {"agent": Which.AGENT, "worker": Which.WORKER}


@dataclass(frozen=True)
class Sizes:
    """How many workers there are before, and are asked for when it is over."""

    before: int
    after: int
    low: int
    high: int


#: by moment. Two workers are few enough for two cores and one is left above the minimum
SIZES = {
    "rest": Sizes(3, 3, low=2, high=3),
    "rendezvous": Sizes(2, 3, low=2, high=4),  # never the most: agents wait for their last call
    "shrink": Sizes(3, 2, low=1, high=3),
}


def run(stage: Stage, cell: Cell) -> None:
    """Start a job, disturb it, wait until it goes on, measure, judge."""
    sizes, measure = SIZES[cell.moment], stage.measure
    conf = {"last_call_timeout": str(LAST_CALL)} if cell.moment == "rendezvous" else {}
    wait = LEAVES if cell.moment == "shrink" and cell.process == "worker" else 0
    training = stage.start(
        sizes.before, sizes.low, sizes.high, backend=cell.backend, conf=conf, grace=GRACE,
        term_wait_s=wait,
    )  # fmt: skip
    with stage.expect(f"{sizes.before} workers train"):
        training.wait_steps(12, world=sizes.before, deadline=trainer.STARTED)
    before = stage.agents()
    began = _moment(stage, cell, sizes)
    struck, what = _strike(stage, cell)
    if cell.moment == "rendezvous":
        still_met(training.lines(), began, struck)

    frozen = cell.signal == "stop" and cell.pod == "kept"
    thawed = struck + FROZEN if frozen else struck
    trained = stay_frozen(stage, struck) if frozen else 0
    group = stage.goes_on(what, since=thawed + 1.0)
    again = group[0].t
    if frozen:  # the others may have gone on meanwhile
        steps = (x.t for x in training.lines() if x.event is Event.STEP and x.t > struck + 1.0)
        again = min(steps, default=again)
    measure("training again after", again - struck, "s")
    if frozen:
        measure("frozen", FROZEN, "s")
        measure("steps while frozen", trained, "steps")
    measure("world before", sizes.before, "ranks")
    measure("world after", group[0].world or 0, "ranks")
    last = _whole(stage, sizes.after, thawed, group)
    measure("world at the end", last[0].world or 0, "ranks")
    if last[0].world == sizes.after:
        measure("whole again after", last[0].t - struck, "s")
    measure_cost(stage, before, struck, victims=[_victim(stage, cell)])
    stage.sound(last)


def measure_cost(stage: Stage, before: Agents, since: float, *, victims: Sequence[str]) -> None:
    """Measure what a disturbance at *since* cost, in steps, time and restarts."""
    measure, lines = stage.measure, stage.training.lines()
    lost = [loss.steps for loss in samples.losses(lines)]
    now = stage.agents()
    measure("steps lost", max(lost, default=0), "steps")
    measure("longest pause", checks.longest_pause(lines, since), "s")
    measure(
        "agents restarted beside the victim",
        len(now.restarted_since(before, but=victims)), "agents",
    )  # fmt: skip
    measure("restarts by torchrun", torchrun_restarts(lines, since), "1")
    measure("restarts by the kubelet", now.kubelet_restarts(before), "1")
    told = job_restarts(stage.kube, stage.namespace, stage.job)
    measure("restarts by the job", told, "events")
    measure("pods replaced", now.replaced(before), "pods")
    if stage.cluster.provider == "kind":  # its nodes are this host's
        measure("load of the host", os.getloadavg()[0], "threads")


def _victim(stage: Stage, cell: Cell) -> str:
    return stage.worker(0 if cell.target == "host" else 1)


def _moment(stage: Stage, cell: Cell, sizes: Sizes) -> float:
    """Bring about the moment that the cell names; when that began."""
    began = time.time()
    if cell.moment == "rendezvous":
        stage.scale(sizes.after)
        _meeting(stage, sizes.before, began)
    elif cell.moment == "shrink":
        leaver = stage.worker(sizes.after)
        stage.scale(sizes.after)
        with stage.expect("the worker too many is told to go"):
            stage.kube.wait(
                PODS, _leaves, namespace=stage.namespace, fields=f"metadata.name={leaver}",
                deadline=NOTICED, why=f"{leaver} is deleted",
            )  # fmt: skip
    return began


def _leaves(pods: list[Object]) -> bool | None:
    return True if not pods or "deletionTimestamp" in pods[0]["metadata"] else None


def _meeting(stage: Stage, workers: int, since: float) -> None:
    """Wait until every agent has ended its worker process, which is the last thing before."""

    def ended(lines: list[ProgressLine]) -> bool | None:
        pods = {
            line.pod
            for line in lines
            if line.t > since and line.event in (Event.SIGNAL, Event.ERROR)
        }
        return True if len(pods) >= workers else None

    with stage.expect("agents notice a new one and meet again"):
        stage.training.wait(ended, deadline=NOTICED, why=f"{workers} worker processes ended")


def still_met(lines: Sequence[ProgressLine], began: float, struck: float) -> None:
    """Raise HarnessError if the new world trained already when the fault struck."""
    trained = [
        line.t for line in lines
        if line.event is Event.START and began < line.t < struck and (line.world or 0) > 2
    ]  # fmt: skip
    if trained:
        raise HarnessError(
            f"the disturbance was to fall into a rendezvous, but that was over"
            f" {struck - trained[0]:.1f} s before it struck"
        )


def _strike(stage: Stage, cell: Cell) -> tuple[float, str]:
    """Do what the cell says; when it struck, and what it was."""
    index = 0 if cell.target == "host" else 1
    which = _WHICH[cell.process]
    within = GOES_ON + (FROZEN if cell.signal == "stop" else 0.0)
    deleted = stage.delete_pod(index, grace=0 if cell.pod == "gone" else GRACE)
    first: Fault
    if cell.signal == "stop":
        first = stage.freeze(index, which)
    elif cell.pod != "kept":
        first = deleted
    elif cell.process == "worker":
        first = stage.signal(index, which, _sign(cell))
    else:
        first = stage.kill_agent(index, _sign(cell))
    proof = stage.inject(first, within=within)
    if cell.signal == "stop" and cell.pod != "kept":
        later = stage.inject(deleted, within=within)
        return proof.t, f"{proof.what}; {later.what}"
    return proof.t, proof.what


def _sign(cell: Cell) -> signal.Signals:
    return signal.SIGKILL if cell.signal == "kill" else signal.SIGTERM


def stay_frozen(stage: Stage, struck: float) -> int:
    """Leave it frozen for its time, then thaw it; how many steps the others did meanwhile."""
    steps = 0

    def over(lines: list[ProgressLine]) -> bool | None:
        nonlocal steps
        steps = len({x.step for x in lines if x.event is Event.STEP and x.t > struck + 1.0})
        return True if time.time() >= struck + FROZEN else None

    stage.training.wait(over, deadline=FROZEN + 30.0, why="the time of freezing is over")
    stage.thaw()
    return steps


def _whole(stage: Stage, size: int, since: float, group: list[ProgressLine]) -> list[ProgressLine]:
    """The steps of the world of the size asked for, or of the latest one if that does not come."""
    try:
        return stage.training.wait_steps(5, world=size, since=since + 1.0, deadline=WHOLE)
    except WaitTimeout:
        lines = stage.training.lines()
        latest = max(lines, key=lambda line: line.t if line.event is Event.STEP else 0.0)
        return [x for x in lines if x.generation == latest.generation and x.event is Event.STEP]
