"""A gang that really trains: TensorFlow with its chief, parameter server and workers."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from clusters.kube import TFJOBS, epoch
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.runtimes import Runtime
from suites import groups, jobs, parameter_servers, pods, promises
from suites.pods import ADMISSION

#: seconds from submission to the end of a training of some 150 steps: they take two, the start of
#: four Pythons that import TensorFlow the rest
TRAINED = 300.0


@pytest.mark.behaviour("G01", case="TensorFlow")
def test_a_tfjob_is_bound_whole_and_learns(
    system: SystemUnderTest,
    tensorflow: Runtime,
    ns: str,
    gpus: Callable[[int], int],
    expect: Expecting,
    measure: Measuring,
) -> None:
    """A chief, a parameter server and two GPU workers train the digits to the end."""
    promises.require_gang_jobs(system.scheduler)
    gpus(2)
    kube = system.cluster.kube
    training = parameter_servers.start(
        system.cluster, tensorflow, ns, "digits", epochs=parameter_servers.EPOCHS, step_ms=0
    )
    submitted = time.time()
    with expect("all 4 pods are bound"):
        bound = pods.wait_bound(kube, ns, 4, labels=jobs.of("digits"), deadline=ADMISSION)
    measure("bound within", pods.binding_seconds(bound), "s")
    groups.asks_for_all(system, ns, 4)
    with expect("the job trains, and succeeds"):
        job = jobs.wait_condition(kube, TFJOBS, ns, "digits", "Succeeded", deadline=TRAINED)
    lines = training.lines()
    losses = parameter_servers.epochs(lines)
    measure("succeeded within", epoch(job["status"]["completionTime"]) - submitted, "s")
    measure("accuracy", parameter_servers.accuracy(lines), "1")
    measure("loss of the first epoch", losses.get(0, 0.0), "1")
    measure("loss of the last epoch", losses.get(parameter_servers.EPOCHS - 1, 0.0), "1")
    wrong = parameter_servers.learning_faults(lines)
    wrong += parameter_servers.step_faults(lines, ["digits-worker-0", "digits-worker-1"])
    assert not wrong, "; ".join(wrong)
