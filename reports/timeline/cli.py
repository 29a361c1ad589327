"""``python -m reports timeline HISTORY...``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from oracles.errors import UsageError
from oracles.invariants.base import Violation
from oracles.judging import Judgement, judge_history
from oracles.reading import History
from reports.timeline.render import write


def timeline(
    histories: Annotated[
        list[Path], typer.Argument(help="histories, whole ones or slices", metavar="HISTORY...")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="file to write, or a folder; default: beside the history"
        ),
    ] = None,
) -> None:
    """Write a page per history: all that was seen over one axis of time, judged anew."""
    folder = output is not None and (output.is_dir() or len(histories) > 1)
    if output is not None and folder and output.exists() and not output.is_dir():
        raise UsageError(
            f"{len(histories)} histories do not fit into the file {output}",
            hint="name a folder, or leave -o out",
        )
    for path in histories:
        target = path.with_suffix(".html")
        if output is not None:
            target = output / target.name if folder else output
        made, judgement = page(path, target)
        found, known = len(judgement.violations), len(judgement.excused)
        told = f"{found} broken promise{'' if found == 1 else 's'}"
        print(f"{made}: {judgement.outcome}, {told}" + (f", {known} more known" if known else ""))


def page(path: Path, target: Path) -> tuple[Path, Judgement]:
    """Judge a history, and write its page.

    Raises:
        HistoryError: nothing can be said of the file.
    """
    history = History(path)
    judgement = judge_history(history)
    again = History(path)
    made = write(
        again.events(),
        target,
        title=_title(path, history.header.facts),
        outcome=judgement.outcome,
        violations=[*judgement.violations, *map(_unsure, judgement.unsure)],
        excused=judgement.excused,
        header=again.header,
    )
    return made, judgement


def _title(path: Path, facts: Mapping[str, Any]) -> str:
    part = facts.get("slice")
    return str((part.get("test") if isinstance(part, Mapping) else None) or path.stem)


def _unsure(violation: Violation) -> Violation:
    """A violation that is only possible: what was missed meanwhile might excuse it."""
    return replace(violation, message=f"{violation.message} (unsure: events are missing)")
