"""The table of a report: cells with their outcomes and figures, and where they come from.

``report.json`` is this, and its form is public (``schemas/report.v1.json``). It is derived from
results and small: what it leaves out (violations, command lines) stays in the results.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from oracles.catalogue import catalogue
from oracles.errors import UsageError
from oracles.known import known
from oracles.merging import Merged, load
from oracles.outcome import Outcome
from oracles.results import Attempt, Cell, Host, Run, System, cells
from oracles.strict import Strict, problems
from reports.changes import Change
from reports.notes import Note

FORMAT = "report.v1"
SCHEMA = Path(__file__).parent / "schemas" / f"{FORMAT}.json"
#: attempts below which a cell says how few they are
FEW = 3
#: characters of a reason that are kept: the rest is in the evidence
REASON = 300


class Spread(Strict):
    """How figures lie."""

    attempts: int = Field(ge=1)
    min: float
    median: float
    max: float


class Figure(Spread):
    """A measure over a cell's attempts. Attempts that did not come to measuring are not in it."""

    name: str
    unit: str


class Try(Strict):
    """One attempt. *seconds*: of the test's body; *evidence*: below the run's folder."""

    run: str
    attempt: int
    outcome: Outcome
    seconds: float | None = None
    reason: str = ""
    evidence: list[str] = Field(default_factory=list)


class Entry(Strict):
    """One cell: a behaviour's case on one system.

    Attributes:
        counts: outcome -> attempts that had it. Several: the cell is mixed.
        known: id of the published fault that showed, or that was expected and did not.
        link: where that fault was published.
        gone: a published fault was expected, and showed in no attempt.
        reason: why the outcome is not PASS, from the first attempt that had it.
    """

    behaviour: str
    case: str = ""
    provider: str
    kubernetes: str
    operator: str | None = None
    scheduler: str | None = None
    framework: str | None = None
    outcome: Outcome
    counts: dict[Outcome, int]
    known: str | None = None
    link: str | None = None
    gone: bool = False
    reason: str = ""
    seconds: Spread | None = None
    figures: list[Figure] = Field(default_factory=list)
    tries: list[Try] = Field(default_factory=list)

    @property
    def name(self) -> str:
        """Behaviour and case."""
        return f"{self.behaviour} {self.case}".strip()

    @property
    def system(self) -> System:
        """What it is about."""
        return System(self.provider, self.kubernetes, self.operator, self.scheduler, self.framework)

    @property
    def key(self) -> tuple[str, str, System]:
        """What tells it from all others."""
        return (self.behaviour, self.case, self.system)

    @property
    def attempts(self) -> int:
        """How often it was tried."""
        return sum(self.counts.values())

    @property
    def judged(self) -> int:
        """How often the system under test was really put to the test."""
        return sum(number for outcome, number in self.counts.items() if outcome.judged)

    @property
    def failed(self) -> int:
        """How many attempts failed in a way that nobody expects."""
        return self.counts.get(Outcome.FAIL, 0)

    @property
    def mixed(self) -> bool:
        """Whether its attempts did not all end alike."""
        return len(self.counts) > 1

    @property
    def few(self) -> bool:
        """Whether its attempts are too few to say how often it goes one way."""
        return self.attempts < FEW and self.outcome is not Outcome.NOT_APPLICABLE


class Origin(Strict):
    """A run that the table is made from; *started* and *ended* are UTC, as results have them."""

    id: str
    started: str
    ended: str | None
    seed: int
    provider: str
    topology: str
    host: Host
    versions: dict[str, str]


class Report(Strict):
    """The table, with what is said about it.

    Attributes:
        made: when, UTC.
        before: when the report was made that *changes* compares with; None: with none.
        not_run: behaviours of the catalogue without a single attempt.
    """

    format: str = Field(default=FORMAT, pattern=f"^{FORMAT}$")
    title: str
    made: str
    runs: list[Origin]
    entries: list[Entry]
    notes: list[Note] = Field(default_factory=list)
    before: str | None = None
    changes: list[Change] = Field(default_factory=list)
    not_run: list[str] = Field(default_factory=list)

    @property
    def totals(self) -> dict[Outcome, int]:
        """Outcome -> cells that have it."""
        found = [entry.outcome for entry in self.entries]
        return {outcome: found.count(outcome) for outcome in Outcome if outcome in found}


