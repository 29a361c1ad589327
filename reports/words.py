"""The same words for the same things in all forms of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oracles.catalogue import catalogue
from oracles.errors import UsageError
from oracles.outcome import Outcome
from reports.axes import AXES, NAMES, Line, label
from reports.changes import Change, spread
from reports.gate.bounds import upper
from reports.notes import Pattern
from reports.table import Entry, Figure, Origin, Report

MEANING = {
    Outcome.PASS: "the promise was kept",
    Outcome.FAIL: "the system under test broke it",
    Outcome.INCONCLUSIVE: "the harness cannot say",
    Outcome.NOT_APPLICABLE: "the system, or the provider, does not promise it",
    Outcome.KNOWN: "it broke as a published upstream fault says",
}
KINDS = {
    "worse": "worse",
    "better": "better",
    "changed": "changed",
    "figure": "figures",
    "new": "new",
    "gone": "not run this time",
}
NOT_RUN = "not run"


def title_of(behaviour: str) -> str:
    """A behaviour's title; "" for one that the catalogue no longer has."""
    try:
        return catalogue().get(behaviour).title
    except UsageError:
        return ""


def level_of(behaviour: str) -> str:
    """MUST, SHOULD or MAY."""
    try:
        return catalogue().get(behaviour).level
    except UsageError:
        return ""


def meets(note: Pattern, entry: Entry) -> bool:
    """Whether a note is about a cell."""
    return note.meets({"behaviour": entry.behaviour, "case": entry.case, **entry.system._asdict()})


def attempts(number: int) -> str:
    """``1 attempt``, ``3 attempts``."""
    return f"{number} attempt{'' if number == 1 else 's'}"


def figure_of(entry: Entry, wanted: tuple[str, str] | None) -> Figure | None:
    """The entry's figure of that name and unit."""
    return next((f for f in entry.figures if (f.name, f.unit) == wanted), None)


def unit(text: str) -> str:
    """A unit as it stands behind a figure: ``1`` is none."""
    return "" if text == "1" else f" {text}"


def measured(figure: Figure) -> str:
    """``34.9 s``, ``33 (31–36) s``."""
    return spread(figure) + unit(figure.unit)


def rate(entry: Entry) -> str:
    """What the attempts say of how often it fails, with 95 % confidence; "" for nothing."""
    if not entry.judged or entry.failed == entry.judged:
        return ""
    bound = upper(entry.failed, entry.judged)
    return (
        f"{entry.failed} of {attempts(entry.judged)} failed: a failure rate of up to"
        f" {bound:.0%} fits (one-sided 95 % Clopper-Pearson bound)"
    )


def axis(name: str, entries: Sequence[Entry]) -> str:
    """A part of a system, as a heading."""
    if name == "framework":
        found = {(entry.framework or "torch").partition(":")[0] for entry in entries}
        if len(found) == 1:
            return NAMES.get(found.pop(), name)
    return name.capitalize()


def parts(system: Mapping[str, str | None], without: str = "") -> str:
    """A system's parts in one line."""
    found = [(part, system.get(part)) for part in AXES if part != without]
    return " · ".join(
        f"Kubernetes {value}" if part == "kubernetes" else label(value)
        for part, value in found
        if value
    )


def of_change(change: Change, varies: list[str]) -> tuple[str, str]:
    """Which cell, and what happened to it."""
    shown = {part: getattr(change, part) for part in varies}
    cell = " on ".join(filter(None, [change.name, parts(shown)]))
    if change.kind == "new":
        return cell, change.after
    if change.kind == "gone":
        return cell, f"was {change.before}"
    what = "" if change.what == "outcome" else f"{change.what}: "
    return cell, f"{what}{change.before} → {change.after}"


def machine(run: Origin) -> str:
    """The machine of a run."""
    return f"{run.host.cpus} CPUs, {run.host.memory / 2**30:.0f} GiB, {run.host.os}"


def machines(report: Report) -> str:
    """The machines of all runs, each once."""
    return "; ".join(dict.fromkeys(machine(run) for run in report.runs))


def days(report: Report) -> str:
    """The days on which the runs began."""
    found = sorted({run.started[:10] for run in report.runs})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}" if found else ""


def totals(report: Report) -> str:
    """How many cells have each outcome."""
    found = ", ".join(f"{number} {outcome}" for outcome, number in report.totals.items())
    number = len(report.entries)
    return f"{number} cell{'' if number == 1 else 's'}: {found or 'nothing was run'}"


def row(line: Line, without: str) -> str:
    """A row's name, with those parts of its systems that not all have in common."""
    return " · ".join(
        filter(None, [f"{line.behaviour} {line.case}".strip(), parts(line.rest, without)])
    )
