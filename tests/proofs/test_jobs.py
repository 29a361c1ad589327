"""Jobs that leave things behind, make what they should not, or go on when they must not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.faults.base import Proof
from clusters.kube import PODS, PYTORCHJOBS, SERVICES, Kube, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.workloads import Program, elastic_program_job, job_folder, pytorchjob
from suites import jobs, pods
from tests.proofs import breaking

pytestmark = pytest.mark.proof

#: seconds for a job of small programs to run, or to end
STARTED = 60.0


def owned(job: Object, name: str, labels: dict[str, str] | None = None) -> Object:
    """A pod that nobody binds, made by hand for a job."""
    meta = job["metadata"]
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}, "ownerReferences": [owner]},
        "spec": {
            "schedulerName": breaking.NOBODY,
            "containers": [{"name": "main", "image": "none"}],
        },
    }


def counted(kube: Kube, ns: str) -> None:
    """Wait until the job's status counts its worker: then only what is broken here is wrong."""
    jobs.wait(
        kube, PYTORCHJOBS, ns, "job", lambda job: jobs.replicas(job, "Worker")["active"] == 1,
        deadline=STARTED, why="an active worker in the status",
    )  # fmt: skip


def get(kube: Kube, ns: str) -> Object:
    """The job."""
    job = kube.get(PYTORCHJOBS, "job", ns)
    assert job is not None
    return job


@pytest.mark.proves("C03", by="a job was deleted, its services were orphaned", rule="leftovers")
def test_services_stay(system: SystemUnderTest, ns: str) -> None:
    kube = system.cluster.kube
    job = pytorchjob("job", master=False, workers=1, program=Program(seconds=600))
    kube.create(job, namespace=ns)
    # not earlier: the garbage collector orphans what it knows of, and deletes what it meets later
    jobs.wait_condition(kube, PYTORCHJOBS, ns, "job", "Running", deadline=STARTED)
    kube.request("DELETE", PYTORCHJOBS.path(ns, "job"), body={"propagationPolicy": "Orphan"})
    kube.wait(
        PYTORCHJOBS, lambda found: True if not found else None,
        namespace=ns, deadline=STARTED, why="the job is gone",
    )  # fmt: skip
    breaking.hold(
        kube, SERVICES, ns, breaking.grace(system, "leftovers") + breaking.OVER, bool,
        "services of a deleted job stay",
    )  # fmt: skip


@pytest.mark.proves("C04", by="a pod was made for a job that had ended", rule="finished-stays")
def test_a_pod_for_a_finished_job(system: SystemUnderTest, ns: str) -> None:
    kube = system.cluster.kube
    job = pytorchjob("job", master=False, workers=1, program=Program(seconds=1))
    kube.create(job, namespace=ns)
    ended = jobs.wait_condition(kube, PYTORCHJOBS, ns, "job", "Succeeded", deadline=STARTED)
    breaking.hold(
        kube, PYTORCHJOBS, ns, breaking.grace(system, "finished_settles") + breaking.OVER, bool,
        "the job stays as it ended",
    )  # fmt: skip
    kube.create(owned(ended, "late"), namespace=ns)


@pytest.mark.proves("R02", by="a job over its backoff limit was not failed", rule="restarts")
def test_restarts_without_end(system: SystemUnderTest, ns: str) -> None:
    kube = system.cluster.kube
    job = pytorchjob(
        "job", master=False, workers=1, program=Program(seconds=8, code=1),
        run_policy={"backoffLimit": 0},
    )  # fmt: skip
    kube.create(job, namespace=ns)
    counted(kube, ns)
    with breaking.forsaken(kube, PYTORCHJOBS, ns, "job"):
        kube.wait(
            PODS, lambda found: True if any(map(_restarted, found)) else None,
            namespace=ns, deadline=STARTED, why="the pod's container restarted",
        )  # fmt: skip
        breaking.hold(
            kube, PYTORCHJOBS, ns,
            breaking.grace(system, "restarts_over_limit") + breaking.OVER, bool,
            "the job is not failed",
        )  # fmt: skip


def _restarted(pod: Object) -> bool:
    return any(each["restartCount"] for each in pod["status"].get("containerStatuses") or ())


@pytest.mark.proves(
    "E04", by="a worker more than was asked for, which stays", rule="replica-bounds"
)
def test_a_worker_too_many(system: SystemUnderTest, ns: str) -> None:
    kube = system.cluster.kube
    job = elastic_program_job("job", workers=1, low=1, high=2, program=Program(seconds=600))
    kube.create(job, namespace=ns)
    (worker,) = pods.wait_bound(kube, ns, 1, deadline=pods.ADMISSION)
    counted(kube, ns)
    labels = {**worker["metadata"]["labels"], jobs.INDEX_LABEL: "1"}
    with breaking.forsaken(kube, PYTORCHJOBS, ns, "job"):
        kube.create(owned(get(kube, ns), "job-worker-1", labels), namespace=ns)
        breaking.hold(
            kube, PODS, ns, breaking.grace(system, "replicas_outside") + breaking.OVER,
            lambda found: len(found) == 2, "a second worker stays",
        )  # fmt: skip


@pytest.mark.proves("E03", by="two processes said that they are rank 0", rule="ranks")
def test_a_rank_twice(system: SystemUnderTest, ns: str) -> None:
    cluster = system.cluster
    folder = job_folder(cluster, ns, "job")
    job = elastic_program_job(
        "job", workers=1, low=1, high=2, program=Program(seconds=600), shared=folder
    )
    cluster.kube.create(job, namespace=ns)
    (pod,) = pods.wait_running(cluster.kube, ns, 1, deadline=STARTED)
    for pid in (71, 72):
        line(folder, pod, pid, "step", rank=0, world=1, generation="a", step=1, ids=[pid])


def line(folder: Path, pod: Object, pid: int, event: str, **fields: object) -> None:
    """Say something as a process of a pod would."""
    meta = pod["metadata"]
    said = {"t": time.time(), "event": event, "pod": meta["name"], "pod_uid": meta["uid"]}
    progress = folder / "progress"
    progress.mkdir(parents=True, exist_ok=True)
    with (progress / f"{meta['uid']}.{pid}.1.jsonl").open("a") as file:
        file.write(json.dumps({**said, "pid": pid, **fields}) + "\n")


class Mute:
    """A job that is told to train no more."""

    name = "mute"

    def inject(self) -> None:
        """It never did."""

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """Nothing to wait for."""
        return Proof("it does not train", {}, time.time())

    def recover(self) -> None:
        """Nothing to mend."""


@pytest.mark.proves("E05", by="a job that did not train again after a fault", rule="recovery")
def test_no_recovery(system: SystemUnderTest, ns: str, inject: Callable[..., Proof]) -> None:
    kube = system.cluster.kube
    job = elastic_program_job("job", workers=1, low=1, high=2, program=Program(seconds=600))
    kube.create(job, namespace=ns)
    pods.wait_bound(kube, ns, 1, deadline=pods.ADMISSION)
    within = 5.0
    recovers = {"kind": "PyTorchJob", "namespace": ns, "name": "job", "within_s": within}
    inject(Mute(), recovers=recovers)
    breaking.hold(kube, PYTORCHJOBS, ns, within + breaking.OVER, bool, "it does not train")
