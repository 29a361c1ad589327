"""Agents that do not come back, and rendezvous that close: real torchrun, on real nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.faults.systems import TakeSystemAway
from chaos.processes import Which
from chaos.site import Site
from chaos.target import Target
from fixtures.plugin import makers
from fixtures.plugin.clusters import SystemUnderTest
from suites.elastic import test_agents, test_etcd, test_freezing, test_workers
from suites.elastic.conftest import stage as stage
from suites.elastic.stage import Stage
from tests.proofs.elastic import Altered, Doubly, Frozen, Impatient

pytestmark = pytest.mark.proof

#: a version whose agents close the rendezvous when they leave (pytorch/pytorch#67742)
CLOSING = "1.10.2"

#: ``on(Kind, ...)``: the test's stage as another kind of stage
On = Callable[..., Stage]


@pytest.fixture
def on(stage: Stage) -> On:
    """The test's own stage, as a broken one."""
    return lambda kind, **more: kind(
        stage.cluster, stage.provider, more.pop("runtime", stage.runtime), stage.namespace,
        stage.injecting, stage.expect, stage.measure, **more,
    )  # fmt: skip


@pytest.mark.proves(
    "E06",
    by="PyTorch 1.10.2, where an agent that leaves closes the rendezvous",
    shows="met a closed rendezvous (RendezvousClosedError)",
)
def test_a_rendezvous_closes(on: On) -> None:
    runtime = makers.runtime(f"torch:{CLOSING}")
    test_agents.test_an_agent_told_to_stop_leaves_the_rendezvous_open(on(Stage, runtime=runtime))


@pytest.mark.proves(
    "E07", by="nobody makes the lost host's pod again", shows="training goes on after: "
)
def test_the_host_stays_away(system: SystemUnderTest, on: On) -> None:
    away = TakeSystemAway(Site.of(system.cluster), Target.operator(system.operator))
    test_agents.test_training_goes_on_after_the_host_pod_was_deleted(on(Doubly, other=away))


@pytest.mark.proves(
    "E08", by="an agent that may not restart its worker process", shows="agents count "
)
def test_an_agent_restarts_nothing(on: On) -> None:
    """It ends instead, and its kubelet starts it again: training goes on, but not by torchrun."""
    test_workers.test_a_killed_worker_process_is_restarted_once(
        on(Altered, altered={"max_restarts": 0})
    )


@pytest.mark.proves("E09", by="a frozen host that never thaws", shows="training goes on after: ")
def test_the_host_stays_frozen(on: On) -> None:
    test_freezing.test_a_frozen_pod_is_survived_and_does_no_harm_when_it_thaws(
        on(Frozen), Which.ALL
    )


@pytest.mark.proves(
    "E12",
    by="two jobs that do not name their rendezvous",
    shows="it met the other job on the same etcd",
)
def test_two_jobs_meet(on: On) -> None:
    test_etcd.test_two_jobs_that_do_not_name_their_rendezvous_do_not_meet(on(Impatient))
