"""A stage for a proof: the suites' own, with somebody else in place of its scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import cast

from clusters import fakegpus
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.systems.protocols import GangScheduler
from suites.gangs import Block
from suites.pods import ADMISSION
from suites.stage import Stage, gpus_by_node

#: seconds that a broken system gets to bind what the suites give it a minute for
SOON = 8.0
#: the fixture ``on_stage``: :func:`staged` in the test's own namespace, with its keywords
OnStage = Callable[..., AbstractContextManager[Stage]]


@contextmanager
def staged(
    system: SystemUnderTest,
    ns: str,
    expect: Expecting,
    measure: Measuring,
    *,
    scheduler: object | None = None,
    kind: type[Stage] = Stage,
    admission: float = ADMISSION,
) -> Iterator[Stage]:
    """A stage; what is made or changed outside of its namespace is undone at the end.

    Args:
        scheduler: who stands in place of the real one.
        kind: of the stage.
        admission: seconds within which what has room is bound.
    """
    with ExitStack() as undo:
        stood_in = replace(system, scheduler=cast("GangScheduler", scheduler or system.scheduler))
        yield kind(stood_in, ns, expect, measure, undo, admission=admission)


class Doubling(Stage):
    """When GPUs are taken, their node says from then on that it has twice as many."""

    def block(self, blocks: Iterable[Block]) -> None:
        """Take them, and say so; in the cluster's GPU mode."""
        super().block(blocks)
        node, have = next(iter(gpus_by_node(self.kube).items()))
        self.undo.callback(fakegpus.wait, self.kube, node, have)
        self.undo.callback(fakegpus.change, self.cluster, node, have)
        fakegpus.change(self.cluster, node, 2 * have)
        fakegpus.wait(self.kube, node, 2 * have)
