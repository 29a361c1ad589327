from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oracles.errors import HarnessError, UsageError
from reports import allure
from reports.cli import app, main

RUNNER = CliRunner()


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
        (["merge", "nowhere", "-o", "all.json"], "error: no results in nowhere"),
        (["merge", "nowhere", "-o", "all.csv"], "error: all.csv: merged results are JSON"),
        (["diff", "nowhere", "nowhere"], "error: no results in nowhere"),
        (["nothing"], "No such command"),
        (["allure", "nowhere"], "error: no Allure results in nowhere"),
    ],
)
def test_usage_errors_end_with_code_2(
    args: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["reports", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_command_is_there() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reports", "gate", "--matrix", "no such thing", "nowhere"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: no matrix 'no such thing'" in done.stderr
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
