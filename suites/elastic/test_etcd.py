"""Agents that meet through etcd instead of worker 0."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from oracles.progress import ProgressLine
from suites import training
from suites.elastic import trainer
from suites.elastic.stage import GOES_ON, Stage


@pytest.mark.behaviour("E12", case="one job")
def test_agents_meet_through_etcd_and_let_in_one_more(stage: Stage) -> None:
    """Two workers, then three."""
    told = stage.start(2, 2, 3, backend="etcd")
    with stage.expect("two workers find each other"):
        told.wait_steps(5, world=2, deadline=trainer.STARTED)
    scaled = time.time()
    stage.scale(3)
    with stage.expect("the third is let in"):
        group = stage.trains(world=3, since=scaled, deadline=GOES_ON)
    stage.measure("larger world trains after", group[0].t - scaled, "s")
    stage.sound(group)


@pytest.mark.behaviour("E12", case="two jobs")
def test_two_jobs_on_one_etcd_do_not_meet(stage: Stage) -> None:
    """Each names its rendezvous (rdzvId) after itself."""
    _two_jobs(stage, named=True)


@pytest.mark.behaviour("E12", case="two jobs, no rdzvId")
def test_two_jobs_that_do_not_name_their_rendezvous_do_not_meet(stage: Stage) -> None:
    """A user who leaves rdzvId out has two jobs all the same."""
    _two_jobs(stage, named=False)


def _two_jobs(stage: Stage, *, named: bool) -> None:
    first, second = replace(stage, job="one"), replace(stage, job="two")
    etcd = first.serve_etcd()
    # each may have four, so that two jobs of two would fit into one world
    for it in (first, second):
        it.start(2, 2, 4, backend="etcd", etcd=etcd, named=named)
    for it in (first, second):
        with it.expect(f"job {it.job} trains"):
            group = it.training.wait(_trained, deadline=trainer.STARTED, why="a world trains")
        met = {line.world for line in group} - {2}
        assert not met, (
            f"job {it.job} of 2 workers is in a world of {', '.join(map(str, met))}: it met the"
            " other job on the same etcd"
        )
        assert {line.pod for line in group} == {it.worker(0), it.worker(1)}
        it.sound(group)


def _trained(lines: list[ProgressLine]) -> list[ProgressLine] | None:
    """Lines of a world that is larger than the job, or of one of its size that did five steps."""
    if larger := [line for line in lines if (line.world or 0) > 2]:
        return larger
    for group in training.groups(lines).values():
        if group[0].world == 2 and len(training.by_step(group)) >= 5:
            return group
    return None
