"""Room that goes and comes: nodes that are cordoned, lose their GPUs, or are lost themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from clusters import fakegpus
from clusters.cluster import Capability, ClusterProvider
from clusters.kube import NODES, Kube, Object, conditions
from fixtures.plugin.given import Expecting
from suites import promises
from suites.gangs import gang
from suites.promises import Promise
from suites.rows import Row, Step, case, play
from suites.stage import Stage, gpus_by_node
from suites.steps import SHORT, Bound, Held, Made, Submit

#: seconds until a node whose kubelet is silent is NotReady (``--node-monitor-grace-period``, 50 s
#: by default), with as much again for a busy machine
NOT_READY = 110.0


@dataclass(frozen=True)
class Cordon:
    """Cordon nodes with GPUs, by index in the order of their names; None: all of them."""

    nodes: tuple[int, ...] | None = None

    def __call__(self, stage: Stage) -> None:
        for name in _chosen(stage, self.nodes):
            stage.undo.callback(_schedulable, stage.kube, name, True)
            _schedulable(stage.kube, name, False)


@dataclass(frozen=True)
class Uncordon:
    """Uncordon all nodes that a step cordoned."""

    def __call__(self, stage: Stage) -> None:
        stage.undo.close()


@dataclass(frozen=True)
class TakeGpus:
    """The GPUs of nodes are gone, as when a device plugin loses them."""

    nodes: tuple[int, ...] | None = None

    def __call__(self, stage: Stage) -> None:
        have = gpus_by_node(stage.kube)
        for name in _chosen(stage, self.nodes):
            stage.undo.callback(fakegpus.change, stage.cluster, name, have[name])
            fakegpus.change(stage.cluster, name, 0)
            fakegpus.wait(stage.kube, name, 0)


class GiveGpus(Uncordon):
    """They are back."""


TABLE = [
    case(
        Row(
            (gang("a", 2),),
            (Cordon(), Submit("a"), Made("a", 2), Held(SHORT, a=0), Uncordon(), Bound(a=2)),
        ),
        pytest.mark.behaviour("S08", case="all nodes cordoned"),
        pytest.mark.core,
    ),
    case(
        Row(
            (gang("a", 5),),
            (Cordon((1,)), Submit("a"), Made("a", 5), Held(SHORT, a=0), Uncordon(), Bound(a=5)),
            needs=(Promise.GANGS, Promise.FITS),
        ),
        pytest.mark.behaviour("S08", case="one of two nodes cordoned"),
        pytest.mark.topology("thread", "gpu-2x4"),
    ),
    case(
        # a cordon is for new pods only; and it came after the scheduler has used the node
        Row(
            (gang("a", 2), gang("b", 2)),
            (
                Submit("a"), Bound(a=2), Cordon(), Submit("b"), Made("b", 2),
                Held(SHORT, a=2, b=0), Uncordon(), Bound(a=2, b=2),
            ),
        ),
        pytest.mark.behaviour("S08", case="cordoned while a gang runs"),
    ),
    case(
        Row(
            (gang("a", 2),),
            (TakeGpus(), Submit("a"), Made("a", 2), Held(SHORT, a=0), GiveGpus(), Bound(a=2)),
        ),
        pytest.mark.behaviour("S08", case="all GPUs gone"),
        pytest.mark.core,
    ),
    case(
        Row(
            (gang("a", 5),),
            (TakeGpus((1,)), Submit("a"), Made("a", 5), Held(SHORT, a=0), GiveGpus(), Bound(a=5)),
            needs=(Promise.GANGS, Promise.FITS),
        ),
        pytest.mark.behaviour("S08", case="GPUs of one of two nodes gone"),
        pytest.mark.topology("thread", "gpu-2x4"),
    ),
]  # fmt: skip


@pytest.mark.exclusive
@pytest.mark.parametrize("row", TABLE)
def test_room_that_goes_and_comes(row: Row, stage: Stage, playing: Callable[[Row], None]) -> None:
    """See the row."""
    stage.cluster.require(Capability.OWN_CLUSTER)
    playing(row)


@pytest.mark.behaviour("S09")
@pytest.mark.exclusive
def test_a_node_that_was_lost_is_used_again(
    stage: Stage, provider: ClusterProvider, step: Expecting
) -> None:
    """A gang that needs every GPU waits while one node is away, and is bound when it is back."""
    stage.cluster.require(Capability.OWN_CLUSTER, Capability.NODE_POWER)
    name = list(gpus_by_node(stage.kube))[-1]

    def stop(stage: Stage) -> None:
        stage.undo.callback(provider.start_node, stage.cluster, name)
        provider.stop_node(stage.cluster, name)
        _wait_ready(stage.kube, name, ready=False, deadline=NOT_READY)

    def start(stage: Stage) -> None:
        stage.undo.close()
        _wait_ready(stage.kube, name, ready=True, deadline=NOT_READY)

    size = stage.cluster.topology.gpus
    gangs = promises.why_not(stage.scheduler.name, Promise.FITS) is None
    waiting: tuple[Step, ...] = (Held(SHORT, a=0),) if gangs else ()
    row = Row(
        (gang("a", size),),
        (stop, Submit("a"), Made("a", size), *waiting, start, Bound(a=size)),
    )
    play(row, stage, step)


def _chosen(stage: Stage, nodes: tuple[int, ...] | None) -> list[str]:
    names = list(gpus_by_node(stage.kube))
    return names if nodes is None else [names[index] for index in nodes]


def _schedulable(kube: Kube, name: str, schedulable: bool) -> None:
    kube.patch(NODES, name, {"spec": {"unschedulable": None if schedulable else True}})


def _wait_ready(kube: Kube, name: str, *, ready: bool, deadline: float) -> None:
    def so(nodes: list[Object]) -> bool | None:
        return True if nodes and (conditions(nodes[0]).get("Ready") == "True") is ready else None

    kube.wait(
        NODES, so, fields=f"metadata.name={name}", deadline=deadline,
        why=f"node {name} {'Ready' if ready else 'not Ready'}",
    )  # fmt: skip
