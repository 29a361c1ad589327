"""How commands end; more of it in ``tests/clusters/test_cli.py``."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from oracles.ending import ended
from oracles.errors import NotApplicable, UsageError
from oracles.outcome import ExitCode


def app_that(error: BaseException) -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command()
    def command() -> None:
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (UsageError("wrong", hint="right"), ExitCode.USAGE, "error: wrong\n  next: right"),
        (NotApplicable("not here"), ExitCode.OK, "error: not here"),
        (typer.Exit(1), ExitCode.BEHAVIOURS, ""),
        (KeyboardInterrupt(), ExitCode.INFRASTRUCTURE, "interrupted"),
        (AssertionError("ours"), ExitCode.INFRASTRUCTURE, "AssertionError: ours"),
    ],
)
def test_what_ends_it_says_with_which_code(
    error: BaseException, code: ExitCode, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(app_that(error), "it", []) == code
    assert told in capsys.readouterr().err


def test_what_is_not_asked_for_right_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(app_that(typer.Exit(0)), "it", ["--nope"]) == ExitCode.USAGE
    assert capsys.readouterr().err.endswith("  next: python -m it --help\n")


@pytest.mark.parametrize(("printed", "code"), [(True, ExitCode.OK), (False, 3)])
def test_nobody_reads_on(printed: bool, code: int) -> None:
    """As ``| head`` does; it matters only where printing was all there was to do."""
    script = (
        "import sys, typer\nfrom oracles.ending import ended\n"
        "app = typer.Typer()\n@app.command()\ndef command() -> None:\n"
        "    for _ in range(10000):\n        print('a line')\n"
        f"sys.exit(ended(app, 'it', [], printed={printed}))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == code
