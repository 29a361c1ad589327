"""What the training programs said: who trained, as which rank of how many, and who stood still."""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from reports.timeline.model import Curve, Lane, Moment, Row, Segment, Tick

#: a process stands still when no step came for this long, in seconds, and for so many times its
#: usual step
_STILL, _STILL_TIMES = 2.0, 6.0
#: as many points of a curve as a page can show
_POINTS = 600
#: rows of processes in one pod's lane
MOST_ROWS = 4
#: lines that are marks on the pod's lane; checkpoints are marked on the job's
_MARKED = frozenset({"signal", "error", "resume", "end"})


@dataclass(slots=True)
class _Stretch:
    """Steps that one process did as one rank of one process group."""

    rank: int
    world: int
    generation: str
    first: int
    xs: array[float] = field(default_factory=lambda: array("d"))
    steps: array[float] = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class _Process:
    start: float
    event: int
    uid: str
    pid: int
    agent: int | None
    restart: int | None
    last: float
    last_event: int
    ended: bool = False
    stretches: list[_Stretch] = field(default_factory=list)


def line_words(line: Mapping[str, Any]) -> str:
    """A progress line in words."""
    skip = {"t", "event", "pod", "pod_uid", "ids", "generation"}
    said = ", ".join(
        f"{key.replace('_', ' ')} {f'{value:.4g}' if isinstance(value, float) else value}"
        for key, value in line.items()
        if key not in skip and value is not None
    )
    return f"{line.get('event', 'line')}: {said}" if said else str(line.get("event", "line"))


class Training:
    """All progress lines of a history."""

    def __init__(self) -> None:
        self._slots: dict[tuple[str, int], list[_Process]] = defaultdict(list)
        self._ticks: dict[str, list[Tick]] = defaultdict(list)
        self._checkpoints: dict[str, list[Tick]] = defaultdict(list)

    def feed(self, pod: str, x: float, line: Mapping[str, Any], seq: int) -> None:
        """Take a line of the pod with the id *pod*."""
        kind, pid = str(line.get("event", "")), int(line.get("pid") or 0)
        uid = str(line.get("pod_uid") or "")
        slot = self._slots[pod, int(line.get("local_rank") or 0)]
        # by process, not by order: lines of one that is dead can be read after the next one's
        process = next(
            (each for each in reversed(slot) if (each.uid, each.pid) == (uid, pid)), None
        )
        if process is None or (kind == "start" and process.last < x):
            process = _Process(x, seq, uid, pid, line.get("agent_pid"), line.get("restart"), x, seq)
            slot.append(process)
        if x >= process.last:
            process.last, process.last_event = x, seq
        rank, world, step = line.get("rank"), line.get("world"), line.get("step")
        if kind == "step" and rank is not None and world is not None:
            generation = str(line.get("generation") or world)
            at = process.stretches[-1] if process.stretches else None
            if at is None or (at.rank, at.world, at.generation) != (rank, world, generation):
                at = _Stretch(rank, world, generation, seq)
                process.stretches.append(at)
            at.xs.append(x)
            at.steps.append(float(step or 0))
        process.ended |= kind in ("end", "error")
        if kind == "checkpoint":
            self._checkpoints[pod].append(Tick(x, kind, line_words(line), seq))
        elif kind in _MARKED:
            self._ticks[pod].append(Tick(x, kind, line_words(line), seq))

    def rows(self, pod: str, ends: Sequence[float], until: float) -> tuple[Row, ...]:
        """The strips of a pod's lane, one for each process that it runs at a time.

        Args:
            ends: when the pods of that name ended; a process has ended with its pod.
        """
        slots = sorted(local for name, local in self._slots if name == pod)[:MOST_ROWS]
        return tuple(
            Row("strip", tuple(_segments(self._sorted(pod, local), ends, until))) for local in slots
        )

    def ticks(self, pod: str, restarts: Sequence[float]) -> list[Tick]:
        """Marks of a pod's lane.

        Args:
            restarts: when the pod's containers were started again (those have marks already).
        """
        found = list(self._ticks.get(pod, ()))
        for local in [local for name, local in self._slots if name == pod]:
            processes = self._sorted(pod, local)
            for before, now in itertools.pairwise(processes):
                marked = any(before.start < x <= now.start for x in restarts)
                if before.uid != now.uid or marked:
                    continue
                same = before.agent == now.agent
                count = f" (restart {now.restart})" if now.restart is not None else ""
                text = f"{'worker process' if same else 'agent'} started again{count}"
                found.append(Tick(now.start, "worker" if same else "agent", text, now.event))
        return sorted(found, key=lambda tick: tick.x)

    def note(self, pod: str) -> str:
        """The last rank and world of a pod."""
        last = [
            (process.start, stretch)
            for (name, _), processes in self._slots.items()
            if name == pod
            for process in processes
            for stretch in process.stretches
        ]
        if not last:
            return ""
        stretch = max(last, key=lambda each: each[1].xs[-1])[1]
        return f"rank {stretch.rank} of {stretch.world}"

    def lane(self, job: str, pods: Iterable[str]) -> tuple[Lane | None, list[Moment]]:
        """The job's curve of steps, by the lowest rank, with a band for each process group."""
        members = set(pods)
        stretches = [
            stretch
            for (pod, _), processes in self._slots.items()
            if pod in members
            for process in processes
            for stretch in process.stretches
        ]
        if not stretches:
            return None, []
        lowest = min(stretch.rank for stretch in stretches)
        led = sorted(
            (each for each in stretches if each.rank == lowest), key=lambda each: each.xs[0]
        )
        points, bands = [], []
        for stretch in led:
            points += list(zip(stretch.xs, stretch.steps, strict=True))
            bands.append(
                Segment(
                    stretch.xs[0], stretch.xs[-1], "world", f"world {stretch.world}", stretch.first
                )
            )
        ticks = [tick for pod in members for tick in self._checkpoints.get(pod, ())]
        lane = Lane(
            f"training {job}",
            "training",
            "training",
            f"global steps of {job}",
            note=f"{max(step for _, step in points):g} steps",
            ticks=tuple(sorted(ticks, key=lambda tick: tick.x)),
            curve=Curve("step", _thinned(sorted(points)), tuple(bands)),
        )
        return lane, list(_moments(job, lane.id, led))

    def _sorted(self, pod: str, local: int) -> list[_Process]:
        return sorted(self._slots[pod, local], key=lambda each: each.start)


