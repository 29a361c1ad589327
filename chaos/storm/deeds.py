"""What each strike of a storm does, to whom it hits when it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from chaos.actions.jobs import give, shared_folder
from chaos.activities import workers_of
from chaos.errors import FaultError
from chaos.faults import gpus, nodes
from chaos.faults.base import Fault
from chaos.faults.control_plane import ApiServerAway, FreezeComponent
from chaos.faults.jobs import ScaleJob, SuspendJob
from chaos.faults.network import Cut, pod_end
from chaos.faults.pod import DeletePod, EvictPod
from chaos.faults.signals import SignalProcess, StopProcess
from chaos.faults.systems import FreezeSystem, KillSystem
from chaos.processes import Which
from chaos.session import Session
from chaos.storm.schedule import Strike
from chaos.target import Target
from clusters.kube import PODS, PYTORCHJOBS, Object
from fixtures import workloads
from fixtures.workloads import Program
from oracles.relations import JOB_NAME

#: label of the pods of a gang without a job
GANG_LABEL = "app"
#: kind of such a gang
GANG = "gang"


@dataclass
class Fleet:
    """What a storm has submitted.

    Attributes:
        jobs: name -> kind.
        gangs: name -> number of pods.
        told: those that were told to finish.
        doubtful: name -> kind (``gang``: of no job) of what was not submitted, or only in part.
    """

    jobs: dict[str, str] = field(default_factory=dict)
    gangs: dict[str, int] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    doubtful: dict[str, str] = field(default_factory=dict)


def submit(it: Session, fleet: Fleet, strike: Strike) -> str:
    """Submit a job or a gang; its name."""
    name = f"s{strike.number}"
    kind = {"gang": GANG, "tfjob": "TFJob"}.get(strike.deed, "PyTorchJob")
    fleet.doubtful[name] = kind  # a request without an answer may have been heard
    count = _submit(it, name, strike)
    del fleet.doubtful[name]
    if kind == GANG:
        fleet.gangs[name] = count
    else:
        fleet.jobs[name] = kind
    return name


def take_back(it: Session, fleet: Fleet) -> None:
    """Delete what was submitted in part only: nobody promises anything of it."""
    for name, kind in fleet.doubtful.items():
        if kind != GANG:
            it.kube.delete(it.operator.jobs[kind], name, it.namespace)
            continue
        for pod in it.kube.find(PODS, it.namespace, labels=f"{GANG_LABEL}={name}"):
            it.kube.delete(PODS, pod["metadata"]["name"], it.namespace, grace=0)
        if (group := it.scheduler.group_resource()) is not None:
            it.kube.delete(group, name, it.namespace)


def _submit(it: Session, name: str, strike: Strike) -> int:
    """Submit; how many workers, or pods of a gang."""
    count = 1 + int(strike.size * 3)
    folder = shared_folder(it, name)
    if strike.deed == "gang":
        it.kube.create(it.scheduler.group(name, it.namespace, count + 1))
        for pod in workloads.gang_pods(name, count + 1, gpus=1, shared=folder):
            it.scheduler.join(pod, name)
            pod["spec"]["restartPolicy"] = "OnFailure"
            it.kube.create(pod, namespace=it.namespace)
        return count + 1
    if strike.deed == "tfjob":
        job = workloads.tfjob(
            name, ps=1, workers=count, gpus=1, shared=folder, program=Program(),
            run_policy={"cleanPodPolicy": "None"},
        )  # fmt: skip
    else:
        job = workloads.elastic_program_job(
            name, workers=count, low=1, high=4, gpus=1, shared=folder,
            run_policy={"cleanPodPolicy": "None"},
        )  # fmt: skip
    it.kube.create(job, namespace=it.namespace)
    return count


def finish(it: Session, fleet: Fleet, name: str) -> None:
    """Tell a job or a gang to come to its end."""
    give(it, name, "finish", label=GANG_LABEL if name in fleet.gangs else JOB_NAME)
    fleet.told.add(name)


def fault(it: Session, fleet: Fleet, strike: Strike) -> Fault:
    """The fault that a strike is, aimed at what is there.

    Raises:
        FaultError: there is nothing that it could hit.
    """
    return _MAKERS[strike.deed](it, fleet, strike)


def _one[T](items: Sequence[T], strike: Strike, what: str) -> T:
    if not items:
        raise FaultError(f"there is no {what} to hit")
    return items[min(int(strike.pick * len(items)), len(items) - 1)]


def _pods(it: Session, fleet: Fleet, *, jobs_only: bool = False) -> list[Object]:
    """Pods that run, and that somebody would make or start again."""
    found = []
    for pod in it.kube.find(PODS, it.namespace):
        labels = pod["metadata"].get("labels") or {}
        name = labels.get(JOB_NAME) or ("" if jobs_only else labels.get(GANG_LABEL, ""))
        states = pod["status"].get("containerStatuses") or []
        if (
            name
            and name not in fleet.told
            and "deletionTimestamp" not in pod["metadata"]
            and pod["status"].get("podIP")
            and states
            and all("running" in (state.get("state") or {}) for state in states)
        ):
            found.append(pod)
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def _pod(it: Session, fleet: Fleet, strike: Strike, *, jobs_only: bool = False) -> tuple[str, str]:
    """Name and container of a pod."""
    pod = _one(_pods(it, fleet, jobs_only=jobs_only), strike, "pod")
    return str(pod["metadata"]["name"]), str(pod["spec"]["containers"][0]["name"])


def _deleted(it: Session, fleet: Fleet, strike: Strike) -> Fault:
    name, _ = _pod(it, fleet, strike, jobs_only=True)
    kind = EvictPod if strike.deed == "evict pod" else DeletePod
    return kind(it.site.cluster, it.namespace, name, grace=0 if strike.size < 0.5 else 3)


def _killed(it: Session, fleet: Fleet, strike: Strike) -> Fault:
    return SignalProcess(it.site, it.namespace, *_pod(it, fleet, strike))


def _stopped(it: Session, fleet: Fleet, strike: Strike) -> Fault:
    return StopProcess(it.site, it.namespace, *_pod(it, fleet, strike), Which.ALL)


def _elastic(it: Session, fleet: Fleet, strike: Strike) -> str:
    names = [n for n, kind in fleet.jobs.items() if kind == "PyTorchJob" and n not in fleet.told]
    return _one(names, strike, "elastic job")


def _scaled(it: Session, fleet: Fleet, strike: Strike) -> Fault:
    job = _elastic(it, fleet, strike)
    found = it.kube.get(PYTORCHJOBS, job, it.namespace)
    if found is None:
        raise FaultError(f"{job} is gone")
    now = int(found["spec"]["pytorchReplicaSpecs"]["Worker"].get("replicas", 1))
    others = [count for count in (1, 2, 3, 4) if count != now]
    return ScaleJob(
        it.site, PYTORCHJOBS, it.namespace, job, others[int(strike.size * len(others)) % 3]
    )


def _suspended(it: Session, fleet: Fleet, strike: Strike) -> Fault:
    names = [name for name in fleet.jobs if name not in fleet.told]
    job = _one(names, strike, "job")
    return SuspendJob(it.site, it.operator.jobs[fleet.jobs[job]], it.namespace, job)


def _cut(it: Session, fleet: Fleet, strike: Strike) -> Fault:
    pods = _pods(it, fleet)
    if len(pods) < 2:
        raise FaultError("there are no two pods to cut off from each other")
    first = int(strike.pick * len(pods)) % len(pods)
    second = (first + 1) % len(pods)
    ends = (pod_end(it.site, it.namespace, pods[i]["metadata"]["name"]) for i in (first, second))
    # programs of a storm do not talk to each other: the rules are the proof
    return Cut(it.site, *ends, traffic=False)


def _on_node(make: Callable[[Session, str, Strike], Fault]) -> Callable[..., Fault]:
    def one(it: Session, fleet: Fleet, strike: Strike) -> Fault:
        return make(it, _one(workers_of(it), strike, "worker node"), strike)

    return one


def _system(it: Session, strike: Strike) -> Target:
    if strike.deed.endswith("operator"):
        return Target.operator(it.operator)
    return Target.scheduler(it.scheduler)


_MAKERS: dict[str, Callable[[Session, Fleet, Strike], Fault]] = {
    "delete pod": _deleted,
    "evict pod": _deleted,
    "kill container": _killed,
    "stop processes": _stopped,
    "scale job": _scaled,
    "suspend job": _suspended,
    "cut pods": _cut,
    "cordon": _on_node(lambda it, node, strike: nodes.Cordon(it.site, node)),
    "taint": _on_node(
        lambda it, node, strike: nodes.Taint(
            it.site, node, "NoSchedule" if strike.size < 0.7 else "NoExecute"
        )
    ),
    "take GPUs": _on_node(
        lambda it, node, strike: gpus.TakeGpus(it.site, node, left=int(strike.size * 4))
    ),
    "stop kubelet": _on_node(lambda it, node, strike: nodes.StopKubelet(it.site, node)),
    "stop node": _on_node(lambda it, node, strike: nodes.StopNode(it.site, node)),
    # pods, not processes: a container that is killed often is kept waiting by the kubelet
    "kill operator": lambda it, fleet, strike: KillSystem(it.site, _system(it, strike), "pod"),
    "kill scheduler": lambda it, fleet, strike: KillSystem(it.site, _system(it, strike), "pod"),
    "freeze operator": lambda it, fleet, strike: FreezeSystem(it.site, _system(it, strike)),
    "freeze scheduler": lambda it, fleet, strike: FreezeSystem(it.site, _system(it, strike)),
    "API server away": lambda it, fleet, strike: ApiServerAway(it.site),
    "freeze etcd": lambda it, fleet, strike: FreezeComponent(it.site, "etcd"),
}
