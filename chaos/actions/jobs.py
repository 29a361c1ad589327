"""Actions: jobs submitted and told what to do, and moments waited for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaos import aim, session
from chaos.actions.common import WITHIN
from chaos.activities import activity
from chaos.errors import FaultError
from clusters.cluster import Capability
from clusters.errors import ClusterError
from clusters.kube import PODS, PYTORCHJOBS
from fixtures import runtimes, workloads
from fixtures.workloads import Program, TrainOptions
from oracles.errors import NotApplicable
from oracles.relations import JOB_NAME

#: as in suites/elastic: torchrun's own 30 and 60 s would only make everybody wait
RENDEZVOUS = {"last_call_timeout": "2", "read_timeout": "20"}
#: steps between two checkpoints of jobs that train
INTERVAL = 10


@activity
def submit_training(
    name: str, workers: int = 3, low: int = 2, high: int = 4, *, gpus: int = 0, steps: int = 0,
    max_restarts: int = 100,
) -> str:  # fmt: skip
    """An elastic PyTorchJob that trains until it is told to finish, or for so many steps."""
    it = session.current()
    folder = workloads.job_folder(it.site.cluster, it.namespace, name)
    runtime = runtimes.get(it.handover.torch or "2.8.0", "torch")
    job = workloads.elastic_pytorchjob(
        name, runtime, folder, workers=workers, low=low, high=high, gpus=gpus,
        max_restarts=max_restarts, rdzv_conf=RENDEZVOUS,
        train=TrainOptions(epochs=10_000, steps=steps, step_ms=100, checkpoint_every=INTERVAL),
    )  # fmt: skip
    it.kube.create(job, namespace=it.namespace)
    return name


@activity
def submit_program_job(
    name: str, workers: int = 3, low: int = 1, high: int = 4, *, gpus: int = 0,
    seconds: int | None = None, clean: str = "None",
) -> str:  # fmt: skip
    """An elastic PyTorchJob of controllable programs: quick to start, it trains nothing."""
    it = session.current()
    folder = shared_folder(it, name)
    job = workloads.elastic_program_job(
        name, workers=workers, low=low, high=high, gpus=gpus, shared=folder,
        program=Program(seconds=seconds), run_policy={"cleanPodPolicy": clean},
    )  # fmt: skip
    it.kube.create(job, namespace=it.namespace)
    return name


@activity
def submit_tfjob(
    name: str, ps: int = 1, workers: int = 3, chief: int = 0, *, gpus: int = 1,
    seconds: int | None = None,
) -> str:  # fmt: skip
    """A TFJob of controllable programs."""
    it = session.current()
    folder = shared_folder(it, name)
    job = workloads.tfjob(
        name, ps=ps, workers=workers, chief=chief, gpus=gpus, shared=folder,
        program=Program(seconds=seconds),
    )  # fmt: skip
    it.kube.create(job, namespace=it.namespace)
    return name


@activity
def submit_pods(
    name: str, count: int, *, gpus: int = 1, gang: bool = True, every: float = 0.0
) -> list[str]:
    """Bare pods ``NAME-0``..., a gang of the scheduler's, or of no gang at all.

    Args:
        every: seconds before each of them, for what is to happen while they arrive.
    """
    it = session.current()
    pods = workloads.gang_pods(name, count, gpus=gpus)
    if gang:
        it.kube.create(it.scheduler.group(name, it.namespace, count))
    for pod in pods:
        time.sleep(every)
        if gang:
            it.scheduler.join(pod, name)
        it.kube.create(pod, namespace=it.namespace)
    return [pod["metadata"]["name"] for pod in pods]


@activity
def submit_pod_with_volume(name: str, size_mb: int = 16, path: str = "/data") -> str:
    """A pod with a volume in memory, of a size of its own, at *path*."""
    it = session.current()
    (pod,) = workloads.gang_pods(name, 1)
    spec = pod["spec"]
    volume = {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": f"{size_mb}Mi"}}
    spec["volumes"] = [*spec.get("volumes", []), volume]
    container = spec["containers"][0]
    mounts = [*container.get("volumeMounts", []), {"name": "data", "mountPath": path}]
    container["volumeMounts"] = mounts
    it.kube.create(pod, namespace=it.namespace)
    return str(pod["metadata"]["name"])


@activity
def ask_for_workers(job: str, workers: int) -> int:
    """Write the number of workers, and do not wait for anybody to act on it."""
    it = session.current()
    body = {"spec": {"replicas": workers}}
    it.kube.patch(PYTORCHJOBS, job, body, it.namespace, subresource="scale")
    return workers


@activity
def delete_pods(pods: Sequence[str]) -> int:
    """Delete pods that are in the way: no fault, and nobody makes them anew."""
    it = session.current()
    return sum(it.kube.delete(PODS, name, it.namespace, grace=0) for name in pods)


@activity
def delete_job(name: str, kind: str = "PyTorchJob") -> bool:
    """Delete a job."""
    it = session.current()
    return it.kube.delete(it.operator.jobs[kind], name, it.namespace)


@activity
def tell(job: str, order: str = "finish") -> str:
    """Tell a job's programs what to do next: ``finish``, ``exit 3 role=worker``, ..."""
    give(session.current(), job, order)
    return order


