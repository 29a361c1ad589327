"""The gate: green for one reason only, red for each of many."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from results_samples import KNOWN, F, I, K, N, P, attempt, run
from typer.testing import CliRunner

from oracles.catalogue import marks_below
from oracles.outcome import ExitCode, Outcome
from oracles.results import Attempt, Log, Results
from reports import table
from reports.cli import app
from reports.gate import bounds, expectations
from reports.gate.expectations import Expectations
from reports.gate.judge import Kind, judge

RUNNER = CliRunner()
TODAY = date(2025, 6, 1)
TORCH = "torch:2.8.0"


def wanted(**more: Any) -> Expectations:
    return Expectations.model_validate(
        {
            "systems": {"e2e": [{"framework": TORCH}]},
            "expected": [
                {"behaviour": "G01"},
                {"behaviour": "E05", "cases": ["agent killed", "pod deleted"]},
            ],
            **more,
        }
    )


def killed(*outcomes: Outcome, **fields: Any) -> list[Attempt]:
    more = {"case": "agent killed", "framework": TORCH, **fields}
    return [attempt("E05", o, number=n, **more) for n, o in enumerate(outcomes, 1)]


def good() -> list[Attempt]:
    """What the expectations want."""
    deleted = attempt("E05", case="pod deleted", framework=TORCH)
    return [attempt("G01"), deleted, *killed(P)]


def without(case: str) -> list[Attempt]:
    return [a for a in good() if a.case != case]


def verdict(
    attempts: list[Attempt], *, what: Expectations | None = None, last: list[Attempt] | None = None
) -> tuple[list[Kind], int]:
    found = judge(
        [run()], table.entries(attempts), what or wanted(), matrix="e2e", today=TODAY,
        last=table.entries(last or []),
    )  # fmt: skip
    return [reason.kind for reason in found.reasons], found.exit_code


def flaky(until: str = "2025-12-31", rate: float = 0.2) -> Expectations:
    return wanted(
        quarantine=[
            {"behaviour": "E05", "case": "agent killed", "rate": rate, "until": until,
             "reason": "the store's timeout is not long enough"}
        ]
    )  # fmt: skip


def test_what_is_as_expected_is_green() -> None:
    assert verdict(good()) == ([], 0)
    assert verdict(good(), last=good()) == ([], 0)


@pytest.mark.parametrize(
    ("attempts", "last", "kinds", "code"),
    [
        ([*without("agent killed"), *killed(F)], [], [Kind.FAILED], 1),
        ([*without("agent killed"), *killed(P, P, F)], [], [Kind.FAILED], 1),
        ([*without("agent killed"), *killed(F)], killed(P), [Kind.REGRESSION], 1),
        ([*without("agent killed"), *killed(F)], killed(F), [Kind.FAILED], 1),
        ([*without("agent killed"), *killed(N)], killed(P), [Kind.REGRESSION, Kind.MISSING], 1),
        ([*without("agent killed"), *killed(N)], [], [Kind.MISSING], 3),
        ([*without("agent killed"), *killed(P, known=KNOWN)], [], [Kind.VANISHED], 1),
        ([*without("agent killed"), *killed(P, P, I)], [], [Kind.INCONCLUSIVE], 3),
        ([*without("agent killed"), *killed(I)], [], [Kind.INCONCLUSIVE, Kind.MISSING], 3),
        (without("agent killed"), [], [Kind.MISSING], 3),
        ([*without("agent killed"), *killed(P, framework="torch:1.10.2")], [], [Kind.MISSING], 3),
        ([], [], [Kind.MISSING] * 3, 3),
        # what a known fault does not hide, and what is not a reason
        ([*without("agent killed"), *killed(K, F, known=KNOWN)], [], [Kind.FAILED], 1),
        ([*without("agent killed"), *killed(K, known=KNOWN)], killed(P), [], 0),
        ([*without("agent killed"), *killed(K, P, known=KNOWN)], [], [], 0),
        (good(), killed(F), [], 0),
        ([*good(), attempt("T05")], [], [], 0),
    ],
)  # fmt: skip
def test_each_reason(
    attempts: list[Attempt], last: list[Attempt], kinds: list[Kind], code: int
) -> None:
    assert verdict(attempts, last=last) == (kinds, code)


def test_every_system_of_the_matrix_has_to_be_there_for_what_uses_it() -> None:
    both = {"e2e": [{"framework": TORCH}, {"framework": "torch:1.10.2"}]}
    kinds, _ = verdict(good(), what=wanted(systems=both))
    assert kinds == [Kind.MISSING] * 2, "G01 has no framework, so once is enough"


def test_fewer_attempts_than_asked_for_are_too_few() -> None:
    what = wanted(expected=[{"behaviour": "G01", "attempts": 2}])
    assert verdict([attempt("G01")], what=what) == ([Kind.MISSING], 3)
    assert verdict([attempt("G01"), attempt("G01", number=2)], what=what) == ([], 0)


def test_a_pattern_of_cases_wants_one_of_them() -> None:
    what = wanted(expected=[{"behaviour": "E05", "cases": ["*deleted", "agent*"]}])
    assert verdict(good(), what=what) == ([], 0)
    assert verdict(without("agent killed"), what=what) == ([Kind.MISSING], 3)
    assert verdict([*without("agent killed"), *killed(N)], what=what) == ([Kind.MISSING], 3)


def test_what_is_expected_in_another_matrix_is_not_asked_for() -> None:
    systems: dict[str, list[dict[str, str]]] = {"e2e": [{}], "nightly": [{}]}
    for only, kinds in ((["nightly"], []), (["e2e"], [Kind.MISSING]), (None, [Kind.MISSING])):
        what = wanted(systems=systems, expected=[{"behaviour": "T05", "only": only}])
        assert verdict([], what=what)[0] == kinds


@pytest.mark.parametrize(
    ("outcomes", "what", "kinds"),
    [
        ([P, P, F], flaky(), []),
        ([P, P, P], flaky(), []),
        ([F], flaky(), [Kind.FLAKY]),  # it never passed
        ([F, F, F, F, P], flaky(), [Kind.FLAKY]),  # at least 34 % with 95 % confidence
        ([F, F, F, F, P], flaky(rate=0.5), []),
        ([P, P, F], flaky(until="2025-05-31"), [Kind.FAILED, Kind.EXPIRED]),
        ([P, P, P], flaky(until="2025-05-31"), [Kind.EXPIRED]),
        ([P, P, F], flaky(until="2025-06-01"), []),  # its last day
        ([P, P, I], flaky(), [Kind.INCONCLUSIVE]),  # that is not the flake's doing
    ],
)
def test_quarantine(outcomes: list[Outcome], what: Expectations, kinds: list[Kind]) -> None:
    assert verdict([*without("agent killed"), *killed(*outcomes)], what=what)[0] == kinds


OUTCOMES = st.sampled_from(list(Outcome))
CELLS = st.sampled_from(
    [("G01", "", None), ("E05", "agent killed", TORCH), ("E05", "pod deleted", TORCH),
     ("E05", "pod deleted", "torch:1.10.2"), ("T05", "", None)]
)  # fmt: skip
ATTEMPTS = st.lists(st.tuples(CELLS, OUTCOMES, st.sampled_from([None, None, KNOWN])), max_size=9)


def drawn(found: list[Any]) -> list[Attempt]:
    return [
        attempt(b, o, number=n, case=c, framework=f, known=known)
        for n, ((b, c, f), o, known) in enumerate(found, 1)
    ]


@settings(deadline=None, max_examples=150)
@given(ATTEMPTS, CELLS, ATTEMPTS, st.sampled_from([wanted(), flaky(), flaky("2025-01-01")]))
def test_another_failure_never_makes_it_green(
    found: list[Any], cell: tuple[str, str, str | None], last: list[Any], what: Expectations
) -> None:
    before = drawn(last)
    _, code = verdict(drawn(found), what=what, last=before)
    _, worse = verdict(drawn([*found, (cell, F, None)]), what=what, last=before)
    if code != ExitCode.OK:
        assert worse != ExitCode.OK
    if cell[1] != "agent killed":  # which may be in quarantine
        assert worse == ExitCode.BEHAVIOURS


# bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed", "attempts", "low", "high"),
    # from tables of Clopper-Pearson intervals of 90 %, whose ends are these
    [(0, 3, 0.0, 0.6316), (0, 10, 0.0, 0.2589), (0, 59, 0.0, 0.0495), (1, 10, 0.0051, 0.3942),
     (5, 10, 0.2224, 0.7776), (3, 3, 0.3684, 1.0), (1, 1, 0.05, 1.0)],
)  # fmt: skip
def test_bounds(failed: int, attempts: int, low: float, high: float) -> None:
    assert bounds.lower(failed, attempts) == pytest.approx(low, abs=1e-4)
    assert bounds.upper(failed, attempts) == pytest.approx(high, abs=1e-4)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 60), st.data())
def test_bounds_hold_the_rate_and_grow_with_failures(attempts: int, data: st.DataObject) -> None:
    failed = data.draw(st.integers(0, attempts))
    assert bounds.lower(failed, attempts) <= failed / attempts <= bounds.upper(failed, attempts)
    assert bounds.lower(failed + 1, attempts + 1) >= bounds.lower(failed, attempts)
    if failed < attempts:
        assert bounds.upper(failed + 1, attempts) > bounds.upper(failed, attempts)


# the command -----------------------------------------------------------------------------------


@pytest.fixture
def gate(tmp_path: Path) -> Callable[..., tuple[int, list[str]]]:
    what = tmp_path / "expectations.yaml"
    what.write_text(json.dumps(wanted().model_dump(mode="json")))

    def call(*args: object) -> tuple[int, list[str]]:
        done = RUNNER.invoke(
            app,
            ["gate", *map(str, args), "--expectations", str(what), "--today", str(TODAY)],
        )
        return done.exit_code, done.output.splitlines()

    return call


def written(folder: Path, attempts: list[Attempt]) -> Path:
    folder.mkdir(exist_ok=True)
    Results(run=run(), attempts=attempts).write(folder / "results.json")
    return folder


def test_what_is_not_in_the_expectations_is_named(
    tmp_path: Path, gate: Callable[..., tuple[int, list[str]]]
) -> None:
    code, lines = gate(written(tmp_path / "r", [*good(), attempt("T05"), attempt("T05", F)]))
    assert code == 1
    code, lines = gate(written(tmp_path / "r", [*good(), attempt("T05")]))
    assert (code, lines[1]) == (0, "  not in the expectations: T05")


def test_green_in_a_line(tmp_path: Path, gate: Callable[..., tuple[int, list[str]]]) -> None:
    assert gate(written(tmp_path / "r", good())) == (
        0, ["green: 3 attempts in 1 run, as expected"],
    )  # fmt: skip


def test_not_green_in_three_lines(
    tmp_path: Path, gate: Callable[..., tuple[int, list[str]]]
) -> None:
    folder = written(tmp_path / "r", [*killed(F), attempt("G01")])
    last = written(tmp_path / "last", good())
    code, lines = gate(folder, "--last", last)
    assert code == 1
    assert lines == [
        "not green: 1 passed before, and no longer does, 1 expected, and not judged",
        "  E05 agent killed on torch:2.8.0, kubernetes 1.34.4 fails (passed in the last report):"
        " FAIL: 3 of 8 were bound",
        "  next: evidence: r1/tests/E05-torch:2.8.0-1 (--all tells the other 1)",
    ]
    code, lines = gate(folder, "--last", last, "--all")
    assert code == 1
    assert any("E05 pod deleted did not run" in line for line in lines)


def test_a_missing_run_is_not_green(
    tmp_path: Path, gate: Callable[..., tuple[int, list[str]]]
) -> None:
    code, lines = gate(written(tmp_path / "r", good()), tmp_path / "nowhere")
    assert code == 3
    assert lines[0] == "not green: 1 no results"
    assert len(lines) == 3


@pytest.mark.parametrize("text", ["", "{", '{"format": "results.v1"}', "[]"])
def test_a_damaged_file_is_not_green(
    tmp_path: Path, gate: Callable[..., tuple[int, list[str]]], text: str
) -> None:
    (tmp_path / "results.json").write_text(text)
    code, lines = gate(tmp_path)
    assert code == 3
    assert "no results" in lines[0]
    assert len(lines) == 3


def test_a_killed_run_is_not_green(
    tmp_path: Path, gate: Callable[..., tuple[int, list[str]]]
) -> None:
    log = Log(tmp_path, run(ended=False))
    for each in good():
        log.add(each)
    with (tmp_path / "attempts.jsonl").open("a") as file:
        file.write('{"attempt": {"run": "r1", "behav')
    code, lines = gate(tmp_path)
    assert code == 3
    assert lines[1] == "  run r1 did not end: it was killed, or is still running"


def test_a_crashed_worker_is_not_green(
    tmp_path: Path, gate: Callable[..., tuple[int, list[str]]]
) -> None:
    crashed = killed(I, reason="worker 'gw0' crashed while running it")
    code, lines = gate(written(tmp_path / "r", [*without("agent killed"), *crashed]))
    assert code == 3
    assert "worker 'gw0' crashed" in lines[1]


def test_a_last_report_that_is_not_there_is_not_green(
    tmp_path: Path, gate: Callable[..., tuple[int, list[str]]]
) -> None:
    code, lines = gate(written(tmp_path / "r", good()), "--last", tmp_path / "nowhere.json")
    assert code == 3
    assert "the last report cannot be read" in lines[1]


def test_a_wrong_matrix_is_usage(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["gate", str(tmp_path), "--matrix", "weekly"])
    assert done.exit_code != 0
    assert "no matrix 'weekly'" in str(done.exception)


# the expectations that come with the harness ---------------------------------------------------


def test_the_expectations_name_behaviours_that_have_a_test() -> None:
    tested = marks_below(Path(__file__).parents[2] / "suites")
    assert {each.behaviour for each in expectations.read().expected} <= set(tested)


def test_the_expectations_fit_a_green_run_that_was_recorded() -> None:
    example = Path(__file__).parents[2] / "reports" / "examples" / "e2e-results.json"
    done = RUNNER.invoke(app, ["gate", str(example), "--today", "2026-11-30"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expected": []}, "at least 1 item"),
        ({"expected": [{"behaviour": "G01", "only": ["weekly"]}]}, "G01: no matrix weekly"),
        ({"systems": {"e2e": [{"torch": "2.8.0"}]}}, "no part of a system: torch"),
        ({"quarantine": [{"behaviour": "E05", "rate": 1.5, "until": "2025-01-01",
                          "reason": "it fails now and then"}]}, "less than 1"),
        ({"quarantine": [{"behaviour": "E05", "rate": 0.5, "reason": "fails now and then"}]},
         "until"),
    ],
)  # fmt: skip
def test_broken_expectations_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wanted(**change)
