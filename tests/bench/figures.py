"""A measured figure, and how it stands to its bound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One figure of a benchmark.

    Attributes:
        samples: what was measured, in the order of the runs.
        bound: what is promised of the median; None where nothing is.
    """

    name: str
    unit: str
    samples: tuple[float, ...]
    bound: float | None = None
    note: str = ""

    @property
    def median(self) -> float:
        """The middle sample (the mean of the two middle ones)."""
        ordered = sorted(self.samples)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else sum(ordered[middle - 1 : middle + 1]) / 2

    @property
    def kept(self) -> bool | None:
        """Whether the bound is kept; None without one."""
        return None if self.bound is None else self.median <= self.bound