def shared_folder(it: session.Session, job: str) -> Path | None:
    """The folder of a job's control file; None where pods have no containers to read it."""
    if Capability.HOST_FOLDERS not in it.site.cluster.capabilities:
        return None
    return workloads.job_folder(it.site.cluster, it.namespace, job)


def give(it: session.Session, job: str, *orders: str, label: str = JOB_NAME) -> None:
    """Give orders to a job's programs. Pods without containers can be told to finish only.

    Raises:
        NotApplicable: they cannot be told that.
    """
    folder = shared_folder(it, job)
    if folder is not None:
        workloads.control(folder, *orders)
        return
    if orders != ("finish",):
        raise NotApplicable(f"pods without containers cannot be told: {'; '.join(orders)}")
    for pod in it.kube.find(PODS, it.namespace, labels=f"{label}={job}"):
        with suppress(ClusterError):  # it does not run: somebody else's business
            workloads.finish(it.site.cluster, it.namespace, pod["metadata"]["name"])


@activity
def talk(source: str, target: str, *, port: int = 2222, container: str = "tensorflow") -> str:
    """Have one pod send a packet to another one again and again, until its container ends.

    Controllable programs send nothing by themselves, and a cut is proven by dropped packets.
    """
    it = session.current()
    address = it.site.pod(it.namespace, target)["status"].get("podIP")
    if not address:
        raise FaultError(f"pod {target} has no address yet")
    # bash speaks UDP by itself; nobody needs to listen
    send = f"while :; do echo x >/dev/udp/{address}/{port}; sleep 0.2; done"
    done = it.kube.exec(
        it.namespace,
        source,
        ["bash", "-c", f"({send}) </dev/null &>/dev/null &"],
        container=container,
    )
    if done.code:
        raise FaultError(f"{source} cannot send to {target}: {done.stderr.strip()}")
    return str(address)


@activity
def wait_for(moment: str, within: float = WITHIN, **words: Any) -> str:
    """Wait for a moment of :mod:`chaos.aim`; what came."""
    it = session.current()
    what = aim.make(it.namespace, {"moment": moment, **words})
    event = session.stream().wait(what, deadline=within)
    return f"event {event.seq}: {event.kind or event.source} {event.name} {event.type}"


@activity
def wait_for_log(pod: str, pattern: str, *, container: str = "pytorch", within: float = 60) -> str:
    """Wait until a pod has logged something; the line."""
    it = session.current()
    return aim.log_says(it.kube, it.namespace, pod, container, pattern, deadline=within)


@activity
def pause(seconds: float) -> float:
    """Let time pass with what is broken now: how long a fault lasts is part of the question."""
    time.sleep(seconds)
    return seconds
