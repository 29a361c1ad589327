"""Actions that break pods, processes, jobs, nodes and the network between them."""

from __future__ import annotations

import signal

from chaos import session
from chaos.actions.common import At, breaks
from chaos.activities import activity, node_named
from chaos.faults import gpus, nodes
from chaos.faults.base import Fault
from chaos.faults.clock import ShiftClock
from chaos.faults.disk import FillVolume
from chaos.faults.jobs import ScaleJob, SuspendJob
from chaos.faults.late import late
from chaos.faults.network import Cut, node_end, pod_end
from chaos.faults.pod import DeletePod, EvictPod
from chaos.faults.process import KillAgent
from chaos.faults.signals import SignalProcess, StopProcess
from chaos.faults.slow import Slow
from chaos.processes import Which
from clusters.kube import PYTORCHJOBS, Object


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

    return breaks(make, at, label, recovers)


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

    return breaks(make, at, label, recovers)


@activity
def stop_process(
    pod: str, which: str = "all", *, container: str = "pytorch",
    at: At | None = None, label: str = "", recovers: Object | None = None,
) -> Object:  # fmt: skip
    """Stop processes until they are recovered."""
    it = session.current()

    def make() -> Fault:
        return StopProcess(it.site, it.namespace, pod, container, Which(which))

    return breaks(make, at, label, recovers)


@activity
def delete_pod(
    pod: str, *, grace: int = 0, evict: bool = False,
    at: At | None = None, recovers: Object | None = None,
) -> Object:  # fmt: skip
    """Delete a pod, or have it evicted."""
    it = session.current()
    kind = EvictPod if evict else DeletePod
    return breaks(lambda: kind(it.site.cluster, it.namespace, pod, grace=grace), at, "", recovers)


@activity
def fill_volume(
    pod: str, path: str, *, container: str = "main", label: str = "", at: At | None = None
) -> Object:
    """Fill a volume of a pod."""
    it = session.current()
    return breaks(lambda: FillVolume(it.site, it.namespace, pod, container, path), at, label)


@activity
def shift_clock(pod: str, seconds: float) -> Object:
    """NOT_APPLICABLE, with the reason."""
    it = session.current()
    return breaks(lambda: ShiftClock(it.site, it.namespace, pod, seconds), None, "")


# jobs disturbed ----------------------------------------------------------------------------


@activity
def scale_job(
    job: str, workers: int, *, at: At | None = None, label: str = "",
    recovers: Object | None = None,
) -> Object:  # fmt: skip
    """Change the number of workers."""
    it = session.current()
    return breaks(
        lambda: ScaleJob(it.site, PYTORCHJOBS, it.namespace, job, workers), at, label, recovers
    )


@activity
def suspend_job(
    job: str, kind: str = "PyTorchJob", *, at: At | None = None, label: str = ""
) -> Object:
    """Suspend a job until it is recovered."""
    it = session.current()
    return breaks(lambda: SuspendJob(it.site, it.operator.jobs[kind], it.namespace, job), at, label)


# nodes -------------------------------------------------------------------------------------


@activity
def stop_node(node: str, *, noticed: bool = False, at: At | None = None, label: str = "") -> Object:
    """Power a node off."""
    it = session.current()
    return breaks(lambda: nodes.StopNode(it.site, node_named(node), noticed=noticed), at, label)


@activity
def stop_kubelet(
    node: str, *, noticed: bool = False, at: At | None = None, label: str = ""
) -> Object:
    """Stop a node's kubelet."""
    it = session.current()
    return breaks(lambda: nodes.StopKubelet(it.site, node_named(node), noticed=noticed), at, label)


@activity
def cordon(node: str, *, at: At | None = None, label: str = "") -> Object:
    """Let no new pods be placed on a node."""
    it = session.current()
    return breaks(lambda: nodes.Cordon(it.site, node_named(node)), at, label)


@activity
def drain(node: str, *, at: At | None = None, label: str = "") -> Object:
    """Cordon a node, and evict the experiment's pods from it."""
    it = session.current()
    return breaks(
        lambda: nodes.Drain(it.site, node_named(node), namespaces=[it.namespace]), at, label
    )


@activity
def taint(
    node: str, effect: str = "NoSchedule", *, at: At | None = None, label: str = ""
) -> Object:
    """Taint a node."""
    it = session.current()
    return breaks(lambda: nodes.Taint(it.site, node_named(node), effect), at, label)


@activity
def take_gpus(node: str, left: int = 0, *, at: At | None = None, label: str = "") -> Object:
    """Take a node's GPUs away."""
    it = session.current()
    return breaks(lambda: gpus.TakeGpus(it.site, node_named(node), left=left), at, label)


@activity
def sicken_gpus(
    node: str, which: list[int] | None = None, *, at: At | None = None, label: str = ""
) -> Object:
    """GPUs of a node fall ill, the first one if none are named."""
    it = session.current()
    return breaks(lambda: gpus.SickenGpus(it.site, node_named(node), which=which or [0]), at, label)


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

    return breaks(make, at, label, recovers)


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

    return breaks(make, at, label)


@activity
def slow_pod(
    pod: str, *, delay_ms: int | None = None, rate_kbit: int = 256,
    at: At | None = None, label: str = "",
) -> Object:  # fmt: skip
    """Packets to a pod come late: each by *delay_ms*, or by as much as a bounded rate takes."""
    it = session.current()

    def make() -> Fault:
        if delay_ms is not None:
            return late(it.site, it.namespace, pod, delay_ms)
        return Slow(it.site, it.namespace, pod, rate_kbit=rate_kbit)

    return breaks(make, at, label)
