"""Watching a job train: through its progress lines, in a folder that outlives its pods."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from clusters.errors import WaitTimeout
from oracles import progress
from oracles.progress import ProgressLine

#: seconds between two looks at the folder; the host's files have no watch that spans nodes
LOOK = 0.25


class Training:
    """One job's training, as its processes tell of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lines(self) -> list[ProgressLine]:
        """All lines so far, by time."""
        return progress.read(self.folder)

    def wait[T](
        self, until: Callable[[list[ProgressLine]], T | None], *, deadline: float, why: str
    ) -> T:
        """Wait until *until* (given all lines) is not None; returns that.

        Raises:
            WaitTimeout: with the last lines seen.
        """
        end = time.monotonic() + deadline
        while True:
            lines = self.lines()
            if (answer := until(lines)) is not None:
                return answer
            if time.monotonic() > end:
                raise WaitTimeout(
                    f"{why}: not within {deadline:.0f} s; last lines: {describe(lines[-4:])}"
                )
            time.sleep(LOOK)

    def wait_steps(
        self, count: int, *, world: int | None = None, since: float = 0.0, deadline: float
    ) -> list[ProgressLine]:
        """Wait until one process group of *world* ranks has done *count* steps after *since*.

        Args:
            since: only steps after this moment count, in seconds since 1970.

        Returns:
            The step lines of that group, by time.
        """

        def enough(lines: list[ProgressLine]) -> list[ProgressLine] | None:
            for group in groups(lines, since).values():
                whole = [s for s in by_step(group).values() if complete(s)]
                if len(whole) >= count and (world is None or group[0].world == world):
                    return group
            return None

        size = f" of {world} ranks" if world else ""
        return self.wait(enough, deadline=deadline, why=f"{count} steps by a world{size}")


def groups(lines: Sequence[ProgressLine], since: float = 0.0) -> dict[str, list[ProgressLine]]:
    """Step lines after *since*, by process group (the lines' ``generation``)."""
    found: dict[str, list[ProgressLine]] = defaultdict(list)
    for line in progress.steps(lines):
        if line.t > since and line.generation is not None:
            found[line.generation].append(line)
    return found


def by_step(group: Sequence[ProgressLine]) -> dict[int, list[ProgressLine]]:
    """A group's lines by global step."""
    found: dict[int, list[ProgressLine]] = defaultdict(list)
    for line in group:
        if line.step is not None:
            found[line.step].append(line)
    return found


def complete(step: Sequence[ProgressLine]) -> bool:
    """Whether every rank of the world has told of this step."""
    return {line.rank for line in step} == set(range(step[0].world or 0))


def rank_faults(group: Sequence[ProgressLine]) -> list[str]:
    """What is wrong with the ranks of a process group; [] when nothing is.

    Every complete step has ranks 0..world-1, each from one process; all ranks see the same mean
    loss, which they can only if the collective is right; and no two of them fed the same sample.
    """
    faults = []
    worlds = {line.world for line in group}
    if len(worlds) != 1:
        faults.append(f"ranks disagree on the world size: {sorted(map(str, worlds))}")
    owners: dict[int | None, set[tuple[str, int]]] = defaultdict(set)
    for line in group:
        owners[line.rank].add((line.pod_uid, line.pid))
    faults += [
        f"rank {r} is {len(who)} processes" for r, who in sorted(owners.items()) if len(who) > 1
    ]
    places = [next(iter(who))[0] for who in owners.values()]
    if len(set(places)) != len(places):
        faults.append("a pod runs two ranks, one was asked for")
    for number, step in by_step(group).items():
        if not complete(step):
            continue
        if len({line.loss for line in step}) != 1:
            faults.append(f"step {number}: ranks see different losses after the all-reduce")
        fed = [sample for line in step for sample in line.ids or ()]
        if len(fed) != len(set(fed)):
            faults.append(f"step {number}: a sample was fed by two ranks")
    return faults


def describe(lines: Sequence[ProgressLine]) -> str:
    """Lines in few words."""
    return (
        "; ".join(
            f"{line.event.value} of {line.pod} rank {line.rank}/{line.world} step {line.step}"
            for line in lines
        )
        or "none"
    )
