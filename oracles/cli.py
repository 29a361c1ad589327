"""``python -m oracles check | show | diff``; exit codes as everywhere (``ExitCode``)."""

from __future__ import annotations

import fnmatch
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from oracles import differing, telling
from oracles.changes import Change
from oracles.ending import ended
from oracles.history import FAULT, GAP, MARK, PROGRESS
from oracles.judging import judge_history
from oracles.outcome import ExitCode, Outcome, exit_code
from oracles.reading import History, HistoryError

app = typer.Typer(
    help="Judge, show and compare histories, without a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Histories = Annotated[list[Path], typer.Argument(help="history.jsonl files", metavar="HISTORY")]
OneHistory = Annotated[Path, typer.Argument(metavar="HISTORY")]

_STYLES = {FAULT: "bold red", GAP: "bold magenta", MARK: "bold cyan", PROGRESS: "green"}
_OUTCOMES = {
    Outcome.PASS: "bold green",
    Outcome.FAIL: "bold red",
    Outcome.INCONCLUSIVE: "bold magenta",
}


@app.command()
def check(histories: Histories) -> int:
    """Judge histories again: 0 all well, 1 something broken, 3 nobody can tell, or nothing there.

    Prints what broke with the events around it, where something was missed, and what was damaged.
    """
    console = _console()
    outcomes = []
    for path in histories:
        try:
            outcome, line, rest = _check(path)
        except HistoryError as error:
            outcome, line, rest = Outcome.INCONCLUSIVE, str(error), ""
        console.print(Text.assemble((outcome.value, _OUTCOMES.get(outcome, "")), f"  {line}"))
        if rest:
            console.print(Text(rest))
        outcomes.append(outcome)
    return exit_code(outcomes)


def _check(path: Path) -> tuple[Outcome, str, str]:
    history = History(path)
    zero = float(history.part.get("started", 0.0))
    judgement = judge_history(history)
    outcome = judgement.outcome
    nothing = judgement.events == 0
    if (history.damaged or nothing) and outcome is not Outcome.FAIL:
        outcome = Outcome.INCONCLUSIVE
    line = f"{path}: {judgement.events} events, {judgement.end - (zero or judgement.start):.1f} s"
    if nothing:
        line += "; there is nothing to judge"
    elif judgement.not_exercised:
        line += f"; not exercised: {', '.join(judgement.not_exercised)}"
    damage = [f"damage: {each}" for each in history.damage]
    if history.damaged > len(damage):
        damage.append(f"damage: {history.damaged - len(damage)} more")
    told = telling.text(path, judgement, zero=zero)
    return outcome, line, "\n".join(filter(None, [told, *damage]))


@app.command()
def show(
    history: OneHistory,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    namespace: Annotated[
        list[str] | None, typer.Option(help="Only this namespace; repeatable.")
    ] = None,
    name: Annotated[str, typer.Option(help="Only names like this: train-worker-*")] = "*",
    state: Annotated[bool, typer.Option(help="Also what was there at the start.")] = False,
    events: Annotated[bool, typer.Option(help="Also the cluster's own Events.")] = True,
) -> int:
    """A history as a timeline: what changed, when, and as which event."""
    file = History(history)
    console = _console()
    zero = float(file.part.get("started", 0.0))
    head = file.header
    console.print(
        Text(f"run {head.run}, cluster {head.cluster}; times in seconds after the ", "dim")
        + Text(f"start of {file.part['test']}" if file.part else "start of the recorder", "dim")
    )
    there = 0
    for change in telling.read_changes(file):
        if (
            (kind and change.kind not in kind)
            or (namespace and change.namespace not in namespace)
            or not fnmatch.fnmatchcase(change.name, name)
            or (not events and change.what.startswith("event "))
        ):
            continue
        if change.what.startswith("there") and not state:
            there += 1
            continue
        console.print(_styled(change, zero), soft_wrap=True)
    if there:
        console.print(Text(f"{there} objects were there at the start (--state shows them)", "dim"))
    for damage in file.damage:
        console.print(Text(f"damage: {damage}", "bold magenta"))
    return ExitCode.INFRASTRUCTURE if file.damaged else ExitCode.OK


def _styled(change: Change, zero: float) -> Text:
    style = _STYLES.get(change.source, "dim" if change.what.startswith("event ") else "")
    return Text.assemble(
        (f"{change.mono - zero:+9.2f} ", "cyan"),
        (f"#{change.seq:<7}", "dim"),
        (change.subject, style if style else "bold"),
        (f"  {change}", style),
    )


@app.command()
def diff(
    a: Annotated[Path, typer.Argument(metavar="A")],
    b: Annotated[Path, typer.Argument(metavar="B")],
    threshold: Annotated[
        float, typer.Option(help="Seconds by which the same change may come later.")
    ] = 5.0,
    events: Annotated[bool, typer.Option(help="Compare the cluster's own Events too.")] = False,
) -> int:
    """What happened in only one of two histories, and what came much later in one.

    0 when there is nothing of that, 1 when there is, 3 when a file is damaged.
    """
    console = _console()
    found = differing.compare(a, b, threshold=threshold, happenings=events)
    sides = ((a, "-", "red", found.only_a), (b, "+", "green", found.only_b))
    for path, sign, style, only in sides:
        if only:
            console.print(Text(f"only in {path}:", "bold"))
        for subject, step in only:
            text = f"{sign} {step.at:+9.2f} s  #{step.seq}  {subject}: {step.what}"
            console.print(Text(text, style), soft_wrap=True)
    if found.apart:
        console.print(Text(f"the same, but more than {threshold:g} s apart:", "bold"))
    for pair in found.apart:
        console.print(
            Text(
                f"~ {pair.subject}: {pair.a.what}  {pair.a.at:+.2f} s (#{pair.a.seq}),"
                f" {pair.b.at:+.2f} s (#{pair.b.seq}): {pair.apart:+.2f} s"
            ),
            soft_wrap=True,
        )
    console.print(Text(f"{found.same} changes in both", "dim"))
    for where, damage in found.damage:
        console.print(Text(f"damage: {where}: {damage}", "bold magenta"))
    if found.damage:
        return ExitCode.INFRASTRUCTURE  # what differs may be what is missing
    return ExitCode.BEHAVIOURS if found.any or found.apart else ExitCode.OK


def _console() -> Console:
    # a pipe has no width: nothing is to be cut there
    return Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)


def main() -> NoReturn:
    """Run the command; each error ends in a few lines and a settled exit code."""
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    return ended(app, "oracles", arguments, printed=True)
