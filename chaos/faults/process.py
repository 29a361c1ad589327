"""A process killed in a pod that stays.

The signal is sent from the node, in its process namespace: within a container the first process
is immune to signals from its own namespace, SIGKILL included.
"""

from __future__ import annotations

import signal
import time

from chaos.errors import FaultError, NotProven
from chaos.faults.base import Proof, Scope, proof_of_pod
from clusters.cluster import Capability, Cluster, ClusterProvider
from clusters.errors import CommandError
from clusters.kube import PODS, Object, epoch

#: exit code of a container whose process nobody but SIGKILL ended: 128 and the signal's number
KILLED = 128 + signal.SIGKILL


class KillAgent:
    """Kill a container's first process: under torchrun, the agent.

    The pod stays (same uid); the kubelet starts the container again if the restart policy says so.
    """

    name = "kill agent"
    scope = Scope.NAMESPACE

    def __init__(
        self,
        cluster: Cluster,
        provider: ClusterProvider,
        namespace: str,
        pod: str,
        container: str,
        sign: signal.Signals = signal.SIGKILL,
    ) -> None:
        cluster.require(Capability.NODE_EXEC)
        self._cluster = cluster
        self._provider = provider
        self._namespace = namespace
        self._pod = pod
        self._container = container
        self._signal = sign
        self._uid = ""
        self._container_id = ""
        self._injected = 0.0

    def inject(self) -> None:
        """Send the signal. Raises FaultError when the container does not run."""
        pod = self._cluster.kube.get(PODS, self._pod, self._namespace)
        status = _status(pod, self._container) if pod else None
        if pod is None or status is None or "running" not in status.get("state", {}):
            raise FaultError(
                f"container {self._container} of pod {self._namespace}/{self._pod} does not run,"
                " so its process cannot be killed"
            )
        self._uid = pod["metadata"]["uid"]
        self._container_id = status["containerID"]
        node = pod["spec"]["nodeName"]
        task = self._container_id.removeprefix("containerd://")
        script = (
            f"pid=$(ctr -n k8s.io tasks ls | awk '$1 == \"{task}\" {{print $2}}') && "
            f'[ -n "$pid" ] && kill -{self._signal.value} "$pid" && echo "$pid"'
        )
        self._injected = time.time()
        try:
            self._provider.node_exec(self._cluster, node, ["bash", "-c", script])
        except CommandError as error:
            raise FaultError(
                f"no process of {self._namespace}/{self._pod} could be signalled on {node}: {error}"
            ) from error

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The same pod, whose container ended by the signal. Raises NotProven."""
        return proof_of_pod(
            self._cluster.kube, self._namespace, self._pod, self._ended, deadline=deadline,
            why=f"container {self._container} of {self._pod} ended by {self._signal.name}",
        )  # fmt: skip

    def recover(self) -> None:
        """The kubelet does."""

    def _ended(self, pods: list[Object]) -> Proof | None:
        if not pods:
            return None
        pod = pods[0]
        if pod["metadata"]["uid"] != self._uid:
            raise NotProven(
                f"pod {self._pod} was replaced ({self._uid} -> {pod['metadata']['uid']}):"
                " that is a deleted pod, not a killed agent"
            )
        if "deletionTimestamp" in pod["metadata"]:
            raise NotProven(f"pod {self._pod} is being deleted: that ends its agent, too")
        status = _status(pod, self._container) or {}
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            ended = state.get("terminated")
            if ended and ended.get("containerID") == self._container_id:
                if self._signal is signal.SIGKILL and ended.get("exitCode") != KILLED:
                    raise NotProven(
                        f"{self._container} of {self._pod} ended by itself, with exit code"
                        f" {ended.get('exitCode')}"
                    )
                return Proof(
                    f"{self._container} of {self._pod} ended by {self._signal.name}"
                    " in a pod that stayed",
                    {
                        "pod uid, before and after": self._uid,
                        "container": self._container_id,
                        "container now": str(status.get("containerID")),
                        "exit code": str(ended.get("exitCode")),
                        "restart count": str(status.get("restartCount")),
                    },
                    max(self._injected, epoch(ended["finishedAt"])),
                )
        return None


def _status(pod: Object, container: str) -> Object | None:
    statuses = pod["status"].get("containerStatuses") or []
    return next((item for item in statuses if item["name"] == container), None)
