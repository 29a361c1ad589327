"""A TrainJob that really trains: torchrun on each of its nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.runtimes import Runtime
from fixtures.systems.operators.trainer_manifests import grouped
from fixtures.workloads import (
    SAMPLES,
    TrainOptions,
    control,
    job_folder,
    order,
    progress_folder,
    torch_runtime,
    torchrun,
    trainjob,
)
from fixtures.workloads.trainjob import NODE
from oracles import samples
from suites import pods, tables, training
from suites.elastic import environment, trainer
from suites.training import Training
from suites.trainjob.stage import INDEX_LABEL, KIND, TrainJobs, of

pytestmark = pytest.mark.jobs(KIND)

NODES = 2
#: seconds from the programs' end to the job's
COMPLETE = 60.0


@pytest.mark.behaviour("V02", case="TrainJob, training")
def test_the_nodes_of_a_trainjob_train_together(
    system: SystemUnderTest,
    ns: str,
    torch: Runtime,
    gpus: Callable[[int], int],
    trainjobs: TrainJobs,
    expect: Expecting,
    measure: Measuring,
) -> None:
    """One agent on each node; their ranks are those of the nodes, and the job is Complete."""
    gpus(NODES)
    kube, scheduler = system.cluster.kube, system.scheduler
    folder = job_folder(system.cluster, ns, "train")
    options = TrainOptions(epochs=10_000, step_ms=100, checkpoint_every=trainer.INTERVAL)
    kube.create(
        torch_runtime(
            "train", torch, folder, train=options, gpus=1,
            scheduler_name=scheduler.scheduler_name, **grouped(scheduler),
        ),
        namespace=ns,
    )  # fmt: skip
    trainjobs.submit(trainjob("train", nodes=NODES, command=torchrun(torch)))
    trained = Training(progress_folder(system.cluster, ns, "train"))
    with expect("both nodes train"):
        group = trained.wait_steps(5, world=NODES, deadline=trainer.STARTED)
    faults = training.rank_faults(group)
    assert not faults, "; ".join(faults)
    found = pods.wait_running(kube, ns, NODES, labels=of("train"), deadline=trainer.STARTED)
    ranks = {line.pod: line.rank for line in group}
    wanted = {p["metadata"]["name"]: int(p["metadata"]["labels"][INDEX_LABEL]) for p in found}
    assert ranks == wanted, f"ranks {ranks}, of the nodes {wanted}"
    for name, index in wanted.items():
        told = environment.but_ours(environment.of_process(kube, ns, name, container=NODE))
        expected = environment.expected(system, f"node {index}", "train")
        assert told == expected, f"{name}: {environment.difference(told, expected)}"
    control(folder, order("finish"))
    late = trainjobs.reach({"train": tables.true("Complete")}, deadline=COMPLETE)
    assert not late, f"all of its programs have ended well, and it is {late}"
    wrong = samples.faults(trained.lines(), size=SAMPLES, interval=trainer.INTERVAL)
    assert not wrong, "; ".join(wrong)
    measure("steps", max(line.step or 0 for line in trained.lines()), "steps")
