"""Graces and bounds: how long something may be so before it counts as broken.

One YAML file per adapter, each figure with its unit and where it was measured or why it was
chosen. ``default.yaml`` has all of them; a system's own file replaces some. Whoever changes one
judges the stored histories again in the same commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, RootModel

from oracles.errors import UsageError
from oracles.strict import Strict, load

FOLDER = Path(__file__).parent


class Grace(Strict):
    """A figure. ``why`` says where it was measured, or why it was chosen."""

    value: float = Field(ge=0)
    unit: Literal["s", "times", "steps"]
    why: str = Field(min_length=20)


class _File(RootModel[dict[str, Grace]]):
    pass


class Graces:
    """The figures for one system under test, by name."""

    def __init__(self, figures: dict[str, Grace]) -> None:
        self._figures = figures

    def __getitem__(self, name: str) -> float:
        try:
            return self._figures[name].value
        except KeyError:
            raise UsageError(f"no grace {name!r}", hint="default.yaml has to have it") from None

    def names(self) -> list[str]:
        """All names."""
        return sorted(self._figures)

    def grace(self, name: str) -> Grace:
        """A figure with its reason, for reports."""
        self[name]
        return self._figures[name]

    def but(self, **values: float) -> Graces:
        """A copy with other values, for tests and for systems that are set up otherwise."""
        figures = dict(self._figures)
        for name, value in values.items():
            figures[name] = Grace(
                value=value, unit=self.grace(name).unit, why="given by the caller, see there"
            )
        return Graces(figures)


@cache
def _file(name: str) -> dict[str, Grace]:
    return load(_File, FOLDER / f"{name}.yaml", "list of graces").root


def graces(systems: Iterable[str] = ()) -> Graces:
    """The figures for *systems*, named as in results: ``coscheduling:0.28.9``, ``NAME@src:DIR``.

    A system without a file of its own has the defaults.

    Raises:
        UsageError: a file is broken, or names a figure that the defaults do not have.
    """
    figures = dict(_file("default"))
    for system in systems:
        name = system.partition(":")[0].partition("@")[0]
        if name == "default" or not (FOLDER / f"{name}.yaml").exists():
            continue
        own = _file(name)
        unknown = sorted(set(own) - set(figures))
        if unknown:
            raise UsageError(f"{name}.yaml has graces that no invariant knows: {unknown}")
        figures.update(own)
    return Graces(figures)
