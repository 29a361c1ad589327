"""A host with more to do than it has cores, and what that means for bounds of seconds.

Where all nodes of a cluster, its control plane and its operator are processes of one host, they
share its cores: with *n* threads to run on each, everything takes up to *n* times as long. Graces
were measured on a busy host and allow for that; on one that is *m* times as busy, what was late by
less than *m* times its grace may have been late because of the host, so that nobody can say whose
fault it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oracles.graces import Graces

#: fact of a history's header: threads that wanted to run on the host of all nodes (load average of
#: a minute; of several, the highest), and its cores
FACT = "host"
#: threads per core that graces allow for: they were measured with 2.5 to 7.5
ALLOWED = 6.0


@dataclass(frozen=True)
class Crowd:
    """A crowded host: so many threads to run on so many cores."""

    threads: float
    cores: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Crowd | None:
        """What a history's header tells; None where the host was not crowded, or is not told of."""
        told = facts.get(FACT)
        if not isinstance(told, Mapping):
            return None
        found = cls(float(told.get("threads") or 0.0), max(1, int(told.get("cores") or 1)))
        return found if found.times > 1 else None

    @property
    def fact(self) -> dict[str, float]:
        """As a header has it."""
        return {"threads": round(self.threads, 1), "cores": self.cores}

    @property
    def times(self) -> float:
        """How many times as busy as graces allow for."""
        return self.threads / self.cores / ALLOWED

    def patient(self, figures: Graces) -> Graces:
        """Graces so many times as long; what is counted is counted as ever."""
        longer = {
            name: figures[name] * self.times
            for name in figures.names()
            if figures.grace(name).unit == "s"
        }
        return figures.but(**longer)

    def __str__(self) -> str:
        return f"this host had {self.threads:.0f} threads to run on {self.cores} cores"
