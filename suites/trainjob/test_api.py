"""What is refused of TrainJobs and their runtimes, and what their pods are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from clusters.errors import ApiError, ClusterError
from clusters.kube import PODS, SERVICES, Object, until_true
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.workloads import training_runtime, trainjob
from suites import tables
from suites.trainjob.stage import INDEX_LABEL, KIND, KNOWN, TrainJobs, names, of

pytestmark = pytest.mark.jobs(KIND)

Change = Callable[[Object], None]
#: seconds for which a job that was accepted is watched
HOLD = 6.0
#: where a TrainJob's nodes meet (pkg/constants: ContainerTrainerPort)
PORT = "29500"


@dataclass(frozen=True)
class Wrong:
    """An object that is right but for one thing.

    Attributes:
        change: what makes it wrong.
        words: a refusal has to hold one of them.
        runtime: it is a runtime; else a TrainJob.
    """

    change: Change
    words: tuple[str, ...]
    runtime: bool = False


def _spec(**fields: Any) -> Change:
    def change(job: Object) -> None:
        job["spec"].update(fields)

    return change


def _trainer(**fields: Any) -> Change:
    def change(job: Object) -> None:
        job["spec"]["trainer"].update(fields)

    return change


def _reference(**fields: Any) -> Change:
    def change(job: Object) -> None:
        job["spec"]["runtimeRef"].update(fields)

    return change


def _name(job: Object) -> None:
    job["metadata"]["name"] = "1st"


def _sneaked(job: Object) -> None:
    """A variable of torchrun's, in a job that leaves the number of processes to its runtime."""
    del job["spec"]["trainer"]["numProcPerNode"]
    job["spec"]["trainer"]["env"] = [{"name": "PET_NNODES", "value": "9"}]


def _override(job_name: str, container: str) -> Change:
    override = {
        "targetJobs": [{"name": job_name}],
        "containers": [{"name": container, "env": [{"name": "A", "value": "b"}]}],
    }
    return _spec(podSpecOverrides=[override])


def _policy(**fields: Any) -> Change:
    def change(runtime: Object) -> None:
        runtime["spec"]["mlPolicy"].update(fields)

    return change


def _replicas(runtime: Object) -> None:
    runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2


_MPI = {"numProcPerNode": 1, "mpiImplementation": "OpenMPI"}
WRONG: dict[str, Wrong] = {
    "TrainJob, a name that no service can have": Wrong(_name, ("metadata.name",)),
    "TrainJob, a runtime that is not there": Wrong(
        _reference(name="nobody"), ("runtimeRef", "RuntimeRef")
    ),
    "TrainJob, a kind of runtime that is none": Wrong(
        _reference(kind="Job"), ("unsupported runtime",)
    ),
    "TrainJob, zero nodes": Wrong(_trainer(numNodes=0), ("numNodes",)),
    "TrainJob, fewer nodes than none": Wrong(_trainer(numNodes=-1), ("numNodes",)),
    "TrainJob, a number that is none": Wrong(_trainer(numNodes="two"), ("numNodes",)),
    "TrainJob, processes that are no number": Wrong(
        _trainer(numProcPerNode="many"), ("numProcPerNode",)
    ),
    "TrainJob, a variable of torchrun's": Wrong(
        _trainer(env=[{"name": "PET_NNODES", "value": "9"}]), ("spec.trainer.env",)
    ),
    # 2.0.0 takes it: its check of variables is left out where it has no number to check
    # (pkg/runtime/framework/plugins/torch); found published nowhere
    "TrainJob, a variable of torchrun's beside no number of processes": Wrong(
        _sneaked, ("spec.trainer.env",)
    ),
    "TrainJob, an override of a job that is not there": Wrong(
        _override("nobody", "node"), ("podSpecOverrides",)
    ),
    # 2.0.0 takes it: overrides are merged into the template that they are then held against
    # (pkg/runtime/core: newRuntimeInfo); found published nowhere
    "TrainJob, an override of a container that is not there": Wrong(
        _override("node", "nobody"), ("podSpecOverrides",)
    ),
    "TrainJob, another manager than the known ones": Wrong(
        _spec(managedBy="example.org/me"), ("managedBy", "ManagedBy")
    ),
    "TrainJob, an unknown field": Wrong(_spec(suspended=True), ("suspended",)),
    "a runtime, two replicas of what trains": Wrong(_replicas, ("replicas",), runtime=True),
    "a runtime, two policies at once": Wrong(_policy(mpi=_MPI), ("policy",), runtime=True),
    "a runtime, processes that are no number": Wrong(
        _policy(torch={"numProcPerNode": "many"}), ("NumProcPerNode",), runtime=True
    ),
}


def _refusal(system: SystemUnderTest, namespace: str, item: Object) -> str:
    """What the API server says to an object that is not stored in any case; "" for accepted."""
    kube = system.cluster.kube
    what = kube.resource(item["apiVersion"], item["kind"])
    query: dict[str, object] = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        kube.request("POST", what.path(namespace), body=item, query=query)
    except ApiError as error:
        return str(error)
    return ""


