"""The table of disturbances, and its pairwise core."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles.catalogue import catalogue
from oracles.errors import UsageError
from suites.elastic import cells
from suites.elastic.cells import Cell


def test_the_core_has_every_legal_pair_in_at_most_20_cells() -> None:
    core = cells.core()
    assert len(core) <= 20
    assert cells.pairs(core) == cells.pairs(cells.cross())


def test_each_cell_of_the_core_is_there_once_and_legal() -> None:
    core = cells.core()
    assert len(set(core)) == len(core)
    assert set(core) <= set(cells.cross())


def test_the_core_is_what_the_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed = cells.CORE.read_text()
    monkeypatch.setattr(cells, "CORE", tmp_path / "core.yaml")
    cells.write_core()
    assert (tmp_path / "core.yaml").read_text() == committed


def test_a_core_that_lacks_a_cell_lacks_a_pair() -> None:
    # each was chosen for a pair that none before it had, so the last one at least is needed
    chosen = cells.pairwise(cells.cross())
    assert cells.pairs(chosen[:-1]) < cells.pairs(cells.cross())


def test_every_value_occurs_in_the_cross() -> None:
    seen = {value for pair in cells.pairs(cells.cross()) for value in pair}
    assert seen == {(column, v) for column, values in cells.VALUES.items() for v in values}


@pytest.mark.parametrize(
    "line",
    [
        "kill-host-worker-kept-rendezvous-c10d",
        "term-host-agent-gone-rest-c10d",
        "kill-host-agent-grace-rest-etcd",
        "term-other-worker-grace-rest-c10d",
    ],
)
def test_what_cannot_be_is_illegal(line: str) -> None:
    cell = Cell(*line.split("-"))
    assert cell.illegal
    assert cell not in cells.cross()


@pytest.mark.parametrize(
    "line",
    ["kill-host-agent-kept-rest", "maim-host-agent-kept-rest-c10d",
     "kill-host-worker-kept-rendezvous-c10d"],
)  # fmt: skip
def test_a_broken_core_is_refused(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "CORE", tmp_path / "core.yaml")
    cells.CORE.write_text(f"- {line}\n")
    with pytest.raises(UsageError, match=r"no cell|no worker processes"):
        cells.core()


def test_the_environment_asks_for_the_whole_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cells.FULL_CROSS, raising=False)
    assert cells.selected() == cells.core()
    monkeypatch.setenv(cells.FULL_CROSS, "1")
    assert cells.selected() == cells.cross()
    monkeypatch.setenv(cells.FULL_CROSS, "yes")
    with pytest.raises(UsageError):
        cells.selected()


def test_cells_belong_to_behaviours_of_the_catalogue() -> None:
    for cell in cells.cross():
        assert catalogue().get(cell.behaviour).group == "elastic"
    assert Cell("kill", "other", "agent", "kept", "rest", "c10d").behaviour == "E05"
    assert Cell("term", "other", "agent", "kept", "rest", "c10d").behaviour == "E06"
    assert Cell("kill", "host", "agent", "gone", "rest", "c10d").behaviour == "E07"
    assert Cell("kill", "host", "agent", "gone", "rest", "etcd").behaviour == "E05"
    assert Cell("kill", "other", "worker", "kept", "rest", "c10d").behaviour == "E08"
    assert Cell("stop", "host", "agent", "kept", "rest", "c10d").behaviour == "E09"
    assert Cell("stop", "host", "agent", "kept", "shrink", "c10d").behaviour == "E04"
