"""The report for a terminal: the first table, and where the time went."""

from __future__ import annotations

import io
from collections.abc import Sequence

from reports import axes, timing, words
from reports.changes import counted
from reports.table import Entry, Report

#: columns of a terminal; wider ones are rare in logs
WIDTH = 110


def text(report: Report) -> str:
    """Cells, the slowest attempts, changes."""
    entries = report.entries
    varies = axes.varying(entries)
    shared = words.parts(axes.common(entries))
    lines = [f"On {shared}."] if shared else []
    lines += _table(
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
    lines += _time(entries, varies)
    if report.before is not None:
        lines += _changes(report, varies)
    return "\n".join([*lines, words.totals(report)])


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
        f"time: {timing.seconds(whole)}: {told}",
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
