"""Whether a run is as it has to be: no promise newly broken, nothing left out, no surprise.

A run is green only if there is no reason against it; what is not known counts against it. Adding
a failed attempt to a run can therefore never make it green.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase

from oracles.outcome import ExitCode, Outcome
from oracles.results import Run
from reports import words
from reports.changes import counted
from reports.gate.bounds import lower
from reports.gate.expectations import Expectations, Expected, Quarantine
from reports.table import Entry


class Kind(StrEnum):
    """Why a run is not green, the gravest first."""

    REGRESSION = "passed before, and no longer does"
    FAILED = "failed"
    FLAKY = "quarantined, and fails more than it may"
    EXPIRED = "quarantine expired"
    VANISHED = "known fault gone"
    UNREADABLE = "no results"
    INTERRUPTED = "did not end"
    INCONCLUSIVE = "inconclusive"
    MISSING = "expected, and not judged"

    @property
    def exit_code(self) -> ExitCode:
        """What the gate ends with for this alone."""
        behaviours = (Kind.REGRESSION, Kind.FAILED, Kind.FLAKY, Kind.EXPIRED, Kind.VANISHED)
        return ExitCode.BEHAVIOURS if self in behaviours else ExitCode.INFRASTRUCTURE


@dataclass(frozen=True)
class Reason:
    """One reason. *what*: a sentence; *next*: where to look, or what to do."""

    kind: Kind
    what: str
    next: str


@dataclass(frozen=True)
class Verdict:
    """All reasons, the gravest first, and what is worth saying of a green run too."""

    reasons: list[Reason]
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> ExitCode:
        """0 green, 1 behaviours, 3 nobody can tell."""
        codes = {reason.kind.exit_code for reason in self.reasons}
        if ExitCode.BEHAVIOURS in codes:
            return ExitCode.BEHAVIOURS
        return ExitCode.INFRASTRUCTURE if codes else ExitCode.OK


def judge(
    runs: Iterable[Run],
    entries: Sequence[Entry],
    expectations: Expectations,
    *,
    matrix: str,
    today: date,
    last: Sequence[Entry] = (),
    unreadable: Iterable[str] = (),
) -> Verdict:
    """Judge a run, or several that belong together.

    Args:
        matrix: which systems have to be in it, by its name in the expectations.
        last: cells of the last report.
        unreadable: files that could not be read, in words.

    Raises:
        UsageError: no such matrix.
    """
    before = {entry.key: entry for entry in last}
    reasons = [
        Reason(Kind.UNREADABLE, text, "did the run start? its log is the place to look")
        for text in unreadable
    ]
    reasons += [
        Reason(Kind.INTERRUPTED, f"run {run.id} did not end: it was killed, or is still running",
               "run it again; what it did not come to is not known")
        for run in runs if run.ended is None
    ]  # fmt: skip
    notes = []
    for entry in entries:
        quarantine = expectations.quarantined(entry, today)
        reasons += _of_cell(entry, before.get(entry.key), quarantine, compared=bool(before))
        if entry.failed and entry.judged > entry.failed:
            notes.append(f"flake: {_cell(entry)}: {words.rate(entry)}")
        elif quarantine is not None and not entry.failed:
            notes.append(f"in quarantine until {quarantine.until}, and passed: {_cell(entry)}")
        if entry.outcome is Outcome.KNOWN and _passed(before.get(entry.key)):
            notes.append(f"passed in the last report, and is {entry.known} now: {_cell(entry)}")
    reasons += [
        Reason(Kind.EXPIRED, f"the quarantine of {q.words} ended on {q.until}: {q.reason}",
               "mend it, or renew the entry with a reason")
        for q in expectations.quarantine if q.until < today
    ]  # fmt: skip
    systems = expectations.matrix(matrix)
    others = {entry.name for entry in entries}
    for expected in expectations.of(matrix):
        for case in expected.names:
            cells = [
                entry
                for entry in entries
                if entry.behaviour == expected.behaviour and fnmatchcase(entry.case, case)
            ]
            others -= {cell.name for cell in cells}
            reasons += _missing(expected, case, cells, systems)
    if others:
        notes.append(f"not in the expectations: {', '.join(sorted(others))}")
    return Verdict(sorted(reasons, key=lambda reason: list(Kind).index(reason.kind)), notes)


def _of_cell(
    entry: Entry, before: Entry | None, quarantine: Quarantine | None, *, compared: bool
) -> Iterable[Reason]:
    cell, evidence = _cell(entry), _evidence(entry)
    if entry.failed and quarantine is not None:
        yield from _flaky(entry, quarantine)
    elif entry.failed:
        kind, was = Kind.FAILED, " (not in the last report)" if compared else ""
        if _passed(before):
            kind, was = Kind.REGRESSION, " (passed in the last report)"
        elif before is not None:
            was = f" (in the last report: {counted(before.counts)})"
        often = f"{counted(entry.counts)}: " if entry.mixed else ""
        yield Reason(kind, f"{cell} fails{was}: {often}{_first_line(entry.reason)}", evidence)
    elif entry.outcome is Outcome.NOT_APPLICABLE and _passed(before):
        yield Reason(
            Kind.REGRESSION,
            f"{cell} passed in the last report and is NOT_APPLICABLE now:"
            f" {_first_line(entry.reason)}",
            evidence,
        )
    unsure = entry.counts.get(Outcome.INCONCLUSIVE, 0)
    if unsure:
        why = next(t.reason for t in entry.tries if t.outcome is Outcome.INCONCLUSIVE)
        yield Reason(
            Kind.INCONCLUSIVE,
            f"{cell}: {unsure} of {words.attempts(entry.attempts)} inconclusive:"
            f" {_first_line(why)}",
            evidence,
        )
    if entry.gone:
        yield Reason(
            Kind.VANISHED,
            f"{cell} passes, although {entry.known} says that it cannot",
            f"if upstream mended it, narrow the versions of {entry.known} in oracles/known.yaml",
        )


def _flaky(entry: Entry, quarantine: Quarantine) -> Iterable[Reason]:
    sure = lower(entry.failed, entry.judged)
    if entry.failed == entry.judged:
        yield Reason(
            Kind.FLAKY,
            f"{_cell(entry)} is quarantined as flaky, but did not pass once in"
            f" {words.attempts(entry.judged)}: {_first_line(entry.reason)}",
            f"more --attempts tell a flake from a fault; {_evidence(entry)}",
        )
    elif sure > quarantine.rate:
        yield Reason(
            Kind.FLAKY,
            f"{_cell(entry)} failed {entry.failed} of {words.attempts(entry.judged)}: at least"
            f" {sure:.0%} (95 % Clopper-Pearson), and {quarantine.rate:.0%} is put up with",
            _evidence(entry),
        )


def _missing(
    expected: Expected, case: str, cells: Sequence[Entry], systems: Sequence[dict[str, str]]
) -> Iterable[Reason]:
    name = f"{expected.behaviour} {'' if case == '*' else case}".strip()
    if not any(cell.judged for cell in cells):
        said = next((f": {_first_line(c.reason)}" for c in cells if c.reason), "")
        tried = f"was never judged ({counted(cells[0].counts)}{said})" if cells else "did not run"
        yield Reason(
            Kind.MISSING,
            f"{name} {tried}",
            f"the catalogue says: {words.title_of(expected.behaviour)}",
        )
        return
    # a behaviour without a framework is not asked for once per framework
    has = {part for cell in cells for part, value in cell.system._asdict().items() if value}
    wanted = {tuple(sorted((p, v) for p, v in system.items() if p in has)) for system in systems}
    for system in sorted(wanted):
        found = [c for c in cells if all(getattr(c, part) == value for part, value in system)]
        judged = max((cell.judged for cell in found), default=0)
        if judged < expected.attempts:
            where = words.parts(dict(system)) or "any system"
            yield Reason(
                Kind.MISSING,
                f"{name} was judged {judged} of {expected.attempts} times on {where}",
                "was it selected, and did it end?",
            )


def _passed(before: Entry | None) -> bool:
    return before is not None and before.outcome is Outcome.PASS


def _cell(entry: Entry) -> str:
    system = entry.framework or entry.scheduler
    return f"{entry.name} on {system}, kubernetes {entry.kubernetes}"


def _evidence(entry: Entry) -> str:
    found = [
        f"{t.run}/{path}" for t in entry.tries if t.outcome is entry.outcome for path in t.evidence
    ]
    return f"evidence: {found[0]}" if found else "it left no evidence"


def _first_line(reason: str) -> str:
    line = reason.strip().partition("\n")[0]
    return line if len(line) <= 160 else f"{line[:159]}…"
