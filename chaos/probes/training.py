"""Probes of training: what a job's processes tell of themselves."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Literal

from chaos import session
from chaos.actions.jobs import INTERVAL
from chaos.activities import activity, promised
from chaos.errors import NotReached
from clusters.errors import WaitTimeout
from clusters.kube import PODS, Object
from fixtures import workloads
from fixtures.workloads import SAMPLES
from oracles import progress, samples
from oracles.progress import ProgressLine
from oracles.relations import JOB_NAME

#: seconds between two looks at progress files, which have no watch
LOOK = 0.25
#: characters of an error, and how many different ones are told
MOST, KINDS = 200, 3
#: what torchrun's agent logs before and after a rendezvous
JOINS, MET = "endezvous'ing worker group", "endezvous complete for workers"

Group = Literal["any", "new", "same"]


@activity
def trains(
    job: str, *, steps: int = 5, world: int | None = None, within: float = 120,
    since_fault: bool = False, group: Group = "any", from_now: bool = False,
) -> Object:  # fmt: skip
    """A process group does so many steps.

    Args:
        since_fault: only steps after the last fault, or after the last one was mended, count. Old
            processes may outlive a fault by their grace period: where the fault has to change the
            world, *group* is the question.
        group: ``new``: one that told of nothing before the last fault, so that a world was formed
            anew. ``same``: the one that trained right before it, and steps count as *since_fault*.
        from_now: only steps from now on count.

    Raises:
        NotReached: *group* is asked for, and nobody trained before the fault.
    """
    it = session.current()
    last = max(it.happened, it.mended)
    since = 0.0
    if group == "new":  # all that it tells of comes after the fault by itself
        since = max(it.begun, it.mended)
    elif since_fault or group == "same":
        since = max(it.since, it.mended)
    if from_now:
        since = time.time()

    def enough(lines: list[ProgressLine]) -> Object | None:
        old = [x for x in lines if x.t <= it.begun and x.generation is not None]
        if group != "any" and not old:
            raise NotReached(f"{job} had no process group before the fault")
        known = {x.generation for x in old}
        done: dict[str, dict[int, set[int | None]]] = {}
        sizes: dict[str, int] = {}
        first: dict[str, float] = {}
        for line in progress.steps(lines):
            if line.t <= since or line.generation is None or line.step is None:
                continue
            if group == "new" and line.generation in known:
                continue
            assert group != "same" or line.generation == old[-1].generation, (
                f"{job}: the world of {old[-1].world} that trained before is given up: one of"
                f" {line.world} trains {line.t - last:.1f} s after the fault"
            )
            done.setdefault(line.generation, {}).setdefault(line.step, set()).add(line.rank)
            sizes[line.generation] = line.world or 0
            first.setdefault(line.generation, line.t)
        for generation, by_step in done.items():
            size = sizes[generation]
            whole = sum(ranks == set(range(size)) for ranks in by_step.values())
            if whole >= steps and world in (None, size):
                after = {"after": round(max(0.0, first[generation] - last), 3)}
                return {"world": size} | (after if since else {})
        return None

    what = f"{job} does {steps} steps" + (f" in a world of {world}" if world else "")
    what += {"any": "", "new": ", its world formed anew", "same": ", its world the same"}[group]
    return _told(job, enough, within, what)


@activity
def no_sample_was_lost(job: str) -> bool:
    """No sample was skipped, and at most one checkpoint's interval of steps was lost at a time."""
    wrong = samples.faults(_lines(job), size=SAMPLES, interval=INTERVAL)
    assert not wrong, "; ".join(wrong)
    return True


