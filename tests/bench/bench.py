"""``make bench``: the figures that the README states, as ratios measured in one run.

Not a test: a figure that is out of its bound makes the command end with 1, and says so, but no
test suite depends on how fast a machine is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench import e2e, judging, recorder, scale, startup
from tests.bench.figures import Figure
from tests.bench.scale import settings

BENCHES: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "startup": lambda options: startup.measure(options.rounds),
    "e2e": lambda options: e2e.measure(options.rounds),
    "recorder": lambda options: recorder.measure(options.rounds),
    "judging": lambda options: judging.measure(options.rounds),
    "scale": lambda options: _scale(options),
}


def main() -> int:
    """Run the benches that are asked for; print a table and write ``out/bench.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", nargs="*", help=f"of {', '.join(BENCHES)}; all when none is named")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("out/bench.json"))
    _add_scale(parser)
    options = parser.parse_args()
    if unknown := set(options.bench) - set(BENCHES):
        parser.error(f"no bench {', '.join(sorted(unknown))}")
    figures: list[Figure] = []
    for name in options.bench or BENCHES:
        figures += BENCHES[name](options)
    _print(figures)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    record = {"measured": time.strftime("%Y-%m-%d %H:%M"), "figures": [asdict(f) for f in figures]}
    options.out.write_text(json.dumps(record, indent=1))
    return 1 if any(figure.kept is False for figure in figures) else 0


def _add_scale(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "scale",
        "gangs that arrive at once on an embedded cluster, once for each combination; unless said"
        " otherwise the smallest size only: 100 nodes, 20 gangs of 64 pods, half a minute to two"
        " for each scheduler. The whole series: scale --nodes 100 --nodes 250 --nodes 500"
        " --nodes 1000",
    )
    group.add_argument("--nodes", type=int, action="append", help="a multiple of 25; repeatable")
    group.add_argument(
        "--scheduler", choices=list(settings.SETUPS), action="append", help="repeatable"
    )
    group.add_argument(
        "--limits", choices=list(settings.LIMITS), action="append",
        help="requests a second of its client: as released, or raised (the default), or that and"
        " next to nothing in its log; repeatable",
    )  # fmt: skip
    group.add_argument(
        "--within", type=float, default=900.0, help="seconds until a cell is given up"
    )
    group.add_argument(
        "--quiet", type=float, default=0.0, help="seconds to wait at the most, before each cell,"
        " until nobody else works on this machine",
    )  # fmt: skip
    group.add_argument(
        "--folder", type=Path, default=Path("out"), help="of scale.json, .md and .svg: cells are"
        " put beside those that are there",
    )  # fmt: skip


def _scale(options: argparse.Namespace) -> list[Figure]:
    cells = scale.cells(
        options.nodes, options.scheduler, options.limits, options.within, options.quiet
    )
    return scale.measure(cells, options.folder)


def _print(figures: list[Figure]) -> None:
    table = Table("figure", "runs", "min", "median", "max", "unit", "bound", box=None)
    for f in figures:
        bound = "" if f.bound is None else f"{f.bound:g} {'kept' if f.kept else 'NOT KEPT'}"
        values = (min(f.samples), f.median, max(f.samples))
        table.add_row(f.name, str(len(f.samples)), *(f"{v:.2f}" for v in values), f.unit, bound)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
