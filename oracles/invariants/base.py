"""What an invariant is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from oracles.history import Event


@dataclass(frozen=True)
class Violation:
    """A broken promise.

    Attributes:
        invariant: its name.
        behaviour: id in the catalogue that the promise belongs to.
        subject: ``Kind namespace/name`` of what broke it.
        message: one sentence with the figures.
        signature: the same for every occurrence of the same fault (no names, no numbers).
        events: sequence numbers of the events that prove it, in order.
        t: wall time of the moment it was broken, seconds since 1970.
        lasting: that nothing came after the last of these events, up to the end of the history, is
            part of the proof.
        doubt: why nobody can say whether it stands, where that is not for want of events.
    """

    invariant: str
    behaviour: str
    subject: str
    message: str
    signature: str
    events: tuple[int, ...] = field(default=())
    t: float = 0.0
    lasting: bool = False
    doubt: str = ""

    @property
    def text(self) -> str:
        """All of it, as ``known.yaml`` matches it wherever it was found."""
        return f"{self.signature}: {self.subject}: {self.message}"


class Invariant(Protocol):
    """A truth that is judged on a stream of events.

    Attributes:
        name: short and stable, ``gang-atomicity``.
        promise: what must hold, in a sentence.
        source: where the promise is made.
        behaviour: the behaviour it belongs to.
        kinds: the kinds and sources it wants to be fed: ``Pod``, or ``source:progress``.
    """

    name: str
    promise: str
    source: str
    behaviour: str
    kinds: frozenset[str]

    def feed(self, event: Event) -> None:
        """Take the next event. Called in the order of the history."""

    def finish(self, now: float) -> list[Violation]:
        """All violations; *now* is the monotonic time at which the history ends."""
