"""Fixtures of the suites' step tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from suites import collecting, promises
from suites.rows import Row, play
from suites.stage import Stage


@pytest.fixture
def stage(
    system: SystemUnderTest, ns: str, expect: Expecting, measure: Measuring
) -> Iterator[Stage]:
    """The test's room; what was made or changed outside of its namespace is undone at the end."""
    with ExitStack() as undo:
        yield Stage(system, ns, expect, measure, undo)


@pytest.fixture
def playing(stage: Stage, gpus: Callable[[int], int], step: Expecting) -> Callable[[Row], None]:
    """``playing(row)`` plays a row, if the scheduler promises it, and holds the GPUs it needs."""

    def run(row: Row) -> None:
        promises.require(stage.scheduler, *row.needs)
        if lease := row.lease(stage.cluster.topology.gpus):
            gpus(lease)
        play(row, stage, step)

    return run


@pytest.fixture
def collected(system: SystemUnderTest) -> None:
    """For tests that delete jobs: whoever deletes what they leave knows them."""
    collecting.wait(system)
