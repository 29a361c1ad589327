"""Invariants: truths that are judged on every history.

``base`` has the contract. One module per promise or two; ``world`` has what they all read, ``rule``
what they share. :func:`make` gives all of them for one history.
"""

from __future__ import annotations

from oracles.graces import Graces
from oracles.invariants.bounds import ReplicaBounds
from oracles.invariants.churn import Churn, FinishedStays
from oracles.invariants.conditions import Conditions
from oracles.invariants.counts import Counts
from oracles.invariants.gang import GangAtomicity
from oracles.invariants.leftovers import Leftovers
from oracles.invariants.placement import GpuCapacity, Placement
from oracles.invariants.ranks import Ranks
from oracles.invariants.recovery import Recovery
from oracles.invariants.restarts import Restarts
from oracles.invariants.rule import Rule
from oracles.invariants.selector import Selector
from oracles.invariants.times import Times
from oracles.invariants.training import Training
from oracles.invariants.world import World

ALL: tuple[type[Rule], ...] = (
    GangAtomicity,
    GpuCapacity,
    Placement,
    Conditions,
    Times,
    Counts,
    Selector,
    ReplicaBounds,
    Ranks,
    Training,
    Restarts,
    Churn,
    FinishedStays,
    Leftovers,
    Recovery,
)


def make(world: World, graces: Graces) -> list[Rule]:
    """All invariants, new, for one history."""
    return [rule(world, graces) for rule in ALL]
