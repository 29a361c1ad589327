"""Another cluster than the run's, for proofs that need what the run's system does not have."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from clusters.cluster import Capability, ClusterSpec
from clusters.topology import Topology
from fixtures.plugin import context, makers
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.options import DEFAULT_OPERATOR, Combination, label
from fixtures.plugin.outcomes import RECORD
from fixtures.plugin.recording import Recorders
from fixtures.plugin.run import RunFolder
from fixtures.systems import installing
from oracles.recorder import Kind


@contextmanager
def system(
    config: pytest.Config, *, provider: str, topology: Topology, scheduler: str
) -> Iterator[SystemUnderTest]:
    """A cluster with the default operator and that scheduler, recorded; removed at the end.

    Raises:
        HarnessError: it cannot be made.
    """
    run = context.of(config).run
    assert run is not None
    chosen = makers.parse(scheduler)
    gangs, operator = makers.scheduler(chosen), makers.operator(makers.parse(DEFAULT_OPERATOR))
    combination = Combination(makers.parse(DEFAULT_OPERATOR), chosen, label(operator), label(gangs))
    version, maker = makers.kubernetes(None, provider), makers.provider(provider)
    maker.prepare([version], [*gangs.programs, *operator.programs])
    name = f"proof-{secrets.token_hex(3)}"
    folder = RunFolder(run.id, run.path / "elsewhere" / name)
    folder.inside.mkdir(parents=True)
    with ExitStack() as undo:
        cluster = maker.create(ClusterSpec(name, topology, version, run.id, makers.host_mounts()))
        undo.callback(maker.delete, name)
        recorders = Recorders(folder)
        undo.callback(recorders.close)
        kinds = [*operator.jobs.values(), *gangs.recorded()]
        book = recorders.book(
            cluster,
            {"operator": combination.operator_label, "scheduler": combination.scheduler_label},
            [Kind(each.api_version, each.kind) for each in kinds],
        )
        if Capability.LOAD_IMAGE in cluster.capabilities:
            maker.load_image(cluster, [makers.base_image()])
        installing.both(cluster, gangs, operator)
        yield SystemUnderTest(cluster, operator, gangs, combination, book)


def stands_in(request: pytest.FixtureRequest, other: SystemUnderTest) -> SystemUnderTest:
    """Let a test be judged on *other*: what a module's own fixture ``_found`` returns."""
    request.node.stash[RECORD].system = other
    return other
