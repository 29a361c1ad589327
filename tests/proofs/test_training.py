"""Real training that cheats: under torchrun and by parameter servers, on real nodes."""

from __future__ import annotations

import pytest

from clusters.kube import PYTORCHJOBS, TFJOBS
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.runtimes import Runtime
from fixtures.workloads import (
    TrainOptions,
    control,
    elastic_pytorchjob,
    job_folder,
    order,
    training_tfjob,
)
from suites import jobs
from suites.elastic.trainer import RENDEZVOUS

pytestmark = pytest.mark.proof

#: seconds for a short training: importing PyTorch takes most of it, on a busy machine minutes
TRAINED = 480.0
#: steps between two checkpoints
INTERVAL = 5


def train(
    system: SystemUnderTest, torch: Runtime, ns: str, options: TrainOptions, *orders: str
) -> None:
    """Two workers train to the end."""
    cluster = system.cluster
    folder = job_folder(cluster, ns, "job")
    job = elastic_pytorchjob(
        "job", torch, folder, workers=2, low=2, high=2, max_restarts=3, train=options,
        rdzv_conf=RENDEZVOUS,
    )  # fmt: skip
    control(folder, *orders)
    cluster.kube.create(job, namespace=ns)
    jobs.wait_condition(cluster.kube, PYTORCHJOBS, ns, "job", "Succeeded", deadline=TRAINED)


@pytest.mark.proves(
    "E14", by="a trainer that skips samples", rule="steps-and-samples", shows="never fed"
)
def test_samples_are_skipped(system: SystemUnderTest, torch: Runtime, ns: str) -> None:
    train(system, torch, ns, TrainOptions(epochs=1, broken="skip-sample"))


@pytest.mark.proves(
    "E14", by="a TensorFlow chief that skips samples", rule="steps-and-samples", shows="never fed"
)
def test_a_chief_skips_samples(system: SystemUnderTest, tensorflow: Runtime, ns: str) -> None:
    cluster = system.cluster
    options = TrainOptions(epochs=1, broken="skip-sample")
    folder = job_folder(cluster, ns, "job")
    job = training_tfjob("job", tensorflow, folder, gpus=0, train=options)
    cluster.kube.create(job, namespace=ns)
    jobs.wait_condition(cluster.kube, TFJOBS, ns, "job", "Succeeded", deadline=TRAINED)


@pytest.mark.proves(
    "E14",
    by="a trainer that loses two checkpoint intervals",
    rule="steps-and-samples",
    shows="steps lost, checkpoints are 5 apart",
)
def test_checkpoints_are_lost(system: SystemUnderTest, torch: Runtime, ns: str) -> None:
    """None is written; it starts from nothing when one of its processes has exited."""
    options = TrainOptions(
        steps=2 * INTERVAL + 5, checkpoint_every=INTERVAL, broken="lose-checkpoints"
    )
    crash = order("exit", 1, rank=0, step=2 * INTERVAL + 2, times=1, id="crash")
    train(system, torch, ns, options, crash)
