"""The summary of one run or of several: cells, figures, and what was not run."""

from __future__ import annotations

import io
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from oracles.catalogue import catalogue
from oracles.outcome import Outcome
from oracles.results import Attempt, Cell, Run, cells, differing


def of(runs: Sequence[Run], attempts: Iterable[Attempt]) -> dict[str, Any]:
    """The summary as JSON. Derived from the attempts, so never an input of anything of ours."""
    made = cells(attempts)
    common, varying = differing(made)
    seen = {cell.behaviour for cell in made}
    return {
        "format": "summary.v1",
        "runs": [run.model_dump(mode="json") for run in runs],
        "totals": {outcome: sum(c.outcome is outcome for c in made) for outcome in Outcome},
        "common": common,
        "differing": varying,
        "cells": [_cell(cell) for cell in made],
        "not_run": [
            {"behaviour": b.id, "level": b.level, "title": b.title}
            for b in catalogue().behaviours
            if b.id not in seen
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    behaviour = catalogue().get(cell.behaviour)
    worst = next(a for a in cell.attempts if a.outcome is cell.outcome)
    known = next((a.known for a in cell.attempts if a.known), None)
    return {
        "behaviour": cell.behaviour,
        "case": cell.case,
        "level": behaviour.level,
        "title": behaviour.title,
        "system": cell.system._asdict(),
        "outcome": cell.outcome,
        "counts": cell.counts,
        "known": known,
        "reason": worst.reason,
        "seconds": _spread(cell.durations),
        "measures": [
            {"name": name, "unit": unit, **(_spread(values) or {})}
            for (name, unit), values in sorted(cell.measures.items())
        ],
        "evidence": [f"{a.run}/{path}" for a in cell.attempts for path in a.evidence],
    }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    """How figures lie: attempts, minimum, median, maximum."""
    if not values:
        return None
    return {
        "attempts": len(values),
        "min": min(values),
        "median": statistics.median(values),
        "max": max(values),
    }


def terminal(summary: dict[str, Any]) -> str:
    """The table for a terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("behaviour", *summary["differing"], "outcome"):
        table.add_column(column, overflow="fold")
    table.add_column("seconds (min/median/max)", justify="right")
    for cell in summary["cells"]:
        table.add_row(
            _name(cell), *_system(summary, cell), _counts(cell, "\n"), _figures(cell["seconds"])
        )
    buffer = io.StringIO()
    Console(file=buffer, width=110, no_color=True, markup=False).print(table)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return "\n".join([_common(summary), *lines, _totals(summary)])


def markdown(summary: dict[str, Any]) -> str:
    """The summary as Markdown."""
    parts = summary["differing"]
    lines = ["# Results", "", _totals(summary), "", _common(summary), ""]
    lines += _rows(
        ("run", "started (UTC)", "seed", "host", "versions"),
        (
            (
                run["id"],
                run["started"] + ("" if run["ended"] else " (did not end)"),
                run["seed"],
                _host(run["host"]),
                ", ".join(f"{name} {version}" for name, version in run["versions"].items()),
            )
            for run in summary["runs"]
        ),
    )
    lines += ["## Behaviours", ""]
    lines += _rows(
        ("behaviour", "level", "promise", *parts, "outcome", "seconds (min/median/max)"),
        (
            (
                _name(cell),
                cell["level"],
                cell["title"],
                *_system(summary, cell),
                _counts(cell, ", "),
                _figures(cell["seconds"]),
            )
            for cell in summary["cells"]
        ),
    )
    told = [cell for cell in summary["cells"] if cell["outcome"] != Outcome.PASS]
    if told:
        lines += ["## What was not passed, and why", ""]
        lines += _rows(
            ("behaviour", *parts, "outcome", "why", "evidence"),
            (
                (
                    _name(cell),
                    *_system(summary, cell),
                    cell["outcome"],
                    cell["reason"],
                    ", ".join(cell["evidence"]),
                )
                for cell in told
            ),
        )
    measured = [(cell, m) for cell in summary["cells"] for m in cell["measures"]]
    if measured:
        lines += ["## Figures", ""]
        lines += _rows(
            ("behaviour", *parts, "measure", "unit", "attempts", "min/median/max"),
            (
                (
                    _name(cell),
                    *_system(summary, cell),
                    m["name"],
                    m["unit"],
                    m["attempts"],
                    _figures(m),
                )
                for cell, m in measured
            ),
        )
    if summary["not_run"]:
        lines += ["## Not run", ""]
        lines += _rows(
            ("behaviour", "level", "promise"),
            ((b["behaviour"], b["level"], b["title"]) for b in summary["not_run"]),
        )
    return "\n".join(lines).rstrip() + "\n"


def _rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    def line(values: Sequence[object]) -> str:
        texts = (str(v).replace("|", "\\|").replace("\n", "<br>") for v in values)
        return f"| {' | '.join(texts)} |"

    return [line(head), line(["---"] * len(head)), *map(line, rows), ""]


def _host(host: dict[str, Any]) -> str:
    return f"{host['cpus']} CPUs, {host['memory'] >> 30} GiB, {host['os']}"


def _name(cell: dict[str, Any]) -> str:
    return f"{cell['behaviour']} {cell['case']}".strip()


def _common(summary: dict[str, Any]) -> str:
    parts = [f"{k} {v}" if k == "kubernetes" else v for k, v in summary["common"].items()]
    return f"On {', '.join(parts)}." if parts else ""


def _system(summary: dict[str, Any], cell: dict[str, Any]) -> list[str]:
    return [cell["system"][part] or "-" for part in summary["differing"]]


def _counts(cell: dict[str, Any], between: str) -> str:
    counts = cell["counts"]
    if sum(counts.values()) == 1:
        return str(cell["outcome"])
    return between.join(f"{number} {outcome}" for outcome, number in counts.items())


def _figures(spread: dict[str, Any] | None) -> str:
    if spread is None:
        return "-"
    if spread["attempts"] == 1:
        return f"{spread['min']:.4g}"
    return "/".join(f"{spread[key]:.4g}" for key in ("min", "median", "max"))


def _totals(summary: dict[str, Any]) -> str:
    totals = [f"{n} {outcome}" for outcome, n in summary["totals"].items() if n]
    number = len(summary["cells"])
    return f"{number} behaviours on their systems: {', '.join(totals) or 'nothing was run'}"
