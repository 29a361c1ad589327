"""The training job of the elastic suite, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.cluster import Cluster
from fixtures.runtimes import Runtime
from fixtures.workloads import TrainOptions, elastic_pytorchjob, job_folder, progress_folder
from suites.training import Training

#: seconds until pods run and the first world trains; importing PyTorch takes most of it, 10 on an
#: idle host and 50 where others work too
STARTED = 240.0
#: steps between two checkpoints
INTERVAL = 10
#: rendezvous settings, in seconds. Two defaults would only make every test wait: of 30 for more
#: than the fewest agents, and of 60 for a store that does not answer, which agents of PyTorch 2.8.0
#: sit out each time that another one joins them: it looks for MASTER_ADDR under the new round's
#: prefix, where those that stayed do not write it again (pytorch/pytorch#135712). For the same
#: reason 5 and not less: of agents that start together, one that is late ends the others' world
RENDEZVOUS = {"last_call_timeout": "5", "read_timeout": "20"}


def start(
    cluster: Cluster,
    runtime: Runtime,
    namespace: str,
    name: str,
    *,
    workers: int,
    low: int,
    high: int,
    steps: int = 0,
    step_ms: int = 100,
    term_wait_s: int = 0,
    conf: Mapping[str, str] | None = None,
    max_restarts: int = 100,
    **more: Any,
) -> Training:
    """Submit an elastic job that trains on until it is told to end (or for *steps*).

    Args:
        conf: rendezvous settings, on top of :data:`RENDEZVOUS`.
        more: as :func:`fixtures.workloads.elastic_pytorchjob` takes it.
    """
    folder = job_folder(cluster, namespace, name)
    job = elastic_pytorchjob(
        name, runtime, folder, workers=workers, low=low, high=high, max_restarts=max_restarts,
        rdzv_conf={**RENDEZVOUS, **(conf or {})},
        train=TrainOptions(
            epochs=10_000, steps=steps, step_ms=step_ms, checkpoint_every=INTERVAL,
            term_wait_s=term_wait_s,
        ),
        **more,
    )  # fmt: skip
    cluster.kube.create(job, namespace=namespace)
    return Training(progress_folder(cluster, namespace, name))