@activity
def worker_restarts(pod: str, *, at_least: int = 1, within: float = 60) -> int:
    """After the last fault a worker process of a pod is started again, so often, by its old agent.

    Raises:
        NotReached: it told of nothing before the fault.
    """
    it = session.current()
    pods = it.kube.find(PODS, it.namespace, fields=f"metadata.name={pod}")
    if not pods:
        raise NotReached(f"there is no pod {pod}")
    job = pods[0]["metadata"]["labels"][JOB_NAME]

    def enough(lines: list[ProgressLine]) -> int | None:
        mine = [x for x in lines if x.pod == pod]
        before = [x for x in mine if x.t <= it.begun]
        if not before:
            raise NotReached(f"{pod} told of nothing before the fault")
        former = max(x.restart or 0 for x in before if _agent(x) == _agent(before[-1]))
        again = [x for x in mine if x.t > it.begun and _agent(x) == _agent(before[-1])]
        most = max((x.restart or 0 for x in again), default=0) - former
        return most if most >= at_least else None

    return _told(job, enough, within, f"{at_least} restarts of the worker process of {pod}")


def _agent(line: ProgressLine) -> tuple[str, int | None, int | None]:
    """The agent that started the process which told a line."""
    return (line.pod_uid, line.agent_pid, line.agent_start)


@activity
def nothing_told(job: str, *, pod: str = "", before_fault: bool = False) -> bool:
    """No process of a job has told of anything yet.

    Their agents may have met, though: see :func:`ended_in_rendezvous`.

    Args:
        pod: only those of this pod.
        before_fault: what they told after the last fault does not count.

    Raises:
        NotReached: one has, so the moment before it is over.
    """
    it = session.current()
    for line in _lines(job):
        if pod in ("", line.pod) and (not before_fault or line.t <= it.since):
            ago = f" {it.since - line.t:.1f} s before the fault was there" if before_fault else ""
            raise NotReached(f"{line.pod} has told of its {line.event.value} already{ago}")
    return True


@activity
def ended_in_rendezvous(pod: str, *, container: str = "pytorch", within: float = 60) -> str:
    """An agent that was killed had begun a rendezvous and not completed it: its last line.

    Its own log says so, that of the container which ended.

    Raises:
        NotReached: it had not, so this was not the moment that was meant.
        WaitTimeout: the container was not started again, and so has no former log.
    """
    it = session.current()

    def restarts(pods: list[Object]) -> int | None:
        told = [s for p in pods for s in p["status"].get("containerStatuses") or []]
        return next((int(s["restartCount"]) for s in told if s["name"] == container), 0) or None

    count = it.kube.wait(
        PODS, restarts, namespace=it.namespace, fields=f"metadata.name={pod}", deadline=within,
        why=f"{container} of {pod} started again",
    )  # fmt: skip
    if count != 1:
        raise NotReached(f"{container} of {pod} ended {count} times: not by the fault alone")
    lines = it.kube.logs(it.namespace, pod, container, previous=True).splitlines()
    if not any(JOINS in line for line in lines):
        raise NotReached(f"{pod} had not begun a rendezvous; last: {' '.join(lines[-1:])[:200]}")
    for line in lines:
        if MET in line:
            raise NotReached(f"{pod} had completed the rendezvous: {line[:200]}")
    return lines[-1]


def errors(lines: list[ProgressLine]) -> str:
    """What ended worker processes, each with how often: without figures, which differ each time."""
    found = Counter(
        re.sub(r"\d+", "N", line.detail)[:MOST]
        for line in lines
        if line.event == "error" and line.detail
    )
    return "; ".join(f"{count} x {text}" for text, count in found.most_common(KINDS))


def _lines(job: str) -> list[ProgressLine]:
    it = session.current()
    return workloads.read_progress(it.site.cluster, it.namespace, job)


def _told[T](
    job: str, until: Callable[[list[ProgressLine]], T | None], within: float, why: str
) -> T:
    def wait() -> T:
        end = time.monotonic() + within
        while True:
            lines = _lines(job)
            if (answer := until(lines)) is not None:
                return answer
            if time.monotonic() > end:
                last = "; ".join(
                    f"{x.event.value} of {x.pod} rank {x.rank}/{x.world} step {x.step}"
                    for x in lines[-4:]
                )
                told = f"; errors: {found}" if (found := errors(lines)) else ""
                raise WaitTimeout(
                    f"{why}: not within {within:.0f} s; last lines: {last or 'none'}{told}"
                )
            time.sleep(LOOK)

    return promised(why, wait)
