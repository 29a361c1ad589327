"""Measured cells as JSON, a table and a plot; cells measured at different times are merged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.host import machine
from tests.bench.scale.plot import Panel, svg
from tests.bench.scale.settings import SETUPS
from tests.bench.scale.usage import ALONE

SCHEMA = "muster.scale.v1"
NAME = "scale"
#: above this line a person writes what the figures mean; what follows is made anew each time
MARK = "<!-- made by make bench: the rest is written anew with every cell -->"

Record = Mapping[str, Any]


def write(folder: Path, new: Iterable[Record]) -> list[Record]:
    """Put *new* cells beside those that ``scale.json`` has, replacing the same; returns all."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{NAME}.json"
    old = json.loads(file.read_text())["cells"] if file.exists() else []
    cells = {key(cell): cell for cell in [*old, *new]}
    ordered = [cells[name] for name in sorted(cells)]
    data = {"schema": SCHEMA, "machine": machine(), "cells": ordered}
    file.write_text(_json(data))
    page = folder / f"{NAME}.md"
    said = page.read_text().partition(MARK)[0] if page.exists() else "# Gangs at scale\n\n"
    page.write_text(f"{said}{MARK}\n\n{markdown(ordered)}")
    (folder / f"{NAME}.svg").write_text(picture(ordered))
    return ordered


def key(cell: Record) -> tuple[int, str, int]:
    """What makes a cell the same as another: scheduler, settings, nodes; in the report's order."""
    return list(SETUPS).index(cell["scheduler"]), line(cell), cell["nodes"]


def line(cell: Record) -> str:
    """What a line of the plot is called."""
    return f"{cell['scheduler']} {cell['version']}, {cell['limits']}"


_SHARED = (
    f"† Others used more than {ALONE} cores of this machine meanwhile: the rate says how slow"
    " it can be, and CPU seconds are what can be compared.",
    "",
)


def markdown(cells: Sequence[Record]) -> str:
    """The tables."""
    parts = [
        f"![gangs per second, time to the last admission, CPU per gang, peak memory]({NAME}.svg)\n",
        f"On {machine()}.\n",
        "| scheduler, limits | nodes | gangs admitted | gangs/s | first s | last s | idle GPU-s"
        " (share) | bound in s | partial | peak MiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(_row(cell) for cell in cells),
        "",
        *(_SHARED if any(_others(cell) > ALONE for cell in cells) else ()),
        "CPU seconds from the arrival to the last admission, and what the API server was asked for"
        " most:",
        "",
        "| scheduler, limits | nodes | scheduler | API server | etcd | kwok | bench | others"
        " | requests |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
        *(_used(cell) for cell in cells),
        "",
    ]
    return "\n".join(parts)


def _row(cell: Record) -> str:
    own = SETUPS[cell["scheduler"]].processes
    peak = " + ".join(str(cell["peak_mib"].get(name, "?")) for name in own)
    admitted = f"{cell['admitted']} of {cell['room']}"
    if cell["gave_up"]:
        admitted += f" ({cell['gave_up']})"
    first, last = (("–" if cell[k] is None else f"{cell[k]:.1f}") for k in ("first_s", "last_s"))
    shared = " †" if _others(cell) > ALONE else ""
    rate = f"{cell['gangs_per_second']:.3g}{shared}"
    partial = len(cell["partial_at_end"]) or "none"
    broken = f", {cell['violations_found']} over the grace" if cell["violations_found"] else ""
    return (
        f"| {line(cell)} | {cell['nodes']} | {admitted} | {rate} | {first}"
        f" | {last} | {cell['idle_gpu_s']} ({cell['idle_share']:.0%}) |"
        f" {cell['longest_binding_s']:.1f} | {partial}{broken} | {peak} |"
    )


def _own(cell: Record, *more: str) -> float:
    """CPU seconds that the scheduler used, and *more* processes."""
    cpu = cell["usage"]["cpu_s"]
    return float(sum(cpu.get(n, 0.0) for n in {*SETUPS[cell["scheduler"]].processes, *more}))


def _others(cell: Record) -> float:
    """Cores that others used meanwhile."""
    return float(cell["usage"]["cpu_s_of_others"]) / float(cell["usage"]["seconds"])


def _used(cell: Record) -> str:
    used, cpu = cell["usage"], cell["usage"]["cpu_s"]
    most = list(used["requests"].items())[:3]
    asked = ", ".join(f"{what} {n['count']} ({n['ms']:.1f} ms)" for what, n in most)
    rest = (f"{cpu.get(n, 0.0):.0f}" for n in ("kube-apiserver", "etcd", "kwok", "bench"))
    return (
        f"| {line(cell)} | {cell['nodes']} | {_own(cell):.0f} | {' | '.join(rest)} |"
        f" {_others(cell):.1f} cores for {used['seconds']:.0f} s | {asked} |"
    )


def picture(cells: Sequence[Record]) -> str:
    """How the figures grow with the nodes; cells in which nothing was admitted have no point."""
    shown = [cell for cell in cells if cell["admitted"]]
    names = list(dict.fromkeys(line(cell) for cell in shown))
    ticks = sorted({cell["nodes"] for cell in shown}) or [1]

    def panel(title: str, value: Any) -> Panel:
        lines = {
            name: [(cell["nodes"], value(cell)) for cell in shown if line(cell) == name]
            for name in names
        }
        return Panel(title, "nodes", lines, ticks)

    return svg(
        [
            panel("gangs admitted per second", lambda cell: cell["gangs_per_second"]),
            panel("seconds to the last admission", lambda cell: max(cell["last_s"], 0.1)),
            panel(
                "CPU seconds of scheduler and API server, per gang",
                lambda cell: max(0.01, _own(cell, "kube-apiserver") / cell["admitted"]),
            ),
            panel(
                "peak memory of the scheduler, MiB",
                lambda cell: sum(
                    cell["peak_mib"].get(n, 0) for n in SETUPS[cell["scheduler"]].processes
                ),
            ),
        ],
        names,
    )


def _json(data: Mapping[str, Any]) -> str:
    """A cell's field a line: small, and a change of one figure is a line of a diff."""
    cells = []
    for cell in data["cells"]:
        fields = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cell.items())
        cells.append(f"{{\n  {fields}\n }}")
    head = {k: v for k, v in data.items() if k != "cells"}
    return (
        "{\n"
        + "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items())
        + ' "cells": ['
        + ", ".join(cells)
        + "]\n}\n"
    )
