"""``python -m reports build | merge | diff | gate | timeline | allure | result``.

Exit codes as everywhere.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from oracles.ending import ended
from oracles.errors import UsageError
from oracles.merging import load
from oracles.merging import merge as union
from oracles.outcome import ExitCode
from reports import allure as allure_page
from reports import changes, table, terminal, words, write
from reports import notes as notes_file
from reports.gate.cli import gate
from reports.links import places
from reports.timeline.cli import timeline

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)

app.command()(timeline)
app.command()(gate)

Results = Annotated[
    list[Path],
    typer.Argument(help="folders of runs, results files, or merged ones", metavar="RESULTS..."),
]


@app.command()
def build(
    results: Results,
    out: Annotated[
        Path | None, typer.Option(help="where to write; default: the first run's folder")
    ] = None,
    before: Annotated[
        Path | None,
        typer.Option(help="an older report.json, or results: the page says what changed since"),
    ] = None,
    notes: Annotated[
        Path | None, typer.Option(help="YAML file of notes, see reports/notes.py")
    ] = None,
    title: Annotated[str, typer.Option(help="of the page")] = "Compatibility report",
    evidence: Annotated[
        str | None,
        typer.Option(
            help="folder or address that holds the runs' folders, if not where they were;"
            " none: no links"
        ),
    ] = None,
) -> None:
    """Merge the results of runs into a report: report.html, .md, .json and .csv.

    Prints the table, the time per behaviour and the slowest ten attempts.
    """
    report = table.of(union(load(path) for path in results), title=title)
    if notes is not None:
        report = report.model_copy(update={"notes": notes_file.read(notes)})
    if before is not None:
        older = table.read(before)
        found = changes.compare(older.entries, report.entries)
        report = report.model_copy(update={"before": older.made, "changes": found})
    folder = out or (results[0] if results[0].is_dir() else results[0].parent)
    made = write.all_forms(report, folder, places=places(results), evidence=evidence)
    print(terminal.text(report))
    for note in report.notes:
        if not any(words.meets(note, entry) for entry in report.entries):
            print(f"warning: no cell is meant by the note on {note.words}", file=sys.stderr)
    print(f"written: {', '.join(map(str, made))}")


@app.command()
def merge(
    results: Results,
    output: Annotated[Path, typer.Option("--output", "-o", help="file to write: ALL.json")],
) -> None:
    """Merge results of several runs, from one machine or many, into one file.

    What is given twice counts once; attempts of a cell are numbered anew, in the order of the runs.
    """
    if output.suffix != ".json":
        raise UsageError(f"{output}: merged results are JSON", hint="give a file.json")
    merged = union(load(path) for path in results)
    output.parent.mkdir(parents=True, exist_ok=True)
    merged.write(output)
    machines = {(run.host.model_dump_json()) for run in merged.runs}
    print(
        f"{output}: {words.attempts(len(merged.attempts))} of {len(merged.runs)} runs"
        f" on {len(machines)} kind{'' if len(machines) == 1 else 's'} of machine"
    )


@app.command()
def diff(
    a: Annotated[Path, typer.Argument(help="report.json or results", metavar="A")],
    b: Annotated[Path, typer.Argument(help="report.json or results", metavar="B")],
) -> None:
    """What changed from A to B: 0 nothing, or nothing to the worse; 1 something got worse."""
    older, newer = table.read(a), table.read(b)
    found = changes.compare(older.entries, newer.entries)
    print(terminal.changed(newer.model_copy(update={"changes": found}), str(a)))
    if any(change.kind == "worse" for change in found):
        raise typer.Exit(ExitCode.BEHAVIOURS)


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


def main() -> NoReturn:
    """Run a command; errors of ours are a few lines, not a traceback."""
    sys.exit(ended(app, "reports"))
