from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.errors import UsageError
from oracles.merging import SCHEMA, Merged, load, merge, of, schema
from oracles.outcome import Outcome
from oracles.results import Attempt, Host, Log, Run, cells, read

FEW = settings(deadline=None, max_examples=40)


def run(name: str, *, ended: bool = True, cpus: int = 2) -> Run:
    return Run(
        id=name,
        versions={"muster": "0.1.0"},
        host=Host(cpus=cpus, memory=1 << 30, kernel="6.1", os="Debian"),
        seed=1,
        provider="kind",
        topology="thread",
        command=["pytest"],
        # two of them began in the same second
        started=f"2025-01-01T00:00:0{min(int(name[1:]), 2)}Z",
        ended="2025-01-01T01:00:00Z" if ended else None,
    )


def attempt(name: str, cell: int, number: int, outcome: Outcome = Outcome.PASS) -> Attempt:
    return Attempt(
        run=name,
        behaviour="E05",
        case=f"case {cell}",
        provider="kind",
        kubernetes="1.34.4",
        framework="torch:2.8.0",
        attempt=number,
        outcome=outcome,
        test=f"test_e05[{cell}-attempt{number}]",
    )


@st.composite
def whole_runs(draw: st.DrawFn) -> list[Merged]:
    made = []
    for index in range(draw(st.integers(1, 4))):
        counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
        outcomes = st.sampled_from(list(Outcome))
        found = [
            attempt(f"r{index}", cell, number, draw(outcomes))
            for cell, count in enumerate(counts)
            for number in range(1, count + 1)
        ]
        made.append(Merged(runs=[run(f"r{index}", cpus=index + 1)], attempts=found))
    return made


@st.composite
def files(draw: st.DrawFn) -> list[Merged]:
    """Files of some runs, as they may lie about: also logs of runs before their end, and twice."""
    found = []
    for whole in draw(whole_runs()):
        found.append(whole)
        if draw(st.booleans()):
            some = whole.attempts[: draw(st.integers(0, len(whole.attempts)))]
            early = whole.runs[0].model_copy(update={"ended": None})
            found.append(Merged(runs=[early], attempts=some))
    return draw(st.permutations(found))


@FEW
@given(files(), st.data())
def test_merging_is_a_union(found: list[Merged], data: st.DataObject) -> None:
    whole = merge(found)
    shuffled = data.draw(st.permutations(found))
    cut = data.draw(st.integers(0, len(found)))

    assert merge(shuffled) == whole
    assert merge([whole, *found]) == whole
    assert merge([merge(found[:cut]), merge(found[cut:])]) == whole


@FEW
@given(files())
def test_nothing_is_lost_and_nothing_counted_twice(found: list[Merged]) -> None:
    whole = merge(found)
    names = {(a.run, a.test) for part in found for a in part.attempts}

    assert sorted((a.run, a.test) for a in whole.attempts) == sorted(names)
    assert len({r.id for r in whole.runs}) == len(whole.runs)
    assert {r.ended for r in whole.runs} == {"2025-01-01T01:00:00Z"}
    for cell in cells(whole.attempts):
        assert [a.attempt for a in cell.attempts] == list(range(1, len(cell.attempts) + 1))
        assert sum(cell.counts.values()) == len(cell.attempts)


def test_attempts_of_a_cell_on_two_machines_are_numbered_in_the_order_of_the_runs() -> None:
    here = Merged(runs=[run("r0")], attempts=[attempt("r0", 0, n) for n in (1, 2)])
    there = Merged(runs=[run("r1", cpus=64)], attempts=[attempt("r1", 0, n) for n in (1, 2)])
    both = merge([there, here])
    assert [(a.run, a.attempt) for a in both.attempts] == [
        ("r0", 1), ("r0", 2), ("r1", 3), ("r1", 4),
    ]  # fmt: skip
    assert [r.host.cpus for r in both.runs] == [2, 64]


def test_two_tellings_of_one_attempt_count_as_the_worse() -> None:
    good, bad = (
        Merged(runs=[run("r0")], attempts=[attempt("r0", 0, 1, outcome)])
        for outcome in (Outcome.PASS, Outcome.FAIL)
    )
    for order in ([good, bad], [bad, good]):
        assert [a.outcome for a in merge(order).attempts] == [Outcome.FAIL]


def test_a_file_of_merged_results_is_read_as_runs_are(tmp_path: Path) -> None:
    log = Log(tmp_path, run("r0", ended=False))
    log.add(attempt("r0", 0, 1))
    log.finish()
    one = load(tmp_path)
    assert one == of(read(tmp_path)) == load(tmp_path / "results.json")
    other = Merged(runs=[run("r1")], attempts=[attempt("r1", 0, 1)])
    file = tmp_path / "all.json"
    merge([one, other]).write(file)
    assert load(file) == merge([one, other])
    assert merge([load(file), one]) == load(file)


def test_the_published_schema_is_that_of_the_model() -> None:
    assert json.loads(SCHEMA.read_text()) == schema()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"format": "merged.v1"}, "runs: Field required"),
        ({"format": "merged.v1", "runs": [], "cells": []}, "cells: Extra inputs"),
        (
            {"format": "merged.v1", "runs": [],
             "attempts": [attempt("r7", 0, 1).model_dump(mode="json")]},
            "runs that are not listed: r7",
        ),
    ],
)  # fmt: skip
def test_a_broken_file_is_a_usage_error(
    tmp_path: Path, data: dict[str, object], message: str
) -> None:
    file = tmp_path / "all.json"
    file.write_text(json.dumps(data))
    with pytest.raises(UsageError, match=message):
        load(file)
