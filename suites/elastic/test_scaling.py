"""Workers added to a job that trains."""

from __future__ import annotations

import time

import pytest

from clusters.kube import PYTORCHJOBS
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.runtimes import Runtime
from fixtures.workloads import SAMPLES
from oracles import samples
from suites import jobs, training
from suites.elastic import trainer

#: seconds until the larger world trains
GROWN = 120.0


@pytest.mark.behaviour("E03")
def test_a_larger_world_trains_right(
    system: SystemUnderTest, torch: Runtime, ns: str, expect: Expecting, measure: Measuring
) -> None:
    """From 2 to 3 workers: ranks 0 to 2, each once, and one loss for all."""
    cluster = system.cluster
    job = trainer.start(cluster, torch, ns, "grow", workers=2, low=2, high=4)
    with expect("two workers train"):
        job.wait_steps(5, world=2, deadline=trainer.STARTED)

    scaled = time.time()
    jobs.scale(cluster.kube, PYTORCHJOBS, ns, "grow", 3)
    with expect("three workers train"):
        group = job.wait_steps(5, world=3, since=scaled, deadline=GROWN)
    measure("larger world trains after", group[0].t - scaled, "s")
    faults = training.rank_faults(group)
    assert not faults, "; ".join(faults)
    assert {line.pod for line in group} == {f"grow-worker-{i}" for i in range(3)}
    wrong = samples.faults(job.lines(), size=SAMPLES, interval=trainer.INTERVAL)
    assert not wrong, "; ".join(wrong)
