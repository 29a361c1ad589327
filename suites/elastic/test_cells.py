"""The table of disturbances: each is survived within a bound, and measured."""

from __future__ import annotations

import pytest

from suites.elastic import disturbing
from suites.elastic.cells import Cell, selected
from suites.elastic.stage import Stage


@pytest.mark.alone  # a figure that was taken beside other tests is one of theirs, too
@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(cell, id=cell.id, marks=pytest.mark.behaviour(cell.behaviour, case=cell.id))
        for cell in selected()
    ],
)
def test_training_goes_on_after_a_disturbance(stage: Stage, cell: Cell) -> None:
    """An agent is disturbed as the cell says; the job trains again, and rightly."""
    disturbing.run(stage, cell)
