"""What a run recorded: ``results.json``, and ``attempts.jsonl`` while it is still running.

The form is public (``schemas/results.v1.json``, made from the models here). Attempts are stored
one by one; cells, counts and tables are derived from them, so that several files merge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from oracles.errors import UsageError
from oracles.outcome import Outcome, combine
from oracles.strict import Strict

FORMAT = "results.v1"
SCHEMA = Path(__file__).parent / "schemas" / f"{FORMAT}.json"
FINAL = "results.json"
RUNNING = "attempts.jsonl"


class Host(Strict):
    """The machine that the run was on. ``memory`` is in bytes."""

    cpus: int = Field(ge=1)
    memory: int = Field(ge=0)
    kernel: str
    os: str


class Run(Strict):
    """One run.

    Attributes:
        versions: of the harness and everything below it: ``muster``, ``python``, ``kubernetes``...
        started, ended: UTC, ISO 8601; *ended* is None while it runs, and after it was killed.
        command: the command line.
        seed: where every random choice came from.
    """

    id: str = Field(min_length=1)
    versions: dict[str, str]
    host: Host
    seed: int
    provider: str
    topology: str
    command: list[str]
    started: str
    ended: str | None = None


class Measure(Strict):
    """A named figure of an attempt, with its unit (``s``, ``steps``, ``1``)."""

    name: str = Field(min_length=1)
    value: float = Field(allow_inf_nan=False)
    unit: str = Field(min_length=1)


class Violation(Strict):
    """A broken promise. *events* are the sequence numbers in the history that prove it."""

    rule: str
    message: str
    events: list[int] = Field(default_factory=list)


class System(NamedTuple):
    """A system under test, as results name it: ``NAME:VERSION``; None where it has no part."""

    provider: str
    kubernetes: str
    operator: str | None
    scheduler: str | None
    framework: str | None

    def __str__(self) -> str:
        parts = [self.operator, self.scheduler, self.framework]
        named = [part for part in parts if part]
        return " + ".join([*named, f"kubernetes:{self.kubernetes}", self.provider])


class Attempt(Strict):
    """One try of one behaviour on one system.

    Attributes:
        case: which of a behaviour's cases; empty when there is one only.
        known: the id in ``known.yaml`` that the outcome KNOWN matched; for another outcome, the
            one that was expected and did not show.
        duration_s: seconds of the test's body, waits for a lease taken off; None: it did not run.
        evidence: paths relative to the run's folder.
    """

    run: str
    behaviour: str
    case: str = ""
    provider: str
    kubernetes: str
    operator: str | None = None
    scheduler: str | None = None
    framework: str | None = None
    attempt: int = Field(default=1, ge=1)
    outcome: Outcome
    reason: str = ""
    known: str | None = None
    measures: list[Measure] = Field(default_factory=list)
    violations: list[Violation] = Field(default_factory=list)
    duration_s: float | None = Field(default=None, ge=0)
    test: str
    evidence: list[str] = Field(default_factory=list)

    @property
    def system(self) -> System:
        """What the attempt was on."""
        return System(self.provider, self.kubernetes, self.operator, self.scheduler, self.framework)


class Results(Strict):
    """A results file."""

    format: str = Field(default=FORMAT, pattern=f"^{FORMAT}$")
    run: Run
    attempts: list[Attempt] = Field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the file; whoever reads it sees the old one or the new one, never a part."""
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n")
        partial.replace(path)


