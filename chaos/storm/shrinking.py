"""The shortest part of a schedule that still fails (delta debugging, Zeller's ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def shrink[T](
    items: Sequence[T], fails: Callable[[Sequence[T]], bool], *, runs: int = 50
) -> tuple[list[T], int]:
    """A part of *items*, in their order, that fails and of which no tried smaller part does.

    Args:
        fails: whether a part fails; *items* is taken to.
        runs: how often *fails* is asked at most; each time may be a storm.

    Returns:
        The part, and how many runs it took. With few runs it may not be the smallest.
    """
    now = list(items)
    pieces = 2
    used = 0

    def ask(part: list[T]) -> bool:
        nonlocal used
        used += 1
        return fails(part)

    while len(now) >= 2 and used < runs:
        size = max(1, -(-len(now) // pieces))
        parts = [now[start : start + size] for start in range(0, len(now), size)]
        smaller = None
        for part in parts:
            if used < runs and ask(part):
                smaller, pieces = part, 2
                break
        else:
            if len(parts) > 2:
                for index in range(len(parts)):
                    rest = [x for number, p in enumerate(parts) if number != index for x in p]
                    if used < runs and ask(rest):
                        smaller, pieces = rest, max(pieces - 1, 2)
                        break
        if smaller is not None:
            now = smaller
        elif size == 1:
            break
        else:
            pieces = min(len(now), pieces * 2)
    return now, used
