"""``python -m reports gate RUN...``."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from oracles.errors import UsageError
from oracles.merging import Merged, load, merge
from reports import table, words
from reports.gate import expectations as expected
from reports.gate.judge import Verdict, judge
from reports.table import Entry


def gate(
    runs: Annotated[
        list[Path], typer.Argument(help="folders of runs, or results files", metavar="RUN...")
    ],
    expectations: Annotated[Path, typer.Option(help="what has to be in them")] = expected.FILE,
    matrix: Annotated[
        str, typer.Option(help="which systems have to be in them, as the expectations name them")
    ] = "e2e",
    last: Annotated[
        Path | None, typer.Option(help="the last report.json, or results: what passed there")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="tell every reason, not only the gravest")
    ] = False,
    today: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="day for quarantines (UTC)")
    ] = None,
) -> None:
    """Is a run green? 0 yes; 1 a behaviour says no; 3 nobody can tell. In three lines.

    Green: nothing that passed fails, every expected behaviour was judged, no known fault is gone
    without a word, and nothing was interrupted, inconclusive or cannot be read.
    """
    what = expected.read(expectations)
    what.matrix(matrix)  # a wrong name is an error of usage, whatever the run looks like
    merged, unreadable = _read(runs)
    before: list[Entry] = []
    if last is not None:
        try:
            before = table.read(last).entries
        except UsageError as error:
            unreadable.append(f"the last report cannot be read: {_line(error)}")
    verdict = judge(
        merged.runs,
        table.entries(merged.attempts),
        what,
        matrix=matrix,
        today=today.date() if today else _today(),
        last=before,
        unreadable=unreadable,
    )
    print(text(verdict, merged, everything=everything))
    if verdict.reasons:
        raise typer.Exit(verdict.exit_code)


def text(verdict: Verdict, merged: Merged, *, everything: bool = False) -> str:
    """Three lines that say why a run is not green; or that it is."""
    reasons = verdict.reasons
    if not reasons:
        head = (
            f"green: {words.attempts(len(merged.attempts))} in {len(merged.runs)}"
            f" run{'' if len(merged.runs) == 1 else 's'}, as expected"
        )
        return "\n".join([head, *(f"  {note}" for note in verdict.notes)])
    counts = Counter(reason.kind for reason in reasons)
    head = "not green: " + ", ".join(f"{number} {kind}" for kind, number in counts.items())
    if everything:
        told = [f"  {reason.what}\n      {reason.next}" for reason in reasons]
        return "\n".join([head, *told, *(f"  {note}" for note in verdict.notes)])
    first = reasons[0]
    more = f" (--all tells the other {len(reasons) - 1})" if len(reasons) > 1 else ""
    return f"{head}\n  {first.what}\n  next: {first.next}{more}"


def _read(paths: list[Path]) -> tuple[Merged, list[str]]:
    found, unreadable = [], []
    for path in paths:
        try:
            found.append(load(path))
        except UsageError as error:
            # a run that was to be judged and left nothing is no mistake of whoever asks
            unreadable.append(_line(error))
    return merge(found), unreadable


def _line(error: UsageError) -> str:
    return " ".join(str(error.args[0]).split("\n")[:2])


def _today() -> date:
    return datetime.now(UTC).date()