def entries(attempts: Iterable[Attempt]) -> list[Entry]:
    """The cells of *attempts*, in the order of behaviour, case and system."""
    return [_entry(cell) for cell in cells(attempts)]


def of(merged: Merged, *, title: str, made: datetime | None = None) -> Report:
    """The table of merged results, without notes and changes."""
    found = entries(merged.attempts)
    seen = {entry.behaviour for entry in found}
    return Report(
        title=title,
        made=(made or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        runs=[_origin(run) for run in merged.runs],
        entries=found,
        not_run=[b.id for b in catalogue().behaviours if b.id not in seen],
    )


def read(path: Path) -> Report:
    """A ``report.json``, or the table of results (a run's folder, a file, a merged file).

    Raises:
        UsageError: there is none, or it breaks its schema.
    """
    file = path / "report.json" if (path / "report.json").exists() else path
    if file.suffix == ".json" and file.is_file():
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{file} is not JSON: {error}") from error
        if isinstance(data, dict) and data.get("format") == FORMAT:
            try:
                return Report.model_validate(data)
            except ValidationError as error:
                raise UsageError(
                    f"{file} does not follow {SCHEMA.name}:\n{problems(error)}"
                ) from error
    merged = load(path)
    last = max((run.ended or run.started for run in merged.runs), default="1970-01-01T00:00:00Z")
    return of(merged, title="Results", made=datetime.fromisoformat(last))


def text(report: Report) -> str:
    """The report as JSON: a run and a cell per line, what is as usual left out."""
    data = report.model_dump(mode="json", exclude={"runs", "entries"})
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
    for key, items in (("runs", report.runs), ("entries", report.entries)):
        rows = [json.dumps(item.model_dump(mode="json", exclude_defaults=True)) for item in items]
        lines.append(f' "{key}": [' + ",".join(f"\n  {row}" for row in rows) + "\n ]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def schema() -> dict[str, Any]:
    """The JSON schema of the model; ``schemas/report.v1.json`` is this, kept for readers."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"muster/{SCHEMA.name}",
        **Report.model_json_schema(),
    }


def _entry(cell: Cell) -> Entry:
    worst = next(a for a in cell.attempts if a.outcome is cell.outcome)
    showed = [a for a in cell.attempts if a.outcome is Outcome.KNOWN]
    expected = next((a.known for a in [*showed, *cell.attempts] if a.known), None)
    link = next((e.link for e in known().entries if e.id == expected), None)
    return Entry(
        behaviour=cell.behaviour,
        case=cell.case,
        **cell.system._asdict(),
        outcome=cell.outcome,
        counts=cell.counts,
        known=expected,
        link=link,
        gone=expected is not None and not showed,
        reason="" if cell.outcome is Outcome.PASS else _short(worst.reason),
        seconds=_spread(cell.durations),
        figures=[
            Figure(name=name, unit=unit, **_values(values))
            for (name, unit), values in cell.measures.items()
        ],
        tries=[
            Try(
                run=a.run,
                attempt=number,
                outcome=a.outcome,
                seconds=a.duration_s,
                reason=_short(a.reason) if a.outcome is not Outcome.PASS else "",
                evidence=a.evidence,
            )
            for number, a in enumerate(cell.attempts, 1)
        ],
    )


def _origin(run: Run) -> Origin:
    return Origin.model_validate(run.model_dump(exclude={"command"}))


def _spread(values: Sequence[float]) -> Spread | None:
    return Spread(**_values(values)) if values else None


def _values(values: Sequence[float]) -> dict[str, Any]:
    return {
        "attempts": len(values),
        "min": round(min(values), 3),
        "median": round(statistics.median(values), 3),
        "max": round(max(values), 3),
    }


def _short(reason: str) -> str:
    reason = reason.strip()
    return reason if len(reason) <= REASON else reason[: REASON - 1].rstrip() + "…"
