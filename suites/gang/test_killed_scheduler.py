"""The scheduler dies between reserving room for a gang and binding it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from chaos.faults.api import ApiTrouble, held
from chaos.faults.systems import KillSystem
from chaos.injecting import Injector
from chaos.site import Site
from chaos.target import Target
from clusters.kube import Object
from clusters.resources import is_bound
from fixtures.plugin.given import Measuring
from oracles.errors import NotApplicable
from suites.gangs import gang
from suites.routes import through_proxy
from suites.stage import Stage
from suites.steps import SHORT

MEMBERS = 4
#: seconds until a gang's first binding is on its way
ON_ITS_WAY = 60.0
#: seconds until a scheduler that was killed has bound what it left: the next one first waits for
#: the lease of the one before (15 s, client-go's default), and then for its gangs' back-off
COMPLETED = 90.0


@pytest.mark.exclusive
@pytest.mark.behaviour("R06")
@pytest.mark.parametrize("bound", [0, 1], ids=["before any is bound", "when one is bound"])
def test_a_scheduler_killed_while_it_binds_leaves_no_partial_gang(
    stage: Stage,
    gpus: Callable[[int], int],
    inject: Injector,
    measure: Measuring,
    bound: int,
) -> None:
    """All requests to bind but the first *bound* are held, the scheduler is killed, they are cut.

    Until then all of the gang's room was reserved, in the memory of the process that died.
    """
    system, site = stage.system, Site.of(stage.cluster)
    target = Target.scheduler(system.scheduler)
    if system.scheduler.scheduler_name == "default-scheduler":
        raise NotApplicable(
            f"under {system.scheduler.name} the cluster's own scheduler binds, and its way to the"
            " API server cannot be changed"
        )
    gpus(stage.cluster.topology.gpus)
    route = through_proxy(system, target)
    inject(route)
    bindings = ApiTrouble(route, held("create", "/binding$", after=bound), acts=0)
    inject(bindings)
    stage.gangs = {"a": gang("a", MEMBERS)}
    stage.group("a")
    stage.pods("a")
    bindings.wait_held(1, deadline=ON_ITS_WAY)
    stage.wait_counts({"a": bound})
    killed = inject(KillSystem(site, target))
    bindings.drop_held()

    def whole(found: list[Object]) -> bool:
        return sum(map(is_bound, found)) == MEMBERS

    stage.wait("the next scheduler binds the whole gang", whole, deadline=COMPLETED)
    measure("bound after the scheduler was killed", time.time() - killed.t, "s")
    stage.hold({"a": MEMBERS}, SHORT)
