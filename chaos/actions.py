"""Actions of experiments: jobs submitted, things broken and mended.

An action that breaks something takes ``at``, a moment (``{moment: pods_bound, count: 3, within:
60}``; see :mod:`chaos.aim`), and ``label``, a word by which ``recover`` mends it; all that is left
is mended by ``recover_all``. ``recovers`` says which job must get over it, for the judges
(``oracles.invariants.recovery``).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chaos import aim, session
from chaos.activities import activity, mending, node_named
from chaos.errors import FaultError
from chaos.faults import nodes
from chaos.faults.api import ApiTrouble, ThroughProxy
from chaos.faults.base import Fault, Planned, Proof, Scope
from chaos.faults.clock import ShiftClock
from chaos.faults.control_plane import ApiServerAway, Component, FreezeComponent, KillComponent
from chaos.faults.disk import FillVolume
from chaos.faults.failover import FailOver
from chaos.faults.jobs import ScaleJob, SuspendJob
from chaos.faults.network import Cut, Slow, node_end, pod_end
from chaos.faults.pod import DeletePod, EvictPod
from chaos.faults.process import KillAgent
from chaos.faults.signals import SignalProcess, StopProcess
from chaos.faults.systems import FreezeSystem, KillSystem, RollSystem, TakeSystemAway, Target
from chaos.processes import Which
from chaos.proxy import Rule
from clusters.kube import PODS, PYTORCHJOBS, Object
from fixtures import runtimes, workloads
from fixtures.workloads import Program, TrainOptions

At = Mapping[str, Any]
Role = Literal["operator", "scheduler"]
#: as in suites/elastic: torchrun's own 30 and 60 s would only make everybody wait
RENDEZVOUS = {"last_call_timeout": "2", "read_timeout": "20"}
#: steps between two checkpoints of jobs that train
INTERVAL = 10
#: seconds for which a moment is waited for, unless it says ``within``
WITHIN = 60.0


# jobs --------------------------------------------------------------------------------------


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
    folder = workloads.job_folder(it.site.cluster, it.namespace, name)
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
    folder = workloads.job_folder(it.site.cluster, it.namespace, name)
    job = workloads.tfjob(
        name, ps=ps, workers=workers, chief=chief, gpus=gpus, shared=folder,
        program=Program(seconds=seconds),
    )  # fmt: skip
    it.kube.create(job, namespace=it.namespace)
    return name


@activity
def submit_pods(name: str, count: int, *, gpus: int = 1, gang: bool = True) -> list[str]:
    """Bare pods ``NAME-0``..., a gang of the scheduler's, or of no gang at all."""
    it = session.current()
    pods = workloads.gang_pods(name, count, gpus=gpus)
    if gang:
        it.kube.create(it.scheduler.group(name, it.namespace, count))
    for pod in pods:
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
def tell(job: str, *orders: str, order: str = "finish") -> str:
    """Tell a job's programs what to do next: ``finish``, ``exit 3 role=worker``, ..."""
    it = session.current()
    folder = workloads.job_folder(it.site.cluster, it.namespace, job)
    workloads.control(folder, *(orders or (order,)))
    return order


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


# pods and processes ------------------------------------------------------------------------


@activity
def kill_process(
    pod: str, which: str = "agent", *, container: str = "pytorch", sign: str = "SIGKILL",
    at: At | None = None, label: str = "", recovers: Object | None = None,
) -> Object:  # fmt: skip
    """A signal that ends a process: ``main``, ``agent``, ``worker``."""
    it = session.current()

    def make() -> Fault:
        number = signal.Signals[sign]
        return SignalProcess(it.site, it.namespace, pod, container, Which(which), number)

    return _break(make, at, label, recovers)


@activity
def kill_container(
    pod: str, *, container: str = "pytorch", sign: str = "SIGKILL",
    at: At | None = None, label: str = "", recovers: Object | None = None,
) -> Object:  # fmt: skip
    """Kill a container's first process, proven by the kubelet's own record of its end."""
    it = session.current()
    number = signal.Signals[sign]

    def make() -> Fault:
        site = it.site
        return KillAgent(site.cluster, site.provider, it.namespace, pod, container, number)

    return _break(make, at, label, recovers)


