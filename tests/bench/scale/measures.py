"""What the watch's events mean in figures: pure functions of (time, gang, bound or gone)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tests.bench.scale.load import SIZE


@dataclass(frozen=True)
class Change:
    """A pod that was bound (+1), or that gave its place back (-1).

    Attributes:
        after: seconds since the gangs arrived.
    """

    after: float
    gang: str
    by: int = 1


@dataclass(frozen=True)
class Timeline:
    """What became of the gangs.

    Attributes:
        whole: seconds since the arrival at which each gang had all of its pods bound, in order.
        partial: gangs that are bound in part at the end.
        longest: seconds between a gang's first binding and its last one, at the most.
        idle: GPU-seconds that whole waiting gangs could have had, see :func:`timeline`.
        bound: pods at the end.
    """

    whole: tuple[float, ...]
    partial: tuple[str, ...]
    longest: float
    idle: float
    bound: int


def timeline(changes: Iterable[Change], *, gangs: int, room: int, until: float) -> Timeline:
    """Follow the gangs from their arrival to the last admission.

    Idle at a moment are the GPUs that are free, less those that gangs bound in part still need,
    in whole gangs, as long as so many gangs wait of which no pod is bound. That is summed up to
    the last admission; where gangs that would fit wait for ever, up to *until*.

    Args:
        gangs: that arrived.
        room: GPUs that were free then.
        until: seconds since the arrival for which was looked on.
    """
    counts: dict[str, int] = {}
    begun: dict[str, float] = {}
    whole: list[float] = []
    longest = 0.0
    #: (since, GPUs that are idle from then on)
    steps: list[tuple[float, int]] = [(0.0, _idle(counts, gangs, room))]
    for change in changes:
        count = counts[change.gang] = counts.get(change.gang, 0) + change.by
        if change.by > 0 and count == 1:
            begun[change.gang] = change.after
        if change.by > 0 and count == SIZE:
            whole.append(change.after)
            longest = max(longest, change.after - begun[change.gang])
        steps.append((change.after, _idle(counts, gangs, room)))
    last = whole[-1] if whole else 0.0
    end = until if steps[-1][1] else last
    steps.append((end, 0))
    idle = sum(
        gpus * max(0.0, min(after, end) - since) for (since, gpus), (after, _) in pairwise(steps)
    )
    return Timeline(
        tuple(whole),
        tuple(sorted(name for name, count in counts.items() if 0 < count < SIZE)),
        longest,
        idle,
        sum(counts.values()),
    )


def _idle(counts: dict[str, int], gangs: int, room: int) -> int:
    """GPUs that whole waiting gangs could have."""
    begun = sum(1 for count in counts.values() if count)
    free = room - SIZE * begun
    return SIZE * max(0, min(free // SIZE, gangs - begun))
