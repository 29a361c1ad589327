"""Stages of the elastic suite for proofs.

What is broken there does not come right, so it is not waited for as long as a real trouble is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.faults.base import Fault, Proof
from chaos.faults.signals import StopProcess
from chaos.processes import Which
from oracles.progress import ProgressLine
from suites.elastic.stage import GOES_ON, Stage
from suites.training import Training

#: seconds for which training is waited for that does not go on; where it does, it takes 5 to 30
SOON = 45.0


@dataclass
class Impatient(Stage):
    """A stage that waits for :data:`SOON` at most."""

    def trains(
        self, *, since: float, world: int | None = None, deadline: float = GOES_ON
    ) -> list[ProgressLine]:
        """As the suite's own."""
        return super().trains(since=since, world=world, deadline=min(deadline, SOON))


@dataclass
class Altered(Impatient):
    """A stage whose job is not the one that is asked for.

    Attributes:
        altered: settings of the job that stand in place of the test's.
    """

    altered: dict[str, Any] = field(default_factory=dict)

    def start(self, workers: int, low: int, high: int, **more: Any) -> Training:
        """As the suite's own, with other settings."""
        return super().start(workers, low, high, **(more | self.altered))


@dataclass
class Doubly(Impatient):
    """A stage on which something else breaks first.

    Attributes:
        other: that, before any fault of the test.
    """

    other: Fault | None = None

    def inject(self, fault: Fault, *, within: float = GOES_ON, by: str = "progress") -> Proof:
        """As the suite's own, after the other one."""
        assert self.other is not None
        self.injecting(self.other)
        return super().inject(fault, within=within, by=by)


@dataclass
class Frozen(Impatient):
    """A stage whose rendezvous host is what is frozen, and never thaws."""

    def freeze(self, index: int, which: Which) -> StopProcess:
        """The host instead of whom the test means."""
        return super().freeze(0, which)

    def thaw(self) -> float:
        """It does not, until the test is over."""
        self._frozen.clear()
        return super().thaw()
