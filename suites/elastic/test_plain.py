"""A job without an elastic policy: as before there were any."""

from __future__ import annotations

import pytest

from clusters.kube import Resource
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.workloads import SAMPLES, TrainOptions, job_folder, progress_folder, pytorchjob
from oracles import samples
from suites import training
from suites.elastic import environment, trainer
from suites.elastic.stage import Stage
from suites.training import Training

AUTOSCALERS = Resource("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
#: what the operator sets beside ``PET_`` variables
CLASSIC = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")


@pytest.mark.behaviour("E11")
def test_a_job_without_a_policy_is_what_it_was(system: SystemUnderTest, stage: Stage) -> None:
    """A master and a worker under the classic environment: they train, and the job succeeds."""
    kube, namespace, name = stage.kube, stage.namespace, stage.job
    folder = job_folder(stage.cluster, namespace, name)
    job = pytorchjob(
        name, workers=1, runtime=stage.runtime, shared=folder,
        train=TrainOptions(epochs=10_000, step_ms=100, checkpoint_every=trainer.INTERVAL),
    )  # fmt: skip
    wanted = {
        f"{name}-{role}-0": environment.expected(system, f"plain {role}", name)
        for role in ("master", "worker")
    }
    kube.create(job, namespace=namespace)
    trained = Training(progress_folder(stage.cluster, namespace, name))
    with stage.expect("master and worker train"):
        group = trained.wait_steps(5, world=2, deadline=trainer.STARTED)
    for pod, expected in wanted.items():
        found = environment.but_ours(environment.of_process(kube, namespace, pod), CLASSIC)
        assert found == expected, f"{pod}: {environment.difference(found, expected)}"
    faults = training.rank_faults(group)
    assert not faults, "; ".join(faults)
    ranks = {line.pod: line.rank for line in group}
    assert ranks == {f"{name}-master-0": 0, f"{name}-worker-0": 1}, f"ranks: {ranks}"
    assert not kube.find(AUTOSCALERS, namespace), "a job without a policy has an autoscaler"

    stage.follow(trained).finish()
    wrong = samples.faults(trained.lines(), size=SAMPLES, interval=trainer.INTERVAL)
    assert not wrong, "; ".join(wrong)
