"""What must be true of everything that an elastic job trained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from fixtures.workloads import LOSS_TOLERANCE
from oracles import progress
from oracles.progress import ProgressLine
from suites import training

#: seconds by which a line may be written late: a process tells of a step after it is done
LATE = 1.0


def losses(lines: Sequence[ProgressLine]) -> dict[int, list[float]]:
    """Global step -> the losses that were told of it, by any rank of any process group."""
    found: dict[int, list[float]] = defaultdict(list)
    for line in progress.steps(lines):
        if line.step is not None and line.loss is not None:
            found[line.step].append(line.loss)
    return found


def replays(lines: Sequence[ProgressLine]) -> list[str]:
    """Steps that were done again, after a rollback or in another world, and came out otherwise.

    A step feeds the same samples to the same weights every time, so its loss is the same.
    """
    wrong = []
    for step, seen in sorted(losses(lines).items()):
        apart = max(seen) - min(seen)
        if apart > LOSS_TOLERANCE:
            wrong.append(
                f"step {step} was done with losses {min(seen):.6f} to {max(seen):.6f}; they may"
                f" differ by {LOSS_TOLERANCE:g}"
            )
    return wrong[:5]


def unlike(lines: Sequence[ProgressLine], other: Sequence[ProgressLine]) -> list[str]:
    """Steps whose loss is not that of an undisturbed run, or that only one of both has."""
    ours, theirs = losses(lines), losses(other)
    if set(ours) != set(theirs):
        apart = sorted(set(ours) ^ set(theirs))
        return [f"{len(apart)} steps are in one run only: {apart[:10]}"]
    wrong = []
    for step in sorted(ours):
        apart_by = max(abs(loss - theirs[step][0]) for loss in ours[step])
        if apart_by > LOSS_TOLERANCE:
            wrong.append(
                f"step {step}: the loss differs by {apart_by:.2g} from the undisturbed run's"
                f" {theirs[step][0]:.6f}; it may by {LOSS_TOLERANCE:g}"
            )
    return wrong[:5]


def furthest(lines: Sequence[ProgressLine], other: Sequence[ProgressLine]) -> float:
    """By how much the losses of the same step differ at most."""
    theirs = losses(other)
    return max(
        (abs(loss - theirs[s][0]) for s, seen in losses(lines).items() if s in theirs
         for loss in seen),
        default=0.0,
    )  # fmt: skip


def beside(lines: Sequence[ProgressLine]) -> list[str]:
    """Process groups that did a step when a later one trained already: two worlds at once."""
    began = sorted(
        (min(line.t for line in group), name, group)
        for name, group in training.groups(lines).items()
    )
    wrong = []
    for (_, name, group), (start, later, _) in pairwise(began):
        last = max(line.t for line in group)
        if last > start + LATE:
            wrong.append(
                f"process group {name} did a step {last - start:.1f} s after the first of {later}"
            )
    return wrong


def longest_pause(lines: Sequence[ProgressLine], since: float) -> float:
    """The longest time without a step around or after *since*, in seconds."""
    times = [line.t for line in progress.steps(lines)]
    gaps = [b - a for a, b in pairwise(times) if b > since]
    return max(gaps, default=0.0)
