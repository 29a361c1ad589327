"""The job that trains by TensorFlow's parameter servers, and what must be true of its training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from clusters.cluster import Cluster
from fixtures.runtimes import Runtime
from fixtures.workloads import (
    SAMPLES,
    TrainOptions,
    job_folder,
    progress_folder,
    training_tfjob,
)
from oracles import progress, samples
from oracles.progress import Event, ProgressLine
from suites.training import Training

#: seconds until the pods run and both workers train; importing TensorFlow takes most of it
STARTED = 240.0
#: steps between two checkpoints
INTERVAL = 10
#: the container that the operator looks for
CONTAINER = "tensorflow"

#: share of the samples that are right after EPOCHS; measured 0.937 to 0.942 in 9 runs
RIGHT = 0.90
EPOCHS = 5
#: the mean loss of the last epoch, as a part of the first one's; measured 0.14 to 0.18
FALLEN = 0.25


def start(
    cluster: Cluster,
    runtime: Runtime,
    namespace: str,
    name: str,
    *,
    epochs: int = 10_000,
    step_ms: int = 100,
    **more: Any,
) -> Training:
    """Submit a job that trains on until its chief is told to finish (or for *epochs*).

    When it has ended, the pods that still run are removed (``cleanPodPolicy: Running``).

    Args:
        more: as :func:`fixtures.workloads.training_tfjob` takes it.
    """
    folder = job_folder(cluster, namespace, name)
    job = training_tfjob(
        name, runtime, folder, run_policy={"cleanPodPolicy": "Running"},
        train=TrainOptions(epochs=epochs, step_ms=step_ms, checkpoint_every=INTERVAL), **more,
    )  # fmt: skip
    cluster.kube.create(job, namespace=namespace)
    return Training(progress_folder(cluster, namespace, name))


def epochs(lines: Sequence[ProgressLine]) -> dict[int, float]:
    """Epoch -> mean loss of its steps."""
    told: dict[int, list[float]] = {}
    for line in progress.steps(lines):
        if line.epoch is not None and line.loss is not None:
            told.setdefault(line.epoch, []).append(line.loss)
    return {epoch: sum(seen) / len(seen) for epoch, seen in sorted(told.items())}


def accuracy(lines: Sequence[ProgressLine]) -> float:
    """Share of all samples that the trained model gets right; 0 when no chief told of an end."""
    return next((x.accuracy for x in lines if x.event is Event.END and x.accuracy), 0.0)


def learning_faults(lines: Sequence[ProgressLine]) -> list[str]:
    """What shows that a training of :data:`EPOCHS` did not learn; [] when it did."""
    wrong = []
    losses = epochs(lines)
    if sorted(losses) != list(range(EPOCHS)):
        return [f"losses are told of epochs {sorted(losses)}, {EPOCHS} were to be trained"]
    if any(line.loss is None for line in progress.steps(lines)):
        wrong.append("a step has no loss: it was no finite number")
    if losses[EPOCHS - 1] > FALLEN * losses[0]:
        wrong.append(
            f"the mean loss of an epoch went from {losses[0]:.3f} to {losses[EPOCHS - 1]:.3f};"
            f" it has to fall to {FALLEN:g} of it"
        )
    if accuracy(lines) < RIGHT:
        wrong.append(f"{accuracy(lines):.3f} of the samples are right, not {RIGHT:g}")
    return wrong


def settled(lines: Sequence[ProgressLine]) -> list[ProgressLine]:
    """The lines without the steps that no checkpoint holds yet.

    Several steps are done at a time, so of the newest ones any may be told first.
    """
    kept = max((x.step or 0 for x in lines if x.event is Event.CHECKPOINT), default=0)
    return [x for x in lines if x.event is not Event.STEP or (x.step or 0) <= kept]


def all_work(lines: Sequence[ProgressLine], workers: int) -> bool:
    """Whether every worker has done a step."""
    return {line.rank for line in progress.steps(lines)} >= set(range(workers))


def step_faults(lines: Sequence[ProgressLine], pods: Sequence[str]) -> list[str]:
    """What is wrong with the steps of an undisturbed job, and with who did them; [] if nothing is.

    Each step is done once, by a worker that is the task that its pod is for; none is idle; and
    every sample is fed once an epoch.

    Args:
        pods: of the workers, by the index of their tasks.
    """
    steps = progress.steps(lines)
    wrong = samples.faults(lines, size=SAMPLES, interval=INTERVAL)
    counts = Counter(line.step for line in steps)
    twice = sorted(step for step, n in counts.items() if n > 1 and step is not None)
    missing = sorted(set(range(1, max(s for s in counts if s) + 1)) - set(counts)) if counts else []
    if twice:
        wrong.append(f"steps were done twice: {twice[:10]}")
    if missing:
        wrong.append(f"steps were not done: {missing[:10]}")
    wanted = {(pod, rank, len(pods)) for rank, pod in enumerate(pods)}
    found = {(line.pod, line.rank, line.world) for line in steps}
    if found != wanted:
        wrong.append(f"steps were done by {sorted(found)}, not by {sorted(wanted)}")
    return wrong
