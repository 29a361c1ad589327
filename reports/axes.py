"""One table per axis: the columns are PyTorch versions, or operators, schedulers, Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from reports.table import Entry

#: the parts of a system, the one that people ask for first
AXES = ("framework", "operator", "scheduler", "kubernetes", "provider")
NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "kubernetes": "Kubernetes"}


@dataclass(frozen=True)
class Column:
    """A column: a part's value, as the group (its name) and the version."""

    value: str
    group: str
    label: str


@dataclass(frozen=True)
class Line:
    """A row: a behaviour's case, on systems that are alike but for the axis.

    Attributes:
        rest: the other parts that not all systems have in common: part -> value.
        cells: column's value -> cell. A row that has no part of the axis has its one cell in
            *only*: it is the same whatever the column.
    """

    behaviour: str
    case: str
    rest: dict[str, str]
    cells: dict[str, Entry]
    only: Entry | None = None

    @property
    def entries(self) -> list[Entry]:
        """All its cells."""
        return [*self.cells.values(), *([self.only] if self.only else [])]

    @property
    def figure(self) -> tuple[str, str] | None:
        """Name and unit of the measure that says most: the one that the test took first."""
        found = [figure for entry in self.entries for figure in entry.figures]
        return (found[0].name, found[0].unit) if found else None


@dataclass(frozen=True)
class Grid:
    """The table of one axis."""

    axis: str
    columns: list[Column]
    lines: list[Line]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Names above the columns, and how many columns each spans."""
        found: list[tuple[str, int]] = []
        for column in self.columns:
            if found and found[-1][0] == column.group:
                found[-1] = (column.group, found[-1][1] + 1)
            else:
                found.append((column.group, 1))
        return found


def varying(entries: Iterable[Entry]) -> list[str]:
    """The parts that not all systems have in common, in the order of :data:`AXES`."""
    values = _values(entries)
    return [axis for axis in AXES if len(values[axis]) > 1]


def common(entries: Iterable[Entry]) -> dict[str, str]:
    """Part -> value that all systems with such a part have."""
    values = _values(entries)
    return {axis: next(iter(values[axis])) for axis in AXES if len(values[axis]) == 1}


def grids(entries: Sequence[Entry]) -> list[Grid]:
    """The tables: of frameworks if there are any, and of each other part that varies."""
    values = _values(entries)
    wanted = [axis for axis in AXES if len(values[axis]) > (0 if axis == "framework" else 1)]
    return [grid(entries, axis) for axis in wanted or ["kubernetes"]]


def grid(entries: Sequence[Entry], axis: str) -> Grid:
    """The table with the values of *axis* as columns."""
    others = [part for part in varying(entries) if part != axis]
    rows: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Entry]] = {}
    for entry in entries:
        parts = entry.system._asdict()
        rest = tuple((part, parts[part]) for part in others if parts[part] is not None)
        rows.setdefault((entry.behaviour, entry.case, rest), []).append(entry)
    columns = [_column(axis, value) for value in _values(entries)[axis]]
    lines = []
    for (behaviour, case, rest), found in rows.items():
        cells = {value: e for e in found if (value := getattr(e, axis)) is not None}
        only = next((e for e in found if getattr(e, axis) is None), None)
        lines.append(Line(behaviour, case, dict(rest), cells, only))
    return Grid(axis, sorted(columns, key=_order), lines)


def label(value: str) -> str:
    """``torch:2.8.0`` as people write it: ``PyTorch 2.8.0``."""
    name, colon, version = value.partition(":")
    return f"{NAMES.get(name, name)} {version}" if colon and "@" not in name else value


def _values(entries: Iterable[Entry]) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {axis: {} for axis in AXES}
    for entry in entries:
        for axis in AXES:
            if (value := getattr(entry, axis)) is not None:
                found[axis][value] = None
    return found


def _column(axis: str, value: str) -> Column:
    name, colon, version = value.partition(":")
    if "@" in name:  # somebody's own build: NAME@image:REF
        name, _, version = value.partition("@")
    elif not colon:
        name, version = axis, value
    return Column(value, NAMES.get(name, name), version or value)


def _order(column: Column) -> tuple[int, str, int, Version, str]:
    group = 0 if column.group == "PyTorch" else 1
    try:
        return (group, column.group, 0, Version(column.label), column.label)
    except InvalidVersion:
        return (group, column.group, 1, Version("0"), column.label)
