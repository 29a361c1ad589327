"""Each reason for which the gate is red, as reports/README.md tells it.

The runs are the recorded example with one thing out of order; the lines are what the gate prints.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reports.cli import app
from reports.gate.expectations import FILE
from reports.gate.judge import Kind

HERE = Path(__file__).parents[2] / "reports"
EXAMPLE = HERE / "examples" / "e2e-results.json"
TODAY = "2026-11-30"
Results = dict[str, Any]


def of(results: Results, behaviour: str, case: str) -> dict[str, Any]:
    """The attempt of a case."""
    found: dict[str, Any] = next(
        a for a in results["attempts"] if (a["behaviour"], a["case"]) == (behaviour, case)
    )
    return found


def failing(results: Results) -> None:
    of(results, "E05", "pod deleted").update(
        outcome="FAIL", reason="training goes on: not within 120 s; the world is 2 of 3"
    )


def gone(results: Results) -> None:
    of(results, "E05", "pod deleted").update(known="torch-67742")


def crashed(results: Results) -> None:
    of(results, "E03", "").update(
        outcome="INCONCLUSIVE", reason="worker 'gw1' crashed while running it", duration_s=None
    )


def killed(results: Results) -> None:
    results["run"]["ended"] = None


def left_out(results: Results) -> None:
    results["attempts"] = [a for a in results["attempts"] if a["behaviour"] != "S04"]


def nothing(results: Results) -> None:
    results.clear()


QUARANTINE = (
    "quarantine:\n- {{behaviour: E05, case: pod deleted, rate: 0.2, until: {until},"
    " reason: the store waits for an agent that is gone}}\n"
)


@pytest.mark.parametrize(
    ("kind", "change", "quarantined", "code"),
    [
        (Kind.REGRESSION, failing, None, 1),
        (Kind.FAILED, failing, None, 1),
        (Kind.FLAKY, failing, "2026-12-31", 1),
        (Kind.EXPIRED, lambda results: None, "2026-11-29", 1),
        (Kind.VANISHED, gone, None, 1),
        (Kind.UNREADABLE, nothing, None, 3),
        (Kind.INTERRUPTED, killed, None, 3),
        (Kind.INCONCLUSIVE, crashed, None, 3),
        (Kind.MISSING, left_out, None, 3),
    ],
)
def test_the_gate_is_red_for_each_reason_and_says_so(
    kind: Kind,
    change: Callable[[Results], None],
    quarantined: str | None,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    results = json.loads(EXAMPLE.read_text())
    change(results)
    Path("night").mkdir()
    if results:
        Path("night/results.json").write_text(json.dumps(results))
    what = FILE.read_text()
    if quarantined:
        what = what.replace("quarantine: []\n", QUARANTINE.format(until=quarantined))
    Path("expectations.yaml").write_text(what)
    last = ["--last", str(EXAMPLE)] if kind is Kind.REGRESSION else []

    done = CliRunner().invoke(
        app, ["gate", "night", "--expectations", "expectations.yaml", "--today", TODAY, *last]
    )

    assert done.exit_code == code == kind.exit_code
    lines = done.output.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"not green: 1 {kind}")
    row = f"| {kind} | {code} | `{lines[1].strip()}` |"
    assert row in (HERE / "README.md").read_text().splitlines(), row


def test_every_reason_has_a_row() -> None:
    told = (HERE / "README.md").read_text()
    assert [kind for kind in Kind if f"| {kind} | {kind.exit_code:d} |" not in told] == []
