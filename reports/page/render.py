"""The template, with styles, script and texts put into it.

Everything that the page says is in its HTML: the script only filters, sorts and brings a cell's
details to where the eye is.
"""

from __future__ import annotations

from itertools import groupby

from oracles.catalogue import GROUPS, catalogue
from oracles.outcome import Outcome
from reports import axes, changes, markdown, timing, words
from reports.axes import Grid, Line
from reports.links import Links
from reports.table import FEW, Report
from reports.templating import read, template

#: what a reader looks for first when rows are sorted by outcome
_RANK = (
    Outcome.FAIL,
    Outcome.INCONCLUSIVE,
    Outcome.KNOWN,
    Outcome.PASS,
    Outcome.NOT_APPLICABLE,
)
_SIGNS = {
    Outcome.PASS: "✓",
    Outcome.FAIL: "✕",
    Outcome.INCONCLUSIVE: "?",
    Outcome.NOT_APPLICABLE: "–",
    Outcome.KNOWN: "!",
}


def html(report: Report, links: Links) -> str:
    """The page as text."""
    entries = report.entries
    varies = axes.varying(entries)
    numbers = {entry.key: number for number, entry in enumerate(entries, 1)}
    changed: dict[object, changes.Change] = {}
    for change in report.changes:
        changed.setdefault(change.key, change)
    return template("reports.page", "page.html.jinja").render(
        report=report,
        grids=axes.grids(entries) if entries else [],
        sections=_sections,
        varies=varies,
        choices={part: _choices(report, part) for part in varies},
        named={axis: words.axis(axis, report.entries) for axis in axes.AXES},
        common=words.parts(axes.common(entries)),
        number_of=lambda entry: numbers[entry.key],
        change_of=lambda entry: changed.get(entry.key),
        number_at=lambda c: numbers.get(c.key),
        notes_of=lambda entry: markdown.notes_of(report, entry),
        links=links,
        words=words,
        timing=timing,
        rank=_RANK.index,
        signs=_SIGNS,
        few=FEW,
        short=changes.number,
        label=axes.label,
        counted=changes.counted,
        not_run=[b for b in catalogue().behaviours if b.id in report.not_run],
        styles=read("reports.page", "page.css"),
        script=read("reports.page", "page.js"),
    )


def _sections(grid: Grid) -> list[tuple[str, list[Line]]]:
    """The lines by group of behaviours, in the catalogue's order."""
    order = list(GROUPS)
    lines = sorted(
        grid.lines,
        key=lambda line: order.index(line.behaviour[0]) if line.behaviour[0] in order else 99,
    )
    return [
        (GROUPS.get(letter, letter), list(found))
        for letter, found in groupby(lines, key=lambda line: line.behaviour[0])
    ]


def _choices(report: Report, part: str) -> list[str]:
    return [column.value for column in axes.grid(report.entries, part).columns]