@activity
def stop_process(
    pod: str, which: str = "all", *, container: str = "pytorch",
    at: At | None = None, label: str = "", recovers: Object | None = None,
) -> Object:  # fmt: skip
    """Stop processes until they are recovered."""
    it = session.current()

    def make() -> Fault:
        return StopProcess(it.site, it.namespace, pod, container, Which(which))

    return _break(make, at, label, recovers)


@activity
def delete_pod(
    pod: str, *, grace: int = 0, evict: bool = False,
    at: At | None = None, recovers: Object | None = None,
) -> Object:  # fmt: skip
    """Delete a pod, or have it evicted."""
    it = session.current()
    kind = EvictPod if evict else DeletePod
    return _break(lambda: kind(it.site.cluster, it.namespace, pod, grace=grace), at, "", recovers)


@activity
def fill_volume(
    pod: str, path: str, *, container: str = "main", label: str = "", at: At | None = None
) -> Object:
    """Fill a volume of a pod."""
    it = session.current()
    return _break(lambda: FillVolume(it.site, it.namespace, pod, container, path), at, label)


@activity
def shift_clock(pod: str, seconds: float) -> Object:
    """NOT_APPLICABLE, with the reason."""
    it = session.current()
    return _break(lambda: ShiftClock(it.site, it.namespace, pod, seconds), None, "")


# jobs disturbed ----------------------------------------------------------------------------


@activity
def scale_job(
    job: str, workers: int, *, at: At | None = None, label: str = "",
    recovers: Object | None = None,
) -> Object:  # fmt: skip
    """Change the number of workers."""
    it = session.current()
    return _break(
        lambda: ScaleJob(it.site, PYTORCHJOBS, it.namespace, job, workers), at, label, recovers
    )


@activity
def suspend_job(
    job: str, kind: str = "PyTorchJob", *, at: At | None = None, label: str = ""
) -> Object:
    """Suspend a job until it is recovered."""
    it = session.current()
    return _break(lambda: SuspendJob(it.site, it.operator.jobs[kind], it.namespace, job), at, label)


# nodes -------------------------------------------------------------------------------------


@activity
def stop_node(node: str, *, noticed: bool = False, at: At | None = None, label: str = "") -> Object:
    """Power a node off."""
    it = session.current()
    return _break(lambda: nodes.StopNode(it.site, node_named(node), noticed=noticed), at, label)


@activity
def stop_kubelet(
    node: str, *, noticed: bool = False, at: At | None = None, label: str = ""
) -> Object:
    """Stop a node's kubelet."""
    it = session.current()
    return _break(lambda: nodes.StopKubelet(it.site, node_named(node), noticed=noticed), at, label)


@activity
def cordon(node: str, *, at: At | None = None, label: str = "") -> Object:
    """Let no new pods be placed on a node."""
    it = session.current()
    return _break(lambda: nodes.Cordon(it.site, node_named(node)), at, label)


@activity
def drain(node: str, *, at: At | None = None, label: str = "") -> Object:
    """Cordon a node, and evict the experiment's pods from it."""
    it = session.current()
    return _break(
        lambda: nodes.Drain(it.site, node_named(node), namespaces=[it.namespace]), at, label
    )


@activity
def taint(
    node: str, effect: str = "NoSchedule", *, at: At | None = None, label: str = ""
) -> Object:
    """Taint a node."""
    it = session.current()
    return _break(lambda: nodes.Taint(it.site, node_named(node), effect), at, label)


@activity
def take_gpus(node: str, left: int = 0, *, at: At | None = None, label: str = "") -> Object:
    """Take a node's GPUs away."""
    it = session.current()
    return _break(lambda: nodes.TakeGpus(it.site, node_named(node), left=left), at, label)


# network -----------------------------------------------------------------------------------


@activity
def cut_pods(
    a: str, b: str, *, loss: float = 1.0, traffic: bool = True,
    at: At | None = None, label: str = "", recovers: Object | None = None,
) -> Object:  # fmt: skip
    """Cut two pods off from each other, or lose a share of their packets."""
    it = session.current()

    def make() -> Fault:
        ends = (pod_end(it.site, it.namespace, a), pod_end(it.site, it.namespace, b))
        return Cut(it.site, *ends, loss=loss, traffic=traffic)

    return _break(make, at, label, recovers)


