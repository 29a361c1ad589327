"""Queues of teams: a share is kept, lent and given back, by whole gangs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.cluster import Capability
from fixtures.workloads import quick_pods
from suites import promises
from suites.gangs import Gang, gang
from suites.promises import Promise
from suites.stage import Stage
from suites.steps import SHORT

Teams = tuple[str, str]


@pytest.fixture
def teams(stage: Stage, gpus: Callable[[int], int]) -> Callable[..., Teams]:
    """``teams(lend=False)`` gives two queues the halves of the cluster's GPUs; their names."""

    def make(*more: Promise, lend: bool) -> Teams:
        promises.require(stage.scheduler, Promise.QUEUES, *more)
        total = gpus(stage.cluster.topology.gpus)
        ours, theirs = f"{stage.ns}-ours", f"{stage.ns}-theirs"
        shares = {ours: total // 2, theirs: total - total // 2}
        stage.undo.enter_context(stage.scheduler.queues(stage.cluster, stage.ns, shares, lend=lend))
        return ours, theirs

    return make


def _submit(stage: Stage, gang: Gang, queue: str) -> None:
    """Make a gang's group and pods, in a queue."""
    scheduler = stage.scheduler
    stage.gangs[gang.name] = gang
    if not scheduler.makes_groups:
        group = scheduler.group(gang.name, stage.ns, gang.size)
        scheduler.enqueue(group, queue)
        stage.kube.create(group)
    for pod in quick_pods(gang.name, gang.size, gpus=1):
        scheduler.join(pod, gang.name, gang.size)
        scheduler.enqueue(pod, queue)
        stage.kube.create(pod, namespace=stage.ns)


@pytest.mark.behaviour("S07", case="over the share")
def test_a_gang_over_its_queues_share_waits(stage: Stage, teams: Callable[..., Teams]) -> None:
    """Nothing is lent: the other half stays free, until its own team uses it."""
    ours, theirs = teams(lend=False)
    half = stage.cluster.topology.gpus // 2
    _submit(stage, gang("first", half), ours)
    stage.wait_counts({"first": half})
    _submit(stage, gang("over", 2), ours)
    stage.hold({"first": half, "over": 0}, SHORT)
    _submit(stage, gang("other", half), theirs)
    stage.wait_counts({"first": half, "other": half, "over": 0})
    stage.remove("first")
    stage.wait_counts({"over": 2, "other": half})


@pytest.mark.behaviour("S07", case="borrowing")
def test_idle_room_of_another_queue_is_borrowed(stage: Stage, teams: Callable[..., Teams]) -> None:
    """A gang that is larger than its queue's share, while the other queue has nothing to do."""
    ours, _ = teams(lend=True)
    size = stage.cluster.topology.gpus // 2 + 2
    _submit(stage, gang("large", size), ours)
    stage.wait_counts({"large": size})


@pytest.mark.behaviour("S07", case="giving back")
def test_what_was_lent_is_taken_back_from_the_whole_gang(
    stage: Stage, teams: Callable[..., Teams]
) -> None:
    """The lender wants its half: the gang that borrowed yields as a whole."""
    # Kueue keeps the pods of a gang that yields by a finalizer, until they have ended: kwok's pods
    # that are told to stop do not end before they are gone
    if stage.scheduler.makes_groups:
        stage.cluster.require(Capability.CONTAINERS)
    ours, theirs = teams(Promise.RECLAIM, lend=True)
    half = stage.cluster.topology.gpus // 2
    _submit(stage, gang("large", half + 2), ours)
    stage.wait_counts({"large": half + 2})
    _submit(stage, gang("other", half), theirs)
    stage.wait_counts({"large": 0, "other": half})
