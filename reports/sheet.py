"""The table as CSV, one line per cell and figure: what spreadsheets and data frames want.

Each cell has a line for the figure ``duration``, also if it never ran: these lines are the cells.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from oracles.outcome import Outcome
from reports.table import Entry, Spread

_PARTS = ("behaviour", "case", "provider", "kubernetes", "operator", "scheduler", "framework")
#: an outcome's column says how many attempts had it
HEAD = (
    *_PARTS, "outcome", "attempts", *Outcome, "known", "link",
    "figure", "unit", "measured", "min", "median", "max",
)  # fmt: skip


def text(entries: Iterable[Entry]) -> str:
    """The CSV file (RFC 4180, but lines end as everywhere here)."""
    buffer = io.StringIO()
    out = csv.writer(buffer, lineterminator="\n")
    out.writerow(HEAD)
    for entry in entries:
        cell = [
            *(getattr(entry, part) or "" for part in _PARTS),
            entry.outcome,
            entry.attempts,
            *(entry.counts.get(outcome, 0) for outcome in Outcome),
            entry.known or "",
            entry.link or "",
        ]
        out.writerow([*cell, "duration", "s", *_values(entry.seconds)])
        for figure in entry.figures:
            out.writerow([*cell, figure.name, figure.unit, *_values(figure)])
    return buffer.getvalue()


def _values(spread: Spread | None) -> list[object]:
    if spread is None:
        return [0, "", "", ""]
    return [spread.attempts, spread.min, spread.median, spread.max]
