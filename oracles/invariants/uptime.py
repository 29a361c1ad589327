"""When a controller was there to keep its promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles.history import Event
from oracles.invariants.records import Pod


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


class Controllers:
    """When the controllers of each role were there: a pod of theirs Ready, no fault in force."""

    def __init__(self) -> None:
        self._uptime: dict[str, Uptime] = {}
        self._paused: dict[str, set[str]] = {}
        self._ready: dict[str, dict[str, bool]] = {}

    def up(self, role: str, start: float, end: float) -> float:
        """The longest stretch (seconds) between *start* and *end* in which *role* was there.

        A controller that nothing is known of counts as there.
        """
        uptime = self._uptime.get(role)
        return end - start if uptime is None else uptime.longest(start, end)

    def pod(self, pod: Pod, status: Mapping[str, Any], now: float) -> None:
        """A controller's pod, with its status as it is from *now* on."""
        ready = any(
            c.get("type") == "Ready" and c.get("status") == "True"
            for c in status.get("conditions") or ()
        )
        known = self._ready.setdefault(pod.role, {})
        if known.get(pod.uid) is not ready:
            known[pod.uid] = ready and not pod.deleting
            self._update(pod.role, now)

    def gone(self, pod: Pod, now: float) -> None:
        """A controller's pod is not there any more."""
        self._ready.get(pod.role, {}).pop(pod.uid, None)
        self._update(pod.role, now)

    def fault(self, event: Event, now: float) -> None:
        """A fault's step: while one is in force, the clocks of what it pauses stand still."""
        roles = event.object.get("pauses") or ()
        fault = str(event.object.get("id") or f"{event.kind} {event.namespace}/{event.name}")
        for role in roles:
            active = self._paused.setdefault(role, set())
            if event.type == "inject":
                active.add(fault)
            elif event.type == "recover":
                active.discard(fault)
            self._update(role, now)

    def _update(self, role: str, now: float) -> None:
        ready = self._ready.get(role)
        up = not self._paused.get(role) and (ready is None or any(ready.values()))
        self._uptime.setdefault(role, Uptime()).set(up, now)
