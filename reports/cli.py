"""``python -m reports build | timeline | allure | result``; exit codes as everywhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from oracles.errors import HarnessError
from oracles.outcome import ExitCode
from oracles.results import merge, read
from reports import allure as allure_page
from reports import summary
from reports.timeline.cli import timeline

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)

app.command()(timeline)

RunFolders = Annotated[
    list[Path], typer.Argument(help="folders of runs, or results files", metavar="RUN_DIR...")
]


@app.command()
def build(
    runs: RunFolders,
    out: Annotated[
        Path | None, typer.Option(help="where to write; default: the first run's folder")
    ] = None,
) -> None:
    """Merge the results of runs; print the table, write summary.md and summary.json."""
    found, attempts = merge(read(path) for path in runs)
    if out is None:
        out = runs[0] if runs[0].is_dir() else runs[0].parent
    out.mkdir(parents=True, exist_ok=True)
    made = summary.of(found, attempts)
    (out / "summary.json").write_text(json.dumps(made, indent=1) + "\n")
    (out / "summary.md").write_text(summary.markdown(made))
    print(summary.terminal(made))
    print(f"written: {out / 'summary.md'}, {out / 'summary.json'}")


@app.command()
def allure(run: Annotated[Path, typer.Argument(help="folder of a run", metavar="RUN_DIR")]) -> None:
    """Make a static Allure page of a run, where Node is there; says so where not."""
    print(allure_page.generate(run))


@app.command()
def result(
    code: Annotated[int, typer.Argument(help="the exit code of the command before")],
) -> None:
    """Print the line that ends a make target, for a command's exit code; ends with that code.

    The codes of pytest that our plugin cannot replace (4: an option that nobody knows, 5: no test)
    are usage. Anything else that is not ours (a signal, a crash) is infrastructure.
    """
    ours = {int(each): each for each in ExitCode} | {4: ExitCode.USAGE, 5: ExitCode.USAGE}
    meaning = ours.get(code, ExitCode.INFRASTRUCTURE)
    print(f"result: {meaning.word}")
    raise typer.Exit(meaning)


def main() -> None:
    """Run a command; errors of ours are a few lines, not a traceback."""
    try:
        app()
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
