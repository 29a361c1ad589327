"""Rows of the tables of suites/gang and suites/sched: a behaviour, step by step, to be played.

The steps are in :mod:`suites.steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pytest

from fixtures.plugin.given import Expecting
from suites.gangs import Block, Gang
from suites.promises import Promise
from suites.stage import Stage


class Step(Protocol):
    """Something that is done on a stage, or has to be so there."""

    def __call__(self, stage: Stage) -> None:
        """Do it, or raise what is wrong."""


@dataclass(frozen=True)
class Row:
    """A behaviour, step by step.

    Attributes:
        room: GPUs of the cluster that are free at the beginning; None: it does not matter, the
            test holds what its gangs ask for.
        blocks: pods in the way, where it matters how the room is taken.
        spare: all GPUs are taken, so that ``Free(1)`` gives so many of one node back at once.
        needs: what the scheduler has to promise.
        preemption: ``preemptionPolicy`` of the priority classes; None: there are none.
    """

    gangs: tuple[Gang, ...]
    steps: tuple[Step, ...]
    room: int | None = None
    blocks: tuple[Block, ...] = ()
    spare: int | None = None
    needs: tuple[Promise, ...] = ()
    preemption: str | None = None

    def lease(self, total: int) -> int:
        """GPUs that nobody else may use meanwhile."""
        if (self.room, self.spare, self.preemption) != (None, None, None) or self.blocks:
            return total
        return min(total, sum(ask for gang in self.gangs for ask in gang.asks if ask <= total))


def case(row: Row, behaviour: pytest.MarkDecorator, *more: pytest.MarkDecorator) -> object:
    """A row of a table: ``pytest.mark.behaviour("G01", case="pods")`` names it."""
    name = f"{behaviour.args[0]} {behaviour.kwargs['case']}"
    return pytest.param(row, id=name, marks=(behaviour, *more))


def play(row: Row, stage: Stage, step: Expecting) -> None:
    """Take the room, and do one step after the other."""
    stage.gangs = {gang.name: gang for gang in row.gangs}
    if row.preemption is not None:
        stage.priorities(row.preemption)
    total = stage.cluster.topology.gpus
    taken = () if row.room is None else (Block(),) * (total - row.room)
    with step("take the room"):
        stage.block((*row.blocks, *taken))
        if row.spare is not None:
            stage.fill(row.spare)
    for one in row.steps:
        with step(repr(one)):
            one(stage)
