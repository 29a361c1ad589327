"""Probes of training: what a job's processes tell of themselves."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable

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


@activity
def trains(
    job: str, *, steps: int = 5, world: int | None = None, within: float = 120,
    since_fault: bool = False,
) -> Object:  # fmt: skip
    """A process group does so many steps, at all or *since_fault*.

    Args:
        since_fault: after the last fault, or after the last one was mended.
    """
    it = session.current()
    last = max(it.since, it.mended)
    since = last + 1.0 if since_fault else 0.0

    def enough(lines: list[ProgressLine]) -> Object | None:
        done: dict[str, dict[int, set[int | None]]] = {}
        sizes: dict[str, int] = {}
        first: dict[str, float] = {}
        for line in progress.steps(lines):
            if line.t <= since or line.generation is None or line.step is None:
                continue
            done.setdefault(line.generation, {}).setdefault(line.step, set()).add(line.rank)
            sizes[line.generation] = line.world or 0
            first.setdefault(line.generation, line.t)
        for generation, by_step in done.items():
            size = sizes[generation]
            whole = sum(ranks == set(range(size)) for ranks in by_step.values())
            if whole >= steps and world in (None, size):
                return {"world": size} | (
                    {"after": round(max(0.0, first[generation] - last), 3)} if since_fault else {}
                )
        return None

    what = f"{job} does {steps} steps" + (f" in a world of {world}" if world else "")
    return _told(job, enough, within, what)


@activity
def no_sample_was_lost(job: str) -> bool:
    """No sample was skipped, and at most one checkpoint's interval of steps was lost at a time."""
    wrong = samples.faults(_lines(job), size=SAMPLES, interval=INTERVAL)
    assert not wrong, "; ".join(wrong)
    return True


@activity
def worker_restarts(pod: str, *, at_least: int = 1, within: float = 60) -> int:
    """A worker process of a pod is started again by its agent, in the same container."""
    it = session.current()
    pods = {p["metadata"]["uid"]: p for p in it.kube.find(PODS, it.namespace)}

    def enough(lines: list[ProgressLine]) -> int | None:
        most = max(
            (int(x.restart or 0) for x in lines if x.pod == pod and x.pod_uid in pods), default=0
        )
        return most if most >= at_least else None

    job = next(
        p["metadata"]["labels"][JOB_NAME] for p in pods.values() if p["metadata"]["name"] == pod
    )
    return _told(job, enough, within, f"{at_least} restarts of the worker process of {pod}")


@activity
def nothing_told(job: str) -> bool:
    """No process of a job has told of anything yet: its agents have not met.

    Raises:
        NotReached: one has, so the moment before it is over.
    """
    lines = _lines(job)
    if lines:
        raise NotReached(f"{lines[0].pod} has told of its {lines[0].event.value} already")
    return True


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