@activity
def cut_nodes(
    a: str, b: str, *, loss: float = 1.0, traffic: bool = True,
    at: At | None = None, label: str = "",
) -> Object:  # fmt: skip
    """Cut two nodes off from each other, with all of their pods."""
    it = session.current()

    def make() -> Fault:
        ends = (node_end(it.site, node_named(a)), node_end(it.site, node_named(b)))
        return Cut(it.site, *ends, loss=loss, traffic=traffic)

    return _break(make, at, label)


@activity
def slow_pod(
    pod: str, *, delay_ms: int | None = None, rate_kbit: int = 256,
    at: At | None = None, label: str = "",
) -> Object:  # fmt: skip
    """Packets to a pod come late."""
    it = session.current()
    return _break(
        lambda: Slow(it.site, it.namespace, pod, delay_ms=delay_ms, rate_kbit=rate_kbit),
        at, label,
    )  # fmt: skip


# systems -----------------------------------------------------------------------------------


@activity
def kill_system(
    role: Role, how: Literal["process", "pod"] = "process", *,
    at: At | None = None, label: str = "",
) -> Object:  # fmt: skip
    """Kill the operator or the scheduler."""
    it = session.current()
    return _break(lambda: KillSystem(it.site, target(role), how), at, label)


@activity
def freeze_system(role: Role, *, at: At | None = None, label: str = "") -> Object:
    """Freeze the operator or the scheduler until it is recovered."""
    it = session.current()
    return _break(lambda: FreezeSystem(it.site, target(role)), at, label)


@activity
def take_system_away(role: Role, *, at: At | None = None, label: str = "") -> Object:
    """Let there be no operator, or no scheduler, until it is recovered."""
    it = session.current()
    return _break(lambda: TakeSystemAway(it.site, target(role)), at, label)


@activity
def roll_system(role: Role, to: str, *, at: At | None = None, label: str = "") -> Object:
    """Install another version; the former one comes back when it is recovered."""
    it = session.current()
    words = it.handover
    return _break(
        lambda: RollSystem(
            it.site, target(role), operator=words.operator, scheduler=words.scheduler, to=to
        ),
        at, label,
    )  # fmt: skip


@activity
def fail_over(role: Role = "operator", *, label: str = "") -> Object:
    """Run two replicas, and kill the one that leads."""
    it = session.current()
    return _break(lambda: FailOver(it.site, target(role)), None, label)


# the control plane, and one client's way to it ---------------------------------------------


@activity
def api_server_away(
    how: Literal["refused", "silent"] = "refused", *, spare_us: bool = True,
    at: At | None = None, label: str = "",
) -> Object:  # fmt: skip
    """Nobody reaches the API server until it is recovered."""
    it = session.current()
    return _break(lambda: ApiServerAway(it.site, how, spare_us=spare_us), at, label)


@activity
def freeze_component(component: Component, *, at: At | None = None, label: str = "") -> Object:
    """Freeze a program of the control plane: etcd, kube-apiserver, ..."""
    it = session.current()
    return _break(lambda: FreezeComponent(it.site, component), at, label)


@activity
def kill_component(component: Component, *, at: At | None = None) -> Object:
    """Kill a program of the control plane."""
    it = session.current()
    return _break(lambda: KillComponent(it.site, component), at, "")


@activity
def through_proxy(role: Role) -> Object:
    """Let the operator or the scheduler reach the API server through a proxy from now on."""
    it = session.current()
    words = it.handover

    def make() -> Fault:
        route = ThroughProxy(
            it.site, target(role), operator=words.operator, scheduler=words.scheduler
        )
        it.routes[role] = route
        return route

    return _break(make, None, f"proxy {role}")


