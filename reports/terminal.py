"""The report for a terminal: the first table, and where the time went."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence

from oracles.outcome import Outcome
from reports import axes, timing, words
from reports.axes import Grid
from reports.changes import counted
from reports.table import Entry, Report

#: columns of a terminal; wider ones are rare in logs
WIDTH = 110
#: versions from which on they are columns
MANY = 3
_SHORT = {Outcome.NOT_APPLICABLE: "n/a", Outcome.INCONCLUSIVE: "INCONCL"}


def text(report: Report) -> str:
    """Cells, the slowest attempts, changes."""
    entries = report.entries
    varies = axes.varying(entries)
    shared = words.parts(axes.common(entries))
    lines = [f"On {shared}."] if shared else []
    grids = axes.grids(entries) if entries else []
    many = grids and len(grids[0].columns) >= MANY
    lines += _pivot(grids[0]) if many else _list(entries, varies)
    lines += _time(entries, varies)
    if report.before is not None:
        lines += _changes(report, varies)
    return "\n".join([*lines, words.totals(report)])


def _list(entries: Sequence[Entry], varies: list[str]) -> list[str]:
    """A row per cell."""
    return _table(
        ("behaviour", *varies, "outcome", "seconds (min/median/max)"),
        [
            (
                entry.name,
                *(getattr(entry, part) or "-" for part in varies),
                counted(entry.counts).replace(", ", "\n"),
                _seconds(entry),
            )
            for entry in entries
        ],
    )


def _pivot(grid: Grid) -> list[str]:
    """A row per behaviour's case, a column per version."""
    rows = []
    for line in grid.lines:
        cells = [line.cells.get(column.value) for column in grid.columns]
        shown = [_short(entry) if entry else words.NOT_RUN for entry in cells]
        if line.only and not line.cells:
            shown = [f"{_short(line.only)} (all)"] + [""] * (len(cells) - 1)
        rows.append((words.row(line, grid.axis), *shown))
    return _table(("behaviour", *(column.label for column in grid.columns)), rows)


def _short(entry: Entry) -> str:
    counts = {_SHORT.get(outcome, outcome): number for outcome, number in entry.counts.items()}
    if len(counts) == 1:
        return f"{next(iter(counts))} ×{entry.attempts}"
    return "\n".join(f"{number} {outcome}" for outcome, number in counts.items())


def changed(report: Report, other: str) -> str:
    """Only what changed since *other*."""
    return "\n".join(_changes(report, axes.varying(report.entries), other))


def _changes(report: Report, varies: list[str], other: str | None = None) -> list[str]:
    head = f"since {other or f'the report of {report.before}'}:"
    if not report.changes:
        return [f"{head} nothing changed"]
    rows = [(words.KINDS[c.kind], *words.of_change(c, varies)) for c in report.changes]
    return [head, *_table(None, rows)]


def _time(entries: Sequence[Entry], varies: list[str]) -> list[str]:
    shares = timing.by_behaviour(entries)
    if not shares:
        return []
    whole = sum(share.seconds for share in shares)
    told = ", ".join(f"{share.behaviour} {timing.seconds(share.seconds)}" for share in shares)
    rows = [
        (timing.seconds(each.seconds or 0.0), entry.name,
         words.parts({part: getattr(entry, part) for part in varies}), each.run)
        for entry, each in timing.slowest(entries)
    ]  # fmt: skip
    return [
        *textwrap.wrap(f"time: {timing.seconds(whole)}: {told}", WIDTH),
        f"the slowest {len(rows)}:",
        *_table(None, rows),
    ]


def _seconds(entry: Entry) -> str:
    if entry.seconds is None:
        return "-"
    found = entry.seconds
    values = (found.min, found.median, found.max) if found.attempts > 1 else (found.median,)
    return "/".join(f"{value:.4g}" for value in values)


def _table(head: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> list[str]:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=head is not None, padding=(0, 2, 0, 0))
    for name in head or [""] * max(map(len, rows), default=0):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    buffer = io.StringIO()
    Console(file=buffer, width=WIDTH, no_color=True, markup=False, highlight=False).print(table)
    return [line.rstrip() for line in buffer.getvalue().splitlines()]
