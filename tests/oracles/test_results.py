import json
from pathlib import Path

import pytest

from oracles.errors import UsageError
from oracles.outcome import Outcome
from oracles.results import (
    FINAL,
    RUNNING,
    SCHEMA,
    Attempt,
    Host,
    Log,
    Measure,
    Run,
    Violation,
    cells,
    read,
    schema,
)


def run(name: str = "r1", started: str = "2025-01-01T00:00:00Z") -> Run:
    return Run(
        id=name,
        versions={"muster": "0.1.0", "python": "3.13.0"},
        host=Host(cpus=2, memory=24 << 30, kernel="6.1", os="Debian 12"),
        seed=7,
        provider="kind",
        topology="thread",
        command=["pytest", "suites"],
        started=started,
    )


def attempt(number: int = 1, outcome: Outcome = Outcome.PASS, **fields: object) -> Attempt:
    return Attempt.model_validate(
        {
            "run": "r1",
            "behaviour": "G01",
            "provider": "kind",
            "kubernetes": "1.34.4",
            "operator": "training-operator:1.8.1",
            "scheduler": "coscheduling:0.28.9",
            "attempt": number,
            "outcome": outcome,
            "test": "suites/gang/test_g01.py::test_g01",
            **fields,
        }
    )


FAILED = attempt(
    2,
    Outcome.FAIL,
    reason="3 of 8 bound",
    violations=[Violation(rule="gang", message="3 of 8 bound", events=[4, 9])],
    measures=[Measure(name="bound", value=3, unit="pods")],
    duration_s=4.25,
    evidence=["tests/g01"],
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    log = Log(tmp_path, run())
    log.add(attempt())
    log.add(FAILED)
    done = log.finish(versions={"kubernetes": "1.34.4"})
    assert read(tmp_path) == read(tmp_path / FINAL) == done
    assert done.attempts == [attempt(), FAILED]
    assert done.run.ended is not None
    assert done.run.versions["kubernetes"] == "1.34.4"


def test_a_killed_run_leaves_what_it_had(tmp_path: Path) -> None:
    log = Log(tmp_path, run())
    log.add(attempt())
    log.add(FAILED)
    with (tmp_path / RUNNING).open("a") as file:
        file.write('{"attempt": {"run": "r1", "behav')
    results = read(tmp_path)
    assert results.attempts == [attempt(), FAILED]
    assert results.run.ended is None


def test_the_published_schema_is_that_of_the_models() -> None:
    assert json.loads(SCHEMA.read_text()) == schema()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("{}", "'run' is a required property"),
        (
            json.dumps({"run": run().model_dump(), "attempts": [], "cells": []}),
            "'cells' was unexpected",
        ),
        (
            json.dumps(
                {
                    "run": run().model_dump(),
                    "attempts": [attempt().model_dump() | {"outcome": "OK"}],
                }
            ),
            r"\$.attempts\[0\].outcome",
        ),
        (json.dumps({"format": "results.v2", "run": run().model_dump()}), r"\$.format"),
    ],
)
def test_a_file_that_breaks_the_schema_is_a_usage_error(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / FINAL).write_text(text)
    with pytest.raises(UsageError, match=message):
        read(tmp_path)


def test_a_folder_without_results_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results in"):
        read(tmp_path)


def test_cells_hold_all_attempts_of_one_behaviour_on_one_system() -> None:
    other = attempt(scheduler="default:1.34.4", outcome=Outcome.NOT_APPLICABLE)
    made = cells([FAILED, other, attempt(duration_s=2.0), attempt(case="late")])
    assert [(c.behaviour, c.case, c.outcome) for c in made] == [
        ("G01", "", Outcome.FAIL),
        ("G01", "", Outcome.NOT_APPLICABLE),
        ("G01", "late", Outcome.PASS),
    ]
    first = made[0]
    assert first.counts == {Outcome.PASS: 1, Outcome.FAIL: 1}
    assert first.durations == [2.0, 4.25]
    assert first.measures == {("bound", "pods"): [3.0]}


def test_a_measure_is_a_number() -> None:
    with pytest.raises(ValueError, match="finite"):
        Measure(name="x", value=float("nan"), unit="s")
