"""How much arrives, and into how much room: the same shape at every size."""

from __future__ import annotations

from dataclasses import dataclass

from oracles.errors import UsageError

#: pods of a gang, each of which asks for one GPU
SIZE = 64
#: GPUs of a node of the topology ``scale``
GPUS = 8
#: nodes for each gang: 200 gangs for 1,000 nodes
NODES_PER_GANG = 5
#: of ten gangs, six find room
ROOM = 6
#: with multiples of it all numbers are whole
STEP = 25


@dataclass(frozen=True)
class Load:
    """Gangs that arrive at once on so many *nodes*.

    Raises:
        UsageError: a number of nodes with which the room is no whole number of gangs.
    """

    nodes: int

    def __post_init__(self) -> None:
        if self.nodes < STEP or self.nodes % STEP:
            raise UsageError(
                f"{self.nodes} nodes: the room would be no whole number of gangs",
                hint=f"a multiple of {STEP}",
            )

    @property
    def gangs(self) -> int:
        """That arrive."""
        return self.nodes // NODES_PER_GANG

    @property
    def fit(self) -> int:
        """Gangs that there is room for: 60 %."""
        return self.gangs * ROOM // 10

    @property
    def room(self) -> int:
        """GPUs that are free when they arrive: exactly those that ``fit`` gangs need."""
        return self.fit * SIZE

    @property
    def blocked(self) -> int:
        """Nodes whose GPUs somebody else has: 4 % of them."""
        return self.nodes - self.room // GPUS

    @property
    def names(self) -> list[str]:
        """Of the gangs. Sorted as texts they are in the order of arrival, their pods together."""
        return [f"g{number:03}" for number in range(self.gangs)]
