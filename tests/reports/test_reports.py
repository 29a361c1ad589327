from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oracles.errors import HarnessError, UsageError
from oracles.outcome import Outcome
from oracles.results import Attempt, Host, Log, Measure, Run
from reports import allure
from reports.cli import app

RUNNER = CliRunner()


def run_folder(folder: Path, name: str, *attempts: tuple[str, Outcome, float, str]) -> Path:
    folder.mkdir()
    host = Host(cpus=2, memory=24 << 30, kernel="6.1", os="Debian")
    log = Log(
        folder,
        Run(
            id=name, versions={"muster": "0.1.0"}, host=host, seed=1, provider="kind",
            topology="thread", command=["pytest"], started=f"2025-01-01T00:00:0{name[-1]}Z",
        ),
    )  # fmt: skip
    for behaviour, outcome, seconds, scheduler in attempts:
        log.add(
            Attempt(
                run=name, behaviour=behaviour, provider="kind", kubernetes="1.34.4",
                operator="training-operator:1.8.1", scheduler=scheduler, outcome=outcome,
                reason="" if outcome is Outcome.PASS else "3 of 8\nwere | bound",
                duration_s=seconds, test=f"test_{behaviour}",
                measures=[Measure(name="wait", value=seconds / 2, unit="s")],
            )
        )  # fmt: skip
    log.finish()
    return folder


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    P, F = Outcome.PASS, Outcome.FAIL
    first = run_folder(tmp_path / "a", "r1", ("G01", P, 4, "x:1"), ("S04", F, 9, "y:1"))
    second = run_folder(tmp_path / "b", "r2", ("G01", P, 2, "x:1"), ("G01", F, 3, "x:1"))
    return [str(first), str(second)]


def test_build_merges_runs_into_one_table(two: list[str]) -> None:
    done = RUNNER.invoke(app, ["build", *two])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    assert "On training-operator:1.8.1, kubernetes 1.34.4, kind." in done.output
    assert ["G01", "x:1", "2", "PASS", "2/3/4"] in lines
    assert ["1", "FAIL"] in lines
    assert ["S04", "y:1", "FAIL", "9"] in lines
    assert "2 behaviours on their systems: 2 FAIL" in done.output


def test_build_writes_markdown_and_json(two: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    RUNNER.invoke(app, ["build", *two, "--out", str(out)])
    text = (out / "summary.md").read_text()
    assert (
        "| G01 | MUST | A gang with room for all is bound as a whole | x:1 | 2 PASS, 1 FAIL |"
        in text
    )
    assert "3 of 8<br>were \\| bound" in text
    assert "| G01 | x:1 | wait | s | 3 | 1/1.5/2 |" in text
    assert "| G02 | MUST | Below the minimum" in text
    data = json.loads((out / "summary.json").read_text())
    assert data["totals"]["FAIL"] == 2
    assert [run["id"] for run in data["runs"]] == ["r1", "r2"]
    assert data["cells"][0]["seconds"] == {"attempts": 3, "min": 2, "median": 3, "max": 4}
    assert "G01" not in [b["behaviour"] for b in data["not_run"]]


@pytest.mark.parametrize(
    ("code", "word", "ends"),
    [(0, "ok", 0), (1, "behaviours", 1), (2, "usage", 2), (3, "infrastructure", 3),
     (4, "usage", 2), (5, "usage", 2), (137, "infrastructure", 3)],
)  # fmt: skip
def test_result_is_the_line_that_ends_a_target(code: int, word: str, ends: int) -> None:
    done = RUNNER.invoke(app, ["result", str(code)])
    assert done.output == f"result: {word}\n"
    assert done.exit_code == ends


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["build", "nowhere"], "error: no results in nowhere"),
        (["nothing"], "No such command"),
        (["allure", "nowhere"], "error: no Allure results in nowhere"),
    ],
)
def test_usage_errors_end_with_code_2(args: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reports", *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with Allure results, and no program on PATH but the ones a test puts there."""
    folder = tmp_path / "run"
    (folder / "allure-results").mkdir(parents=True)
    (folder / "allure-results" / "x-result.json").write_text("{}")
    (folder / "allure-results" / "categories.json").write_text('[{"name": "ours"}]')
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def program(run: Path, name: str, body: str) -> None:
    path = run.parent / "bin" / name
    path.write_text(f"#!{sys.executable}\nimport sys, os, json, pathlib\n{body}\n")
    os.chmod(path, 0o755)


NPM = """
place = pathlib.Path(sys.argv[sys.argv.index("--prefix") + 1]) / "node_modules" / "allure"
place.mkdir(parents=True)
(place / "cli.js").touch()
with open(os.environ["XDG_CACHE_HOME"] + "/npm-calls", "a") as file: file.write("x")
"""
NODE = """
config = json.loads(pathlib.Path(sys.argv[sys.argv.index("--config") + 1]).read_text())
page = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
page.mkdir()
(page / "index.html").write_text(json.dumps(config))
"""


def test_without_node_it_says_so(run: Path) -> None:
    assert "node and npm not found" in allure.generate(run)
    program(run, "node", "")
    assert "no Allure page: npm not found" in allure.generate(run)


def test_the_page_is_one_file_with_our_categories(run: Path) -> None:
    program(run, "npm", NPM)
    program(run, "node", NODE)
    (run.parent / "cache").mkdir()
    for _ in range(2):
        assert allure.generate(run) == f"Allure page: {run / 'allure-report' / 'index.html'}"
    config = json.loads((run / "allure-report" / "index.html").read_text())
    assert config["plugins"]["awesome"]["options"]["singleFile"] is True
    assert config["categories"] == [{"name": "ours"}]
    assert (run.parent / "cache" / "npm-calls").read_text() == "x"  # fetched once
    assert sorted(p.name for p in run.iterdir()) == ["allure-report", "allure-results"]


def test_a_registry_out_of_reach_is_infrastructure(run: Path) -> None:
    program(run, "node", NODE)
    program(run, "npm", "sys.exit('npm error network ENOTFOUND')")
    with pytest.raises(HarnessError, match=r"npm install allure@.*exit code 1") as caught:
        allure.generate(run)
    assert "ENOTFOUND" in str(caught.value)
    assert "registry reachable" in str(caught.value)
    assert caught.value.exit_code == 3
    assert not list((run.parent / "cache" / "muster").iterdir())


def test_a_page_that_fails_leaves_the_old_one(run: Path) -> None:
    (run / "allure-report").mkdir()
    program(run, "npm", NPM)
    program(run, "node", "sys.exit('broken')")
    (run.parent / "cache").mkdir()
    with pytest.raises(HarnessError, match="allure generate: exit code 1"):
        allure.generate(run)
    assert (run / "allure-report").exists()


def test_a_run_without_allure_results_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        allure.generate(tmp_path)
