"""Results of several runs, from one machine or many, as one: ``merged.v1``.

Merging is a union: whichever file comes first, and however often the same one is given, the
outcome is the same. An attempt is told from others by its run and its test, never by its number:
numbers are given anew within each cell, in the order of the runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from oracles.errors import UsageError
from oracles.outcome import combine
from oracles.results import Attempt, Results, Run, System, read
from oracles.strict import Strict, problems

FORMAT = "merged.v1"
SCHEMA = Path(__file__).parent / "schemas" / f"{FORMAT}.json"

#: run, test, behaviour, case, system, and which one of several that are alike in these
_Key = tuple[str, str, str, str, System, int]


class Merged(Strict):
    """Runs, each with the machine and versions it was on, and the attempts of all of them."""

    format: str = Field(default=FORMAT, pattern=f"^{FORMAT}$")
    runs: list[Run]
    attempts: list[Attempt] = Field(default_factory=list)

    @model_validator(mode="after")
    def _runs_are_there(self) -> Merged:
        unknown = sorted({a.run for a in self.attempts} - {run.id for run in self.runs})
        if unknown:
            raise ValueError(f"attempts of runs that are not listed: {', '.join(unknown)}")
        return self

    def write(self, path: Path) -> None:
        """Write the file; whoever reads it sees the old one or the new one, never a part."""
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n")
        partial.replace(path)


def load(path: Path) -> Merged:
    """A run's folder, one of its two files, or a merged file.

    Raises:
        UsageError: there is none, or it breaks its schema.
    """
    data = _merged(path)
    if data is None:
        return of(read(path))
    try:
        return Merged.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{path} does not follow {SCHEMA.name}:\n{problems(error)}") from error


def of(results: Results) -> Merged:
    """One run's results."""
    return Merged(runs=[results.run], attempts=results.attempts)


def merge(several: Iterable[Merged]) -> Merged:
    """The union of several. What stands in two of them counts once.

    Where one run is given in two states (its log, and the final file), the later one is taken.
    """
    runs: dict[str, Run] = {}
    attempts: dict[_Key, Attempt] = {}
    for part in several:
        for run in part.runs:
            runs[run.id] = max(runs.get(run.id, run), run, key=_state)
        seen: Counter[object] = Counter()
        for attempt in part.attempts:
            name = (attempt.run, attempt.test, attempt.behaviour, attempt.case, attempt.system)
            key = (*name, seen[name])
            seen[name] += 1
            attempts[key] = _one(attempts.get(key, attempt), attempt)
    ordered = sorted(runs.values(), key=lambda run: (run.started, run.id))
    place = {run.id: index for index, run in enumerate(ordered)}
    found = sorted(
        attempts.values(), key=lambda a: (place[a.run], a.behaviour, a.case, a.attempt, a.test)
    )
    return Merged(runs=ordered, attempts=_numbered(found))


def _numbered(attempts: Iterable[Attempt]) -> list[Attempt]:
    counts: dict[tuple[str, str, System], int] = {}
    made = []
    for attempt in attempts:
        cell = (attempt.behaviour, attempt.case, attempt.system)
        counts[cell] = counts.get(cell, 0) + 1
        made.append(attempt.model_copy(update={"attempt": counts[cell]}))
    return made


def _state(run: Run) -> tuple[str, str]:
    # one that did not end is older than the same one after its end
    return (run.ended or "", run.model_dump_json())


def _one(a: Attempt, b: Attempt) -> Attempt:
    """The same attempt, told twice. A difference cannot be; if there is one, the worse counts."""
    if a == b:
        return a
    number = min(a.attempt, b.attempt)
    a, b = (each.model_copy(update={"attempt": number}) for each in (a, b))
    if a.outcome is not b.outcome:
        return a if combine([a.outcome, b.outcome]) is a.outcome else b
    return max(a, b, key=Attempt.model_dump_json)


def schema() -> dict[str, Any]:
    """The JSON schema of the model; ``schemas/merged.v1.json`` is this, kept for readers."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"muster/{SCHEMA.name}",
        **Merged.model_json_schema(),
    }


def _merged(path: Path) -> Any:
    if path.suffix != ".json":
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # whoever reads it as results says what is wrong
    return data if isinstance(data, dict) and data.get("format") == FORMAT else None
