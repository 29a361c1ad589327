"""The catalogue of behaviours, and whether the tests and the catalogue agree.

A behaviour's state (planned or tested) is never stored: it follows from the tests there are. The
list ``planned`` only says which behaviours may still be without a test, so it can only shrink.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from oracles.errors import UsageError
from oracles.strict import Strict, load

FILE = Path(__file__).with_name("behaviours.yaml")

#: the first letter of an id -> the group, which is also a folder of ``suites``
GROUPS = {
    "G": "gang",
    "S": "sched",
    "E": "elastic",
    "R": "recovery",
    "T": "status",
    "C": "cleanup",
    "V": "api",
}

Target = Literal[
    "gang scheduler",
    "any scheduler",
    "preempting scheduler",
    "queueing scheduler",
    "any operator",
    "any job",
    "PyTorchJob",
    "elastic PyTorchJob",
    "TFJob",
]


class Level(StrEnum):
    """How binding a behaviour is, in the sense of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Behaviour(Strict):
    """One promise.

    Attributes:
        applies_to: the kinds of systems that make the promise; all of them are needed.
        source: who promises it: a document, a thread, or ``catalogue`` where it is our own.
    """

    id: str = Field(pattern=r"^[GSERTCV][0-9]{2}$")
    level: Level
    title: str = Field(min_length=5, max_length=120)
    promise: str = Field(min_length=20)
    applies_to: list[Target] = Field(min_length=1)
    source: str = Field(min_length=5)

    @property
    def group(self) -> str:
        """``gang``, ``sched``, ``elastic``, ..."""
        return GROUPS[self.id[0]]


class Catalogue(Strict):
    """All behaviours, and the ids of those that may be without a test."""

    behaviours: list[Behaviour] = Field(min_length=1)
    planned: list[str]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Catalogue:
        for name, ids in (
            ("behaviours", [b.id for b in self.behaviours]),
            ("planned", self.planned),
        ):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            if twice:
                raise ValueError(f"twice in {name}: {', '.join(twice)}")
        unknown = sorted(set(self.planned) - {b.id for b in self.behaviours})
        if unknown:
            raise ValueError(f"planned, but not in the catalogue: {', '.join(unknown)}")
        return self

    def get(self, behaviour: str) -> Behaviour:
        """The behaviour of that id. Raises UsageError."""
        for item in self.behaviours:
            if item.id == behaviour:
                return item
        raise UsageError(
            f"no behaviour {behaviour!r} in the catalogue", hint=f"ids are listed in {FILE.name}"
        )

    def check(self, tested: Mapping[str, list[str]]) -> list[str]:
        """Where catalogue and tests disagree, one line each; empty when they agree.

        Args:
            tested: behaviour id -> the tests that name it.
        """
        ids = {b.id for b in self.behaviours}
        lines = [
            f"{where}: names the behaviour {name!r}, which is not in the catalogue"
            for name, places in sorted(tested.items())
            if name not in ids
            for where in places
        ]
        for item in self.behaviours:
            has_test = item.id in tested
            if has_test and item.id in self.planned:
                lines.append(f"{item.id} has a test ({tested[item.id][0]}): take it out of planned")
            elif not has_test and item.id not in self.planned:
                lines.append(f"{item.id} ({item.title}) has no test, and is not in planned")
        return lines


@cache
def catalogue() -> Catalogue:
    """The catalogue that comes with the harness."""
    return load(Catalogue, FILE, "catalogue of behaviours")


def marks_below(folder: Path) -> dict[str, list[str]]:
    """Behaviour id -> places (``file:line``) of its marks in the test files below *folder*.

    The files are read, not imported: the check needs no cluster and no plugin.
    """
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for name, line in _marks(ast.parse(path.read_text(), str(path))):
            found.setdefault(name, []).append(f"{path.relative_to(folder)}:{line}")
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "behaviour"
            and isinstance(node.func.value, ast.Attribute)
            and node.func.value.attr == "mark"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value), node.lineno
