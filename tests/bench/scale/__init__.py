"""How gang schedulers do with many gangs at once, on embedded clusters of up to 1,000 nodes.

All is real but nodes and pods. Each cell (scheduler, nodes, limits of its client) has a cluster of
its own, on which pods of somebody else hold the GPUs of 4 % of the nodes. All gangs are made while
nobody decides on them; the scheduler is then started (of Kueue, which takes part in making pods,
the queue is opened), and that moment is the arrival of all. What happens is read from one watch of
pods that have a node. Some time after the last admission the invariants of the catalogue judge it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.bench.figures import Figure
from tests.bench.scale import report, settings
from tests.bench.scale.cell import Cell
from tests.bench.scale.cell import measure as measure_cell


def measure(cells: Sequence[Cell], folder: Path) -> list[Figure]:
    """Measure *cells* one after the other; each is in ``scale.json`` of *folder* once it is done.

    Raises:
        HarnessError: a cell cannot be measured.
    """
    figures = []
    for cell in cells:
        record = measure_cell(cell)
        report.write(folder, [record])
        title = f"{report.line(record)}, {cell.nodes} nodes"
        figures += [
            Figure(f"{title}: gangs admitted", "1/s", (record["gangs_per_second"],)),
            Figure(f"{title}: in part at the end", "1", (len(record["partial_at_end"]),), bound=0),
        ]
    return figures


def cells(
    nodes: Sequence[int] = (),
    schedulers: Sequence[str] = (),
    limits: Sequence[str] = (),
    within: float = 900.0,
    quiet: float = 0.0,
    permit_wait: int = settings.PERMIT_WAIT,
) -> list[Cell]:
    """All combinations; by default the smallest size, every scheduler, and raised limits."""
    return [
        Cell(scheduler, size, settings.LIMITS[name], permit_wait, within, quiet)
        for size in nodes or (100,)
        for scheduler in schedulers or settings.SETUPS
        for name in limits or ("raised",)
    ]