def _segments(
    processes: Sequence[_Process], ends: Sequence[float], until: float
) -> Iterable[Segment]:
    for index, process in enumerate(processes):
        following = processes[index + 1].start if index + 1 < len(processes) else until
        limit = min([following, *(x for x in ends if x > process.last)])
        at, known = process.start, False
        for stretch in process.stretches:
            first = stretch.xs[0]
            if first > at:
                waits = "starting" if not known else "stalled"
                yield Segment(at, first, waits, waits, process.event, stretch.first)
            yield from _steady(stretch)
            at, known = stretch.xs[-1], True
        if process.ended:
            if process.last > at:
                state = "ending" if known else "starting"
                yield Segment(at, process.last, state, "", process.event, process.last_event)
        elif limit > at:
            state = "silent" if known else "starting"
            yield Segment(at, limit, state, state, process.last_event)


def _steady(stretch: _Stretch) -> Iterable[Segment]:
    """A stretch, cut where no step came for long."""
    label = f"rank {stretch.rank} of {stretch.world}"
    xs = stretch.xs
    gaps = [b - a for a, b in itertools.pairwise(xs)]
    still = max(_STILL, _STILL_TIMES * median(gaps)) if gaps else _STILL
    start = xs[0]
    for before, gap in zip(xs, gaps, strict=False):
        if gap > still:
            yield Segment(start, before, "training", label, stretch.first)
            yield Segment(before, before + gap, "stalled", "stalled", 0)
            start = before + gap
    yield Segment(start, xs[-1], "training", label, stretch.first)


def _moments(job: str, lane: str, led: Sequence[_Stretch]) -> Iterable[Moment]:
    before: _Stretch | None = None
    for stretch in led:
        at, first = f"world {stretch.world}", int(stretch.steps[0])
        if before is None:
            text = f"training: first step, {at}"
        else:
            quiet = stretch.xs[0] - before.xs[-1]
            text = f"training again after {quiet:.1f} s: {at}, step {first}"
            lost = int(before.steps[-1]) - first + 1
            text += f" ({lost} steps done again)" if lost > 0 else ""
        yield Moment(stretch.xs[0], "info", job, text, stretch.first, lane)
        before = stretch


def _thinned(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Fewer points; those where the curve turns back or stops stay."""
    if len(points) <= _POINTS:
        return tuple(points)
    apart = (points[-1][0] - points[0][0]) / _POINTS
    kept = [points[0]]
    for before, point in itertools.pairwise(points):
        if point[1] < before[1] or point[0] - before[0] > apart:
            # the end of what was before, so that the stop is drawn where it was
            if kept[-1] != before:
                kept.append(before)
            kept.append(point)
        elif point[0] - kept[-1][0] >= apart:
            kept.append(point)
    if kept[-1] != points[-1]:
        kept.append(points[-1])
    return tuple(kept)
