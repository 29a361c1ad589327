"""What all invariants of ours share."""

from __future__ import annotations

from oracles.graces import Graces
from oracles.history import Event
from oracles.invariants.base import Violation
from oracles.invariants.world import ANY, World

#: violations that one invariant tells in full; the rest are counted
TELL = 100
#: in place of an event's number: the history ended so
LAST = -1


class Rule:
    """Base of the invariants: they read the world, and collect violations.

    Attributes:
        kinds: kinds of objects, or ``source:fault``, that it is fed with.
        wants: the changes of a pod that it is fed with (bits of ``World.changed``).
        within_one: a violation shows within single versions of objects, or in what must never
            change, so that something missed in between cannot excuse it.
        judged: how many times there was something to judge. 0: not exercised.
    """

    name: str
    promise: str
    source: str
    behaviour: str
    kinds: frozenset[str]
    wants: int = ANY
    within_one: bool = False

    def __init__(self, world: World, graces: Graces) -> None:
        self.world = world
        self.graces = graces
        self.judged = 0
        self.untold = 0
        self._found: list[Violation] = []

    def feed(self, event: Event) -> None:
        """Take the next event; the world has it already."""
        raise NotImplementedError

    def finish(self, now: float) -> list[Violation]:
        """All violations; *now* is the monotonic time at which the history ends."""
        self.end(max(now, self.world.now))
        return self._found

    def end(self, now: float) -> None:
        """Judge what is still open when the history ends."""

    def broke(
        self,
        subject: str,
        message: str,
        signature: str,
        *events: int,
        t: float,
        behaviour: str | None = None,
    ) -> None:
        """Collect a violation.

        Args:
            events: LAST stands for the end of the history; 0 for an event that there is not.
            t: monotonic here; the judge makes it wall time.
        """
        if len(self._found) >= TELL:
            self.untold += 1
            return
        self._found.append(
            Violation(
                invariant=self.name,
                behaviour=behaviour or self.behaviour,
                subject=subject,
                message=message,
                signature=signature,
                events=tuple(sorted({seq for seq in events if seq > 0})),
                t=t,
                lasting=LAST in events,
            )
        )
