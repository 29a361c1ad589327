"""What a job really trained on, read from its progress lines.

A sample counts as consumed when a checkpoint that training went on from holds it (or when the
last process group fed it): replay after a rollback is allowed, a gap is not. Counters in the lines
are what the trainer believes; judged are the ``ids``, the samples that were really fed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from oracles.progress import Event, ProgressLine


@dataclass(frozen=True)
class Generation:
    """One process group, from its first step to its end.

    Attributes:
        name: the lines' ``generation``.
        world: number of ranks.
        began: global steps that the checkpoint it went on from holds; 0: from scratch.
        reached: last step that any rank reported.
        last_checkpoint: last step it wrote a checkpoint of; None: none.
        first, last: times of its first and last line, unix seconds.
    """

    name: str
    world: int
    began: int
    reached: int
    last_checkpoint: int | None
    first: float
    last: float


@dataclass(frozen=True)
class Loss:
    """Steps that a rollback undid: those after *resumed*, up to *reached*."""

    generation: str
    reached: int
    resumed: int

    @property
    def steps(self) -> int:
        """Number of steps that have to be done again."""
        return max(0, self.reached - self.resumed)


def generations(lines: Sequence[ProgressLine]) -> list[Generation]:
    """The process groups of a job that did a step or read a checkpoint, in time order."""
    grouped: dict[str, list[ProgressLine]] = defaultdict(list)
    for line in lines:
        if line.generation is not None:
            grouped[line.generation].append(line)
    found = []
    for name, own in grouped.items():
        resumed = [x.step for x in own if x.event is Event.RESUME and x.step is not None]
        stepped = [x.step for x in own if x.event is Event.STEP and x.step is not None]
        kept = [x.step for x in own if x.event is Event.CHECKPOINT and x.step is not None]
        if not resumed and not stepped:
            continue
        began = max(resumed, default=min(stepped, default=1) - 1)
        found.append(
            Generation(
                name=name,
                world=max((x.world or 1 for x in own), default=1),
                began=began,
                reached=max([began, *stepped]),
                last_checkpoint=max(kept, default=None),
                first=min(x.t for x in own),
                last=max(x.t for x in own),
            )
        )
    return sorted(found, key=lambda g: g.first)


def losses(lines: Sequence[ProgressLine]) -> list[Loss]:
    """For every process group but the first: what its start undid of all before it."""
    groups = generations(lines)
    found = []
    for index, later in enumerate(groups[1:], start=1):
        reached = max(g.reached for g in groups[:index])
        found.append(Loss(later.name, reached, later.began))
    return found


def _parts(groups: Sequence[Generation]) -> list[tuple[Generation, int]]:
    """The groups whose work survived, each with the last step of it that did."""
    parts = []
    end: int | None = None
    for group in reversed(groups):
        last = group.reached if end is None else min(group.reached, end)
        if last > group.began:
            parts.append((group, last))
            end = group.began
        elif end is None:
            end = group.began
    return parts[::-1]


def faults(lines: Sequence[ProgressLine], *, size: int, interval: int) -> list[str]:
    """What is wrong with the samples and steps of a job; [] when nothing is.

    Args:
        size: samples in the data set.
        interval: steps between two checkpoints; a rollback may undo at most as many, as no rank
            can do the step after a checkpoint's before rank 0 has it in place.
    """
    found = [
        f"process group {loss.generation} went on from step {loss.resumed} when step "
        f"{loss.reached} was done: {loss.steps} steps lost, checkpoints are {interval} apart"
        for loss in losses(lines)
        if loss.steps > interval
    ]
    parts = _parts(generations(lines))
    expected = 0
    used: dict[int, Counter[int]] = defaultdict(Counter)
    finished: set[int] = set()
    for group, last in parts:
        if group.began != expected:
            found.append(
                f"process group {group.name} began after step {group.began}, but the work before "
                f"it ends with step {expected}"
            )
        expected = last
        for line in lines:
            if line.generation != group.name or line.event is not Event.STEP:
                continue
            if line.step is None or line.epoch is None or not group.began < line.step <= last:
                continue
            used[line.epoch].update(line.ids or ())
            if line.samples == size:
                finished.add(line.epoch)
    for epoch, counts in sorted(used.items()):
        twice = sorted(i for i, n in counts.items() if n > 1)
        missing = sorted(set(range(size)) - set(counts)) if epoch in finished else []
        if twice:
            found.append(f"epoch {epoch}: {len(twice)} samples fed twice: {twice[:10]}")
        if missing:
            found.append(f"epoch {epoch}: {len(missing)} samples never fed: {missing[:10]}")
    return found
