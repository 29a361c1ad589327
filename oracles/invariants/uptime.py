"""When a controller was there to keep its promises."""

from __future__ import annotations


class Uptime:
    """Stretches of time (monotonic seconds) in which something was away.

    Only the last few are kept: nothing looks further back than its own grace.
    """

    KEEP = 32

    __slots__ = ("_away", "_since")

    def __init__(self) -> None:
        self._away: list[tuple[float, float]] = []
        self._since: float | None = None  # away since

    def set(self, up: bool, now: float) -> None:
        """Say whether it is there from *now* on."""
        if up and self._since is not None:
            self._away.append((self._since, now))
            del self._away[: -self.KEEP]
            self._since = None
        elif not up and self._since is None:
            self._since = now

    def longest(self, start: float, end: float) -> float:
        """The longest unbroken stretch of presence between *start* and *end*, in seconds."""
        best, at = 0.0, start
        away = [*self._away, (self._since, end)] if self._since is not None else self._away
        for begin, finish in away:
            if finish <= at or begin >= end:
                continue
            best = max(best, begin - at)
            at = max(at, finish)
        return max(best, end - at)
