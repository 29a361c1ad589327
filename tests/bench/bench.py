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

from tests.bench import e2e, judging, recorder, startup
from tests.bench.figures import Figure

BENCHES: dict[str, Callable[[int], list[Figure]]] = {
    "startup": startup.measure,
    "e2e": e2e.measure,
    "recorder": recorder.measure,
    "judging": judging.measure,
}


def main() -> int:
    """Run the benches that are asked for; print a table and write ``out/bench.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", nargs="*", help=f"of {', '.join(BENCHES)}; all when none is named")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("out/bench.json"))
    options = parser.parse_args()
    if unknown := set(options.bench) - set(BENCHES):
        parser.error(f"no bench {', '.join(sorted(unknown))}")
    figures: list[Figure] = []
    for name in options.bench or BENCHES:
        figures += BENCHES[name](options.rounds)
    _print(figures)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    record = {"measured": time.strftime("%Y-%m-%d %H:%M"), "figures": [asdict(f) for f in figures]}
    options.out.write_text(json.dumps(record, indent=1))
    return 1 if any(figure.kept is False for figure in figures) else 0


def _print(figures: list[Figure]) -> None:
    table = Table("figure", "runs", "min", "median", "max", "unit", "bound", box=None)
    for f in figures:
        bound = "" if f.bound is None else f"{f.bound:g} {'kept' if f.kept else 'NOT KEPT'}"
        values = (min(f.samples), f.median, max(f.samples))
        table.add_row(f.name, str(len(f.samples)), *(f"{v:.2f}" for v in values), f.unit, bound)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
