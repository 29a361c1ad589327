"""Disturbances of an elastic job, as cells of a table.

A cell says what is done to one of the job's agents, and when::

    signal   kill | term | stop         to the process; of a deleted pod, by its kubelet
    target   host | other               worker 0, where a c10d rendezvous is hosted, or worker 1
    process  agent | worker             torchrun itself, or the training process that it started
    pod      kept | grace | gone        stays; deleted with, or without, time to end: also without,
                                        kubelets tell it to stop, and kill it 2 s later
    moment   rest | rendezvous | shrink while it trains; while agents meet, because one was added;
                                        while the highest worker is taken away
    backend  c10d | etcd                where agents meet

``core.yaml`` has a set of cells in which every legal pair of values of two columns occurs. The full
cross is run when ``MUSTER_FULL_CROSS=1`` is in the environment.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import yaml

from oracles.errors import UsageError

CORE = Path(__file__).with_name("core.yaml")
#: in the environment, ``1`` asks for every legal cell instead of the core
FULL_CROSS = "MUSTER_FULL_CROSS"

VALUES: dict[str, tuple[str, ...]] = {
    "signal": ("kill", "term", "stop"),
    "target": ("host", "other"),
    "process": ("agent", "worker"),
    "pod": ("kept", "grace", "gone"),
    "moment": ("rest", "rendezvous", "shrink"),
    "backend": ("c10d", "etcd"),
}
#: two columns with their values
Pair = tuple[tuple[str, str], tuple[str, str]]


@dataclass(frozen=True)
class Cell:
    """One disturbance; see the head of this module."""

    signal: str
    target: str
    process: str
    pod: str
    moment: str
    backend: str

    @property
    def id(self) -> str:
        """Its name in results: ``kill-host-agent-kept-rest-c10d``."""
        return "-".join(astuple(self))

    @property
    def behaviour(self) -> str:
        """The promise that it tries: the most special one that speaks of it."""
        if self.moment == "shrink":
            return "E04"
        if self.signal == "stop":
            return "E09"
        if self.process == "worker":
            return "E08"
        if self.target == "host" and self.backend == "c10d":
            return "E07"
        return "E06" if self.signal == "term" else "E05"

    @property
    def illegal(self) -> str:
        """Why there is no such disturbance; "" for one that there is."""
        if self.moment == "rendezvous" and self.process == "worker":
            return "while agents meet there are no worker processes"
        if self.pod == "gone" and (self.signal, self.process) != ("kill", "agent"):
            return "a pod deleted without grace is killed within 2 s, whatever came before"
        if self.pod == "grace" and self.signal == "kill":
            return "a pod deleted with grace is told to stop (or was frozen, and cannot)"
        if self.pod == "grace" and self.signal == "term" and self.process == "worker":
            return "a pod deleted with grace has its first process told, which is the agent"
        return ""

    def pairs(self) -> Iterator[Pair]:
        """All pairs of its columns' values."""
        yield from itertools.combinations(zip(VALUES, astuple(self), strict=True), 2)


def cross() -> list[Cell]:
    """Every legal cell."""
    cells = (Cell(*values) for values in itertools.product(*VALUES.values()))
    return [cell for cell in cells if not cell.illegal]


def pairs(cells: Iterable[Cell]) -> set[Pair]:
    """The pairs that occur in *cells*."""
    return {pair for cell in cells for pair in cell.pairs()}


def pairwise(cells: Sequence[Cell]) -> list[Cell]:
    """Few of *cells*, in which all of their pairs occur; the same ones every time.

    Greedy: always the cell that has most pairs which none before it has.
    """
    missing, chosen = pairs(cells), []
    while missing:
        best = max(cells, key=lambda cell: len(missing.intersection(cell.pairs())))
        missing.difference_update(best.pairs())
        chosen.append(best)
    return chosen


def core() -> list[Cell]:
    """The cells of ``core.yaml``.

    Raises:
        UsageError: a line there is no legal cell.
    """
    found = []
    for line in yaml.safe_load(CORE.read_text()):
        parts = str(line).split("-")
        if len(parts) != len(VALUES) or any(
            part not in VALUES[field.name] for part, field in zip(parts, fields(Cell), strict=False)
        ):
            raise UsageError(f"{CORE.name}: {line!r} is no cell")
        cell = Cell(*parts)
        if cell.illegal:
            raise UsageError(f"{CORE.name}: {line}: {cell.illegal}")
        found.append(cell)
    return found


def selected() -> list[Cell]:
    """The cells that this run is to try: the core, or all when ``MUSTER_FULL_CROSS=1``."""
    wanted = os.environ.get(FULL_CROSS, "")
    if wanted not in ("", "0", "1"):
        raise UsageError(f"{FULL_CROSS}={wanted!r}", hint="1 for every cell, or leave it out")
    return cross() if wanted == "1" else core()


def write_core() -> None:
    """Make ``core.yaml`` anew: ``python -m suites.elastic.cells``, after a change of the table."""
    head = (
        "# The disturbances that every run of the elastic suite tries: a set in which each legal\n"
        "# pair of two columns' values occurs. Made by `python -m suites.elastic.cells`;\n"
        "# the columns are explained in cells.py.\n"
    )
    lines = "".join(f"- {cell.id}\n" for cell in sorted(pairwise(cross()), key=lambda c: c.id))
    CORE.write_text(head + lines)


if __name__ == "__main__":
    write_core()