def _accepted(system: SystemUnderTest, namespace: str, item: Object) -> None:
    """Hold an object that is right to being accepted, once the webhook's cache has its runtime."""
    said = ""

    def accepted() -> bool:
        nonlocal said
        said = _refusal(system, namespace, item)
        return not said

    try:
        until_true(accepted, deadline=KNOWN, every=0.1, why="accepted")
    except ClusterError:
        raise AssertionError(f"a {item['kind']} that is right is refused: {said}") from None


@pytest.mark.behaviour("V01")
@pytest.mark.parametrize("what", list(WRONG))
def test_what_is_forbidden_of_trainjobs_is_refused(
    system: SystemUnderTest, ns: str, trainjobs: TrainJobs, what: str
) -> None:
    """The same object without the one wrong thing is accepted."""
    wrong = WRONG[what]
    trainjobs.create(training_runtime("right"))
    item = training_runtime("other") if wrong.runtime else trainjob("right", nodes=1)
    _accepted(system, ns, item)
    wrong.change(item)
    said = _refusal(system, ns, item)
    assert said, f"{what}: accepted"
    assert any(word in said for word in wrong.words), f"refused without naming the field: {said}"


#: field -> another value than that of a job that runs
FIXED: dict[str, Object] = {
    "TrainJob, runtimeRef": {"runtimeRef": {"name": "other"}},
    "TrainJob, managedBy": {"managedBy": "kueue.x-k8s.io/multikueue"},
    "TrainJob, podSpecOverrides while it runs": {
        "podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}]
    },
}


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize("field", list(FIXED))
def test_an_immutable_field_of_a_trainjob_cannot_be_changed(
    trainjobs: TrainJobs, field: str
) -> None:
    """The change is refused with the field's name, and the job runs on as it was."""
    trainjobs.create(training_runtime("other"))
    trainjobs.add("fixed")
    before = trainjobs.run()
    said = ""
    try:
        trainjobs.patch("fixed", FIXED[field])
    except ApiError as error:
        said = str(error)
    assert said, f"{field} of a TrainJob that runs could be changed"
    (name,) = FIXED[field]
    assert name.lower() in said.lower(), f"refused without naming the field: {said}"

    def others(pods: list[Object]) -> str:
        now = {p["metadata"]["uid"]: p["metadata"]["name"] for p in pods}
        return "" if now == before else ", ".join(now.values()) or "none"

    changed = tables.held(trainjobs.kube, PODS, trainjobs.namespace, others, seconds=HOLD)
    assert not changed, f"its pods were replaced: {changed}"


@pytest.mark.behaviour("V02")
@pytest.mark.parametrize("said", [True, False], ids=["TrainJob", "TrainJob, as its runtime says"])
def test_each_node_of_a_trainjob_is_told_where_the_others_are(
    trainjobs: TrainJobs, ns: str, said: bool
) -> None:
    """torchrun's variables; the first node's address is one that the job's service gives it.

    kubeflow/trainer#4076: nothing is told to the nodes of a job that leaves all to its runtime.
    """
    job = trainjob("told", nodes=3)
    if not said:
        del job["spec"]["trainer"]
    trainjobs.add("told", nodes=3, job=job)
    trainjobs.run()
    found = trainjobs.kube.find(PODS, ns, labels=of("told"))
    wanted = {
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "1",
        "PET_MASTER_ADDR": "told-node-0-0.told",
        "PET_MASTER_PORT": PORT,
    }
    for pod in found:
        name, env = pod["metadata"]["name"], pod["spec"]["containers"][0]["env"]
        told = {v["name"]: v["value"] for v in env if v["name"].startswith("PET_") and "value" in v}
        assert told == wanted, f"a node is told {told}, and is to be told {wanted}"
        (rank,) = (v["valueFrom"]["fieldRef"] for v in env if v["name"] == "PET_NODE_RANK")
        note = rank["fieldPath"].partition("['")[2].removesuffix("']")
        kept = pod["metadata"]["annotations"].get(note)
        index = pod["metadata"]["labels"][INDEX_LABEL]
        assert kept == index, f"{name} reads its rank from {rank}, and is node {index}"
    hosts = sorted(f"{p['spec']['hostname']}.{p['spec']['subdomain']}" for p in found)
    assert hosts == [f"told-node-0-{index}.told" for index in range(3)]
    service = trainjobs.kube.get(SERVICES, "told", ns)
    assert service is not None, "there is no service of the name that its nodes are told"
    chosen = service["spec"]["selector"].items()
    strangers = names([p for p in found if not chosen <= p["metadata"]["labels"].items()])
    assert not strangers, f"its service does not lead to {strangers}"
    assert service["spec"]["clusterIP"] == "None", "its service is none that names pods"
