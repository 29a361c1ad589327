"""Queues whose shares are not the ones that were asked for, on clusters of their own.

The scheduler of a run may have no queues, so each scheduler that has is installed on an embedded
cluster: it takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

import pytest

from clusters.cluster import Cluster
from clusters.topology import load
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.options import Combination
from fixtures.systems.protocols import GangScheduler
from suites.sched import test_queues
from suites.sched.test_queues import teams as teams
from suites.stage import Stage
from tests.proofs import elsewhere
from tests.proofs.naive import Instead
from tests.proofs.staging import SOON, OnStage

pytestmark = pytest.mark.proof

SCHEDULERS = ("volcano", "kueue")


class Wrong(Instead):
    """A scheduler whose queues have other shares than they should.

    Attributes:
        times: their real shares are so many times larger.
        lends: None: as asked for.
    """

    def __init__(self, real: GangScheduler) -> None:
        super().__init__(real, real.scheduler_name)
        self.times = 1
        self.lends: bool | None = None

    def queues(
        self, cluster: Cluster, namespace: str, shares: Mapping[str, int], *, lend: bool
    ) -> AbstractContextManager[None]:
        """Not as asked for."""
        changed = {name: share * self.times for name, share in shares.items()}
        lends = lend if self.lends is None else self.lends
        return self.real.queues(cluster, namespace, changed, lend=lends)


@pytest.fixture(scope="module", params=SCHEDULERS)
def queueing(request: pytest.FixtureRequest) -> Iterator[SystemUnderTest]:
    """A scheduler with queues."""
    with elsewhere.system(
        request.config, provider="embedded", topology=load("thread"), scheduler=request.param
    ) as found:
        yield found


@pytest.fixture(name="_found")
def _instead(
    request: pytest.FixtureRequest, _muster_system: Combination, queueing: SystemUnderTest
) -> SystemUnderTest:
    return elsewhere.stands_in(request, queueing)


@pytest.fixture
def wrong(system: SystemUnderTest) -> Wrong:
    """What is wrong is said by the test."""
    return Wrong(system.scheduler)


@pytest.fixture
def stage(on_stage: OnStage, wrong: Wrong) -> Iterator[Stage]:
    """With such queues."""
    with on_stage(scheduler=wrong) as made:
        yield made


@pytest.mark.proves("S07", by="queues with twice their share", shows="gang over: ")
def test_a_share_is_too_large(stage: Stage, wrong: Wrong, teams: Callable[..., object]) -> None:
    wrong.times = 2
    test_queues.test_a_gang_over_its_queues_share_waits(stage, teams)  # type: ignore[arg-type]


@pytest.mark.proves("S07", by="queues that do not lend", shows="bound: 6 of large")
def test_nothing_is_lent(stage: Stage, wrong: Wrong, teams: Callable[..., object]) -> None:
    wrong.lends = False
    stage.admission = SOON
    test_queues.test_idle_room_of_another_queue_is_borrowed(stage, teams)  # type: ignore[arg-type]
