"""A host with more to do than it has cores, and what that means for bounds of seconds.

Where all nodes of a cluster, its control plane and its operator are processes of one host, they
share its cores: with *n* threads to run on each, everything takes up to *n* times as long. What was
late there by less than that may have been late because of the host, so that nobody can say whose
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
#: threads per core from which on a host is crowded. Graces were measured with up to 7 and are
#: several times what was measured, so that below this they need no allowance
CROWDED = 4.0


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
        return found if found.times >= CROWDED else None

    @property
    def fact(self) -> dict[str, float]:
        """As a header has it."""
        return {"threads": round(self.threads, 1), "cores": self.cores}

    @property
    def times(self) -> float:
        """How many times as long everything may take."""
        return self.threads / self.cores

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