@dataclass(frozen=True)
class Cell:
    """All attempts of one behaviour's case on one system, over all runs that were merged."""

    behaviour: str
    case: str
    system: System
    attempts: tuple[Attempt, ...]

    @property
    def outcome(self) -> Outcome:
        """What the attempts mean together."""
        return combine(attempt.outcome for attempt in self.attempts)

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many attempts had each outcome; outcomes that none had are left out."""
        found = [attempt.outcome for attempt in self.attempts]
        return {outcome: found.count(outcome) for outcome in Outcome if outcome in found}

    @property
    def durations(self) -> list[float]:
        """Seconds of each attempt that ran, shortest first."""
        return sorted(a.duration_s for a in self.attempts if a.duration_s is not None)

    @property
    def measures(self) -> dict[tuple[str, str], list[float]]:
        """(name, unit) -> values over the attempts, lowest first."""
        found: dict[tuple[str, str], list[float]] = {}
        for attempt in self.attempts:
            for measure in attempt.measures:
                found.setdefault((measure.name, measure.unit), []).append(measure.value)
        return {key: sorted(values) for key, values in found.items()}


class Log:
    """The attempts of a run that is going on: a line each, readable at any moment.

    One process writes. A line is written whole or, if the process is killed in it, ignored.
    """

    def __init__(self, folder: Path, run: Run) -> None:
        self.run = run
        self._folder = folder
        self._attempts: list[Attempt] = []
        self._file = (folder / RUNNING).open("w", encoding="utf-8")
        self._line({"format": FORMAT, "run": run.model_dump(mode="json")})

    def add(self, attempt: Attempt) -> None:
        """Record an attempt."""
        self._attempts.append(attempt)
        self._line({"attempt": attempt.model_dump(mode="json")})

    def finish(self, *, versions: Mapping[str, str] | None = None) -> Results:
        """Write ``results.json``; *versions* adds those that were learnt during the run."""
        run = self.run.model_copy(
            update={"ended": now(), "versions": {**self.run.versions, **(versions or {})}}
        )
        results = Results(run=run, attempts=self._attempts)
        results.write(self._folder / FINAL)
        self._file.close()
        return results

    def _line(self, item: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(item) + "\n")
        self._file.flush()


def now() -> str:
    """The time as results store it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(path: Path) -> Results:
    """Results from a run's folder or one of its two files; also those of a run that was killed.

    Raises:
        UsageError: there are none, or they break the schema; the first problems, a line each.
    """
    file = path
    if path.is_dir():
        final = path / FINAL
        file = final if final.exists() else path / RUNNING
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"no results in {path}: {error.strerror}",
            hint=f"give the folder of a run (it holds {FINAL}) or such a file",
        ) from error
    data = _from_lines(text, file) if file.suffix == ".jsonl" else _json(text, str(file))
    errors = list(_validator().iter_errors(data))
    if errors:
        raise UsageError(
            f"{file} does not follow {SCHEMA.name}:\n"
            + "\n".join(f"  {error.json_path}: {error.message}"[:200] for error in errors[:10])
        )
    return Results.model_validate(data)


def cells(attempts: Iterable[Attempt]) -> list[Cell]:
    """The cells of *attempts*, in the order of behaviour, case and system."""
    found: dict[tuple[str, str, System], list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault((attempt.behaviour, attempt.case, attempt.system), []).append(attempt)
    made = [Cell(*key, tuple(items)) for key, items in found.items()]
    return sorted(made, key=lambda cell: (cell.behaviour, cell.case, str(cell.system)))


def differing(rows: Iterable[Cell]) -> tuple[dict[str, str], list[str]]:
    """What the cells' systems have in common (part -> value), and the parts that they differ in.

    A part that only some have (a test without a framework) is common when they agree on it.
    """
    values: dict[str, set[str]] = {}
    for cell in rows:
        for part, value in cell.system._asdict().items():
            if value is not None:
                values.setdefault(part, set()).add(value)
    order = ("operator", "scheduler", "framework", "kubernetes", "provider")
    common = {part: next(iter(values[part])) for part in order if len(values.get(part, ())) == 1}
    return common, [part for part in order if len(values.get(part, ())) > 1]


def schema() -> dict[str, Any]:
    """The JSON schema of the models; ``schemas/results.v1.json`` is this, kept for readers."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"muster/{SCHEMA.name}",
        **Results.model_json_schema(),
    }


@cache
def _validator() -> Any:
    import jsonschema  # slow to import, and only readers need it

    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}") from error


def _from_lines(text: str, file: Path) -> dict[str, Any]:
    whole = text[: text.rfind("\n") + 1]  # what a killed process left of a line is not a line
    head: dict[str, Any] = {}
    attempts = []
    for number, line in enumerate(whole.splitlines(), 1):
        item = _json(line, f"{file} line {number}")
        if "attempt" in item:
            attempts.append(item["attempt"])
        else:
            head = item
    return {**head, "attempts": attempts}
