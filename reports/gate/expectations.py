"""What a run has to show: ``reports/expectations.yaml``."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from pydantic import Field, model_validator

from oracles.errors import UsageError
from oracles.strict import Strict, load
from reports.axes import AXES
from reports.notes import Pattern
from reports.table import Entry

FILE = Path(__file__).parent.parent / "expectations.yaml"


class Expected(Strict):
    """A behaviour that has to be judged.

    Attributes:
        cases: each of them, as names that may hold ``*`` and ``?``; empty: the behaviour has one
            case only, without a name.
        attempts: how often, on each system.
        only: the matrices that it is expected in; None: in all.
    """

    behaviour: str
    cases: list[str] = Field(default_factory=list)
    attempts: int = Field(default=1, ge=1)
    only: list[str] | None = None

    @property
    def names(self) -> list[str]:
        """Its cases."""
        return self.cases or [""]


class Quarantine(Pattern):
    """Cells that are known to fail now and then, and may, for a while.

    Attributes:
        rate: the failure rate that is put up with (0..1). Failing more often than that is red, as
            soon as the attempts show it with 95 % confidence.
        reason, link: why it is not mended yet, and where that is told.
        until: the last day that it holds.
    """

    behaviour: str
    rate: float = Field(gt=0, lt=1)
    reason: str = Field(min_length=10)
    link: str | None = None
    until: date


class Expectations(Strict):
    """The whole file.

    Attributes:
        systems: name of a matrix -> the systems in it, each as part -> value. What a system does
            not name may be anything.
    """

    systems: dict[str, list[dict[str, str]]]
    expected: list[Expected] = Field(min_length=1)
    quarantine: list[Quarantine] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_are_names(self) -> Expectations:
        for each in self.expected:
            if unknown := sorted(set(each.only or ()) - set(self.systems)):
                raise ValueError(f"{each.behaviour}: no matrix {', '.join(unknown)}")
        for name, systems in self.systems.items():
            for system in systems:
                if unknown := sorted(set(system) - set(AXES)):
                    raise ValueError(f"systems.{name}: no part of a system: {', '.join(unknown)}")
        return self

    def matrix(self, name: str) -> list[dict[str, str]]:
        """The systems of a matrix. Raises UsageError."""
        if name not in self.systems:
            raise UsageError(
                f"no matrix {name!r} in the expectations",
                hint=f"one of {', '.join(sorted(self.systems))}",
            )
        return self.systems[name]

    def of(self, matrix: str) -> list[Expected]:
        """What is expected in a matrix."""
        return [each for each in self.expected if each.only is None or matrix in each.only]

    def quarantined(self, entry: Entry, today: date) -> Quarantine | None:
        """The entry that excuses failures of a cell; None when none does, or does any more."""
        cell = {"behaviour": entry.behaviour, "case": entry.case, **entry.system._asdict()}
        return next((q for q in self.quarantine if q.until >= today and q.meets(cell)), None)


def read(path: Path = FILE) -> Expectations:
    """The expectations of a file. Raises UsageError."""
    return load(Expectations, path, "file of expectations")