@activity
def api_trouble(
    role: Role, action: str, *, verbs: Sequence[str] = (), path: str = "", delay_ms: int = 0,
    status: int = 0, share: float = 1.0, after: int = 0, times: int = 0, acts: int = 1,
    at: At | None = None, label: str = "", within: float = 30,
) -> Object:  # fmt: skip
    """Delay, refuse, cut, hold or keep stale what a system behind a proxy asks for."""
    it = session.current()
    if role not in it.routes:
        raise FaultError(f"the {role} does not go through a proxy: `through_proxy` comes first")
    if action not in ("delay", "status", "cut", "hold", "stale"):
        raise FaultError(f"no such action of the proxy: {action}")
    rule = Rule(
        action, tuple(verbs), path, delay_ms=delay_ms, status=status,  # type: ignore[arg-type]
        retry_after=1 if status == 429 else 0, share=share, seed=it.handover.seed,
        after=after, times=times,
    )  # fmt: skip
    fault = _Patient(it.routes[role], rule, acts=acts)
    fault.patience = within
    return _break(lambda: fault, at, label)


@activity
def wait_held(label: str, count: int = 1, *, within: float = 60) -> int:
    """Wait until a rule that holds requests holds so many: the moment has come, and lasts.

    Raises:
        NotProven: it does not hold as many.
    """
    fault = session.current().labels.get(label)
    if not isinstance(fault, ApiTrouble):
        raise FaultError(f"{label!r} names no trouble of a proxy")
    return fault.wait_held(count, deadline=within)


@activity
def drop_held(label: str) -> str:
    """Cut the requests that ``api_trouble`` holds, instead of letting them go."""
    fault = session.current().labels.get(label)
    if not isinstance(fault, ApiTrouble):
        raise FaultError(f"{label!r} names no trouble of a proxy")
    fault.drop_held()
    return label


class _Patient(ApiTrouble):
    """Its proof is waited for as long as the experiment says."""

    patience = 30.0

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """See :class:`ApiTrouble`."""
        return super().proof(deadline=self.patience)


# mending -----------------------------------------------------------------------------------


@activity
def recover(label: str) -> str:
    """Mend what was broken under a label."""
    it = session.current()
    fault = it.labels.pop(label, None)
    if fault is None:
        raise FaultError(f"nothing is broken under the label {label!r}")
    it.injector.recover(fault)
    return fault.name


@mending
def recover_all() -> list[str]:
    """Mend everything that is left, the last first; what it was."""
    it = session.current()
    names = [fault.name for fault in it.injector.open]
    it.injector.close()
    it.labels.clear()
    it.routes.clear()
    return names


@mending
def finish_jobs() -> int:
    """Tell all jobs of the namespace to come to an end, so that nothing is killed at the end."""
    it = session.current()
    count = 0
    for what in it.operator.jobs.values():
        for job in it.kube.find(what, it.namespace):
            folder = workloads.job_folder(it.site.cluster, it.namespace, job["metadata"]["name"])
            workloads.control(folder, "finish")
            count += 1
    return count


# helpers -----------------------------------------------------------------------------------


def target(role: Role) -> Target:
    """The operator or the scheduler of the session."""
    it = session.current()
    if role == "operator":
        return Target.operator(it.operator)
    return Target.scheduler(it.scheduler)


def _break(make: Any, at: At | None, label: str, recovers: Object | None = None) -> Object:
    it = session.current()
    words = dict(at or {})
    within = float(words.pop("within", WITHIN))
    fault: Fault | None = None
    if words:
        moment = aim.make(it.namespace, words)
        fault = _planned(make)
        session.stream().wait(moment, deadline=within)
    fault = fault or make()
    about: dict[str, Any] = {}
    if words:
        about["aimed"] = str(at)
    if recovers is not None:
        about["recovers"] = {"namespace": it.namespace, **recovers}
    proof = it.injector(fault, **about)
    it.since = max(it.since, proof.t)
    if label:
        it.labels[label] = fault
    return {"fault": fault.name, "proof": proof.what, "evidence": proof.evidence, "t": proof.t}


def _planned(make: Any) -> Fault | None:
    """A fault that is looked at before the moment comes, so that it is quick then.

    Only what is there before: pods may be what the moment brings.
    """
    try:
        fault: Fault = make()
    except FaultError:
        return None
    if isinstance(fault, Planned) and fault.scope is Scope.CLUSTER:
        fault.plan()
        return fault
    return None
