"""Signals to the processes of a container: torchrun's agent, or the workers that it started.

They are sent from the node, see :mod:`chaos.faults.process`.
"""

from __future__ import annotations

import signal
import time
from enum import StrEnum

from chaos.errors import FaultError, NotProven
from chaos.faults.base import Proof
from clusters.cluster import Capability, Cluster, ClusterProvider
from clusters.errors import CommandError
from clusters.kube import PODS

#: sets $state and $started of process $pid, to nothing when there is none
_STARTED = (
    'state=; started=; if stat=$(cat /proc/"$pid"/stat 2>/dev/null); then '
    "set -- ${stat##*)}; state=$1; started=${20}; fi"
)


class Target(StrEnum):
    """Which processes of a container: under torchrun, the agent or the workers it started."""

    AGENT = "agent"
    WORKER = "worker"


class SignalProcess:
    """Send a signal to the first process of a container, or to the processes that it started.

    SIGSTOP freezes until :meth:`recover` (also :meth:`thaw`); of processes that got another signal
    the proof is that they ended. The pod itself is not touched: what becomes of it is for the
    kubelet and the agent to say. Both are seen on the node, whose ``/proc`` has them all.

    Args:
        sign: SIGKILL, SIGTERM or SIGSTOP.
    """

    def __init__(
        self,
        cluster: Cluster,
        provider: ClusterProvider,
        namespace: str,
        pod: str,
        container: str,
        sign: signal.Signals,
        target: Target,
    ) -> None:
        cluster.require(Capability.NODE_EXEC)
        self.name = f"{sign.name} to {target}"
        self._cluster = cluster
        self._provider = provider
        self._namespace = namespace
        self._pod = pod
        self._container = container
        self._signal = sign
        self._target = target
        self._node = ""
        #: pid on the node -> when it started, in clock ticks since boot (proc(5), stat, field 22)
        self._processes: dict[str, str] = {}
        self._injected = 0.0

    def inject(self) -> None:
        """Send the signal. Raises FaultError when there is no such process."""
        pod = self._cluster.kube.get(PODS, self._pod, self._namespace)
        statuses = pod["status"].get("containerStatuses") or [] if pod else []
        status = next((item for item in statuses if item["name"] == self._container), None)
        if pod is None or status is None or "running" not in status.get("state", {}):
            raise FaultError(
                f"container {self._container} of pod {self._namespace}/{self._pod} does not run,"
                f" so its {self._target} gets no {self._signal.name}"
            )
        self._node = pod["spec"]["nodeName"]
        task = status["containerID"].removeprefix("containerd://")
        who = '"$agent"' if self._target is Target.AGENT else '$(pgrep -P "$agent")'
        script = (
            f"agent=$(ctr -n k8s.io tasks ls | awk '$1 == \"{task}\" {{print $2}}'); "
            f'[ -n "$agent" ] || exit 1; for pid in {who}; do {_STARTED}; '
            f'kill -{self._signal.value} "$pid" && echo "$pid $started"; done'
        )
        self._injected = time.time()
        lines = self._on_node(script).split("\n")
        self._processes = dict(line.split() for line in lines if line.strip())
        if not self._processes:
            raise FaultError(f"{self._namespace}/{self._pod} has no {self._target} process")

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The processes are frozen, or ended. Raises NotProven."""
        frozen = self._signal is signal.SIGSTOP
        # a dead process that nobody waited for yet (Z) does nothing any more
        want = '[ "$state" = T ]' if frozen else '[ -z "$state" ] || [ "$state" = Z ]'
        checks = " && ".join(
            f'{{ pid={pid}; {_STARTED}; [ "$started" = {start} ] || state=; {want}; }}'
            for pid, start in self._processes.items()
        )
        script = (
            f"for i in $(seq {int(deadline * 10)}); do if {checks}; then echo yes; exit; fi; "
            "sleep 0.1; done; echo no"
        )
        if "yes" not in self._on_node(script, timeout=deadline + 15):
            raise NotProven(
                f"{self.name} of {self._pod}: the processes {', '.join(self._processes)} of"
                f" {self._node} did not {'freeze' if frozen else 'end'} within {deadline:.0f} s"
            )
        return Proof(
            f"{self._target} of {self._pod} {'is frozen' if frozen else 'ended'} by"
            f" {self._signal.name}",
            {"node": self._node, "processes": " ".join(self._processes)},
            self._injected,
        )

    def recover(self) -> None:
        """Let frozen processes go on; those that are gone need nothing."""
        if self._signal is not signal.SIGSTOP or not self._processes:
            return
        each = "; ".join(
            f'pid={pid}; {_STARTED}; [ "$started" = {start} ] && kill -CONT "$pid"'
            for pid, start in self._processes.items()
        )
        self._on_node(f"{each}; true")

    def thaw(self) -> float:
        """Let frozen processes go on now; the time at which they do, seconds since 1970."""
        self.recover()
        return time.time()

    def _on_node(self, script: str, *, timeout: float = 30.0) -> str:
        try:
            return self._provider.node_exec(
                self._cluster, self._node, ["bash", "-c", script], timeout=timeout
            )
        except CommandError as error:
            raise FaultError(
                f"{self.name} of {self._namespace}/{self._pod}: {self._node} refuses: {error}"
            ) from error
