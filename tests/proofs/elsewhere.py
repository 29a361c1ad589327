"""Another cluster than the run's, for proofs that need what the run's system does not have."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from clusters.cluster import Capability, ClusterSpec
from clusters.topology import Topology, load
from fixtures.plugin import context, makers
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.options import (
    DEFAULT_OPERATOR,
    DEFAULT_SCHEDULER,
    DEFAULT_TOPOLOGY,
    Combination,
    label,
)
from fixtures.plugin.outcomes import RECORD
from fixtures.plugin.owner import begin_book
from fixtures.plugin.recording import Recorders
from fixtures.plugin.run import RunFolder
from fixtures.systems import installing

EMBEDDED = "embedded"


@contextmanager
def system(
    config: pytest.Config,
    *,
    provider: str,
    topology: Topology,
    scheduler: str,
    operator: str = DEFAULT_OPERATOR,
) -> Iterator[SystemUnderTest]:
    """A cluster with that operator and scheduler, recorded; removed at the end.

    Raises:
        HarnessError: it cannot be made.
    """
    run = context.of(config).run
    assert run is not None
    refs = makers.parse(operator), makers.parse(scheduler)
    jobs, gangs = makers.operator(refs[0]), makers.scheduler(refs[1])
    combination = Combination(*refs, label(jobs), label(gangs))
    version, maker = makers.kubernetes(None, provider), makers.provider(provider)
    maker.prepare([version], [*gangs.programs, *jobs.programs])
    name = f"proof-{secrets.token_hex(3)}"
    folder = RunFolder(run.id, run.path / "elsewhere" / name)
    folder.inside.mkdir(parents=True)
    with ExitStack() as undo:
        cluster = maker.create(ClusterSpec(name, topology, version, run.id, makers.host_mounts()))
        undo.callback(maker.delete, name)
        recorders = Recorders(folder)
        undo.callback(recorders.close)
        book = begin_book(recorders, cluster, combination, [combination])
        if Capability.LOAD_IMAGE in cluster.capabilities:
            maker.load_image(cluster, [makers.base_image()])
        installing.both(cluster, gangs, jobs)
        yield SystemUnderTest(cluster, jobs, gangs, combination, book)


def stands_in(request: pytest.FixtureRequest, other: SystemUnderTest) -> SystemUnderTest:
    """Let a test be judged on *other*: what a module's own fixture ``_found`` returns."""
    request.node.stash[RECORD].system = other
    return other


def on(version: str) -> pytest.MarkDecorator:
    """Run a proof on a release of training-operator: give the fixture ``release``."""
    name = f"training-operator:{version}"
    return pytest.mark.parametrize("release", [name], indirect=True, scope="module")


@contextmanager
def released(
    config: pytest.Config, combination: Combination, name: str
) -> Iterator[SystemUnderTest]:
    """An embedded cluster with that operator: the run's own, or one beside it.

    Raises:
        HarnessError: it cannot be made.
    """
    shared = context.of(config)
    if shared.options.provider == EMBEDDED and combination.operator_label == name:
        assert shared.clusters is not None
        yield shared.clusters.system(combination)
        return
    with system(
        config,
        provider=EMBEDDED,
        topology=load(DEFAULT_TOPOLOGY),
        scheduler=DEFAULT_SCHEDULER,
        operator=name,
    ) as found:
        yield found
