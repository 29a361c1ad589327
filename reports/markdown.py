"""The report as Markdown: its first table fits into a README or release notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oracles.outcome import Outcome
from reports import axes, changes, timing, words
from reports.axes import Grid, Line
from reports.changes import counted
from reports.table import FEW, Entry, Report


def text(report: Report) -> str:
    """The whole report."""
    entries = report.entries
    lines = [f"# {report.title}", "", *_head(report), ""]
    if report.before is not None:
        lines += _changes(report)
    made = axes.grids(entries)
    for grid in made if entries else []:
        lines += _grid(report, grid, heading=len(made) > 1)
    lines += _legend(report)
    lines += _notes(report)
    lines += _why(entries)
    lines += _figures(entries)
    lines += _time(entries)
    lines += _runs(report)
    if report.not_run:
        lines += ["## Not run", "", *_wrapped_list(report.not_run), ""]
    return "\n".join(lines).rstrip() + "\n"


def cell(entry: Entry | None, figure: tuple[str, str] | None, notes: str = "") -> str:
    """A cell in a few words: ``PASS · 34.9 s · ×3``."""
    if entry is None:
        return ""
    known = entry.known if entry.outcome is Outcome.KNOWN or entry.gone else None
    outcome = counted(entry.counts) if entry.mixed else str(entry.outcome)
    named = f"[{known}]({entry.link})" if known and entry.link else known
    if named and entry.gone:
        named = f"{named} is gone"
    found = words.figure_of(entry, figure)
    measure = words.measured(found) if found else None
    times = None if entry.outcome is Outcome.NOT_APPLICABLE else f"×{entry.attempts}"
    return " · ".join(filter(None, [outcome, named, measure, times])) + notes


def _head(report: Report) -> list[str]:
    common = words.parts(axes.common(report.entries))
    lines = [f"{words.totals(report)}."]
    if common:
        lines.append(f"On {common}.")
    if report.runs:
        number = f"{len(report.runs)} run{'' if len(report.runs) == 1 else 's'}"
        lines.append(f"{number}, {words.days(report)}, on {words.machines(report)}.")
    return [" ".join(lines)]


def _grid(report: Report, grid: Grid, *, heading: bool) -> list[str]:
    """The table of an axis, and one of the rows that are the same whatever the column."""
    lines = [f"## By {grid.axis}", ""] if heading else []
    varied = [line for line in grid.lines if line.cells]
    if varied:
        head = ["behaviour", *(f"{column.group} {column.label}" for column in grid.columns)]
        lines += _rows(head, [_row(report, grid, line) for line in varied])
    alone = [line for line in grid.lines if line.only]
    if alone:
        rows = [(_name(grid, line), _cell(report, line, line.only)) for line in alone]
        lines += _rows(("behaviour", f"without a {grid.axis}"), rows)
    return lines


def _row(report: Report, grid: Grid, line: Line) -> list[str]:
    shown = [_name(grid, line)]
    for column in grid.columns:
        entry = line.cells.get(column.value)
        missing = words.NOT_RUN if _asked(grid, line.cells, column.group) else ""
        shown.append(_cell(report, line, entry) if entry else missing)
    return shown


def _name(grid: Grid, line: Line) -> str:
    measure = f" ({line.figure[0]})" if line.figure else ""
    return f"**{words.row(line, grid.axis)}** {words.title_of(line.behaviour)}{measure}"


def _cell(report: Report, line: Line, entry: Entry | None) -> str:
    return cell(entry, line.figure, _marks(report, entry))


def _asked(grid: Grid, cells: dict[str, Entry], group: str) -> bool:
    """Whether a row has anything in a group of columns: TensorFlow is not asked of a PyTorchJob."""
    return any(column.group == group and column.value in cells for column in grid.columns)


def _marks(report: Report, entry: Entry | None) -> str:
    found = [f"[^{n}]" for n in notes_of(report, entry)] if entry else []
    return "".join(found)


def notes_of(report: Report, entry: Entry) -> list[int]:
    """Numbers of the notes about a cell."""
    return [n for n, note in enumerate(report.notes, 1) if words.meets(note, entry)]


def _legend(report: Report) -> list[str]:
    lines = [f"{o}: {words.MEANING[o]}." for o in report.totals]
    if any(entry.few for entry in report.entries):
        lines.append(f"×1, ×2: fewer than {FEW} attempts, which say little.")
    if any(entry.figures for entry in report.entries):
        lines.append("Figures are medians (minimum–maximum).")
    return [" ".join(lines), ""] if lines else []


def _changes(report: Report) -> list[str]:
    lines = [f"## Since the report of {report.before}", ""]
    if not report.changes:
        return [*lines, "Nothing changed.", ""]
    varies = axes.varying(report.entries) or ["framework"]
    rows = [(words.KINDS[c.kind], *words.of_change(c, varies)) for c in report.changes]
    return [*lines, *_rows(("", "cell", "change"), rows)]


def _notes(report: Report) -> list[str]:
    if not report.notes:
        return []
    lines = ["## Notes", ""]
    for number, note in enumerate(report.notes, 1):
        evidence = f" Evidence: {', '.join(note.evidence)}." if note.evidence else ""
        lines.append(f"[^{number}]: {note.words}: {' '.join(note.text.split())}{evidence}")
    return [*lines, ""]


def _why(entries: Sequence[Entry]) -> list[str]:
    told = [e for e in entries if e.outcome is not Outcome.PASS or e.gone]
    if not told:
        return []
    varies = axes.varying(entries)
    rows = [
        (
            e.name,
            words.parts({part: getattr(e, part) for part in varies}),
            counted(e.counts),
            e.reason or (f"the known fault {e.known} did not show" if e.gone else ""),
            words.rate(e) if e.failed and e.mixed else "",
            ", ".join(f"{t.run}/{path}" for t in e.tries for path in t.evidence),
        )
        for e in told
    ]
    head = ("behaviour", "system", "outcome", "why", "how often", "evidence")
    return ["## What did not pass, and why", "", *_rows(head, rows)]


def _figures(entries: Sequence[Entry]) -> list[str]:
    measured = [(entry, figure) for entry in entries for figure in entry.figures]
    if not measured:
        return []
    varies = axes.varying(entries)
    rows = [
        (
            entry.name,
            words.parts({part: getattr(entry, part) for part in varies}),
            figure.name,
            figure.unit,
            figure.attempts,
            *(changes.number(v) for v in (figure.min, figure.median, figure.max)),
        )
        for entry, figure in measured
    ]
    head = ("behaviour", "system", "figure", "unit", "attempts", "min", "median", "max")
    return ["## Figures", "", *_rows(head, rows)]


def _time(entries: Sequence[Entry]) -> list[str]:
    shares = timing.by_behaviour(entries)
    if not shares:
        return []
    varies = axes.varying(entries)
    each = [(s.behaviour, s.attempts, timing.seconds(s.seconds)) for s in shares]
    slow = [
        (
            e.name,
            words.parts({part: getattr(e, part) for part in varies}),
            timing.seconds(t.seconds or 0),
        )
        for e, t in timing.slowest(entries)
    ]
    return [
        "## Time", "",
        *_rows(("behaviour", "attempts", "time"), each),
        f"The slowest {len(slow)} attempts:", "",
        *_rows(("behaviour", "system", "time"), slow),
    ]  # fmt: skip


def _runs(report: Report) -> list[str]:
    rows = [
        (
            run.id,
            run.started + ("" if run.ended else " (did not end)"),
            run.seed,
            words.machine(run),
            ", ".join(f"{name} {version}" for name, version in run.versions.items()),
        )
        for run in report.runs
    ]
    return ["## Runs", "", *_rows(("run", "started (UTC)", "seed", "machine", "versions"), rows)]


def _wrapped_list(ids: Sequence[str]) -> list[str]:
    width = 16
    return [
        ", ".join(ids[i : i + width]) + ("," if ids[i + width :] else ".")
        for i in range(0, len(ids), width)
    ]


def _rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    def line(values: Sequence[object]) -> str:
        texts = (str(v).replace("|", "\\|").replace("\n", "<br>") for v in values)
        return f"| {' | '.join(texts)} |"

    return [line(head), line(["---"] * len(head)), *map(line, rows), ""]
