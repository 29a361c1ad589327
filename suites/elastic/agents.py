"""Who restarted, as the kubelet, the job and torchrun each count it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusters.kube import EVENTS, Kube, Object
from oracles.progress import ProgressLine


@dataclass(frozen=True)
class Agent:
    """An agent's pod, the container it runs in, and how often the kubelet restarted that."""

    uid: str
    container: str
    restarts: int


@dataclass(frozen=True)
class Agents:
    """The agents of a job at one moment, by pod name."""

    by_pod: dict[str, Agent]

    @classmethod
    def of(cls, pods: Iterable[Object]) -> Agents:
        """Those of *pods* that have a container."""
        found = {}
        for pod in pods:
            for status in pod["status"].get("containerStatuses") or []:
                meta = pod["metadata"]
                found[meta["name"]] = Agent(
                    meta["uid"], status.get("containerID", ""), int(status.get("restartCount", 0))
                )
        return cls(found)

    def restarted_since(self, before: Agents, *, but: Iterable[str] = ()) -> list[str]:
        """Pods whose agent of *before* is not the one of now, without those of *but*."""
        return sorted(
            name
            for name, agent in before.by_pod.items()
            if name in self.by_pod
            and name not in set(but)
            and (agent.uid, agent.container) != (self.by_pod[name].uid, self.by_pod[name].container)
        )

    def kubelet_restarts(self, before: Agents) -> int:
        """Restarts of containers that kubelets count since *before*; a new pod counts from 0."""
        total = 0
        for name, agent in self.by_pod.items():
            old = before.by_pod.get(name)
            same = old is not None and old.uid == agent.uid
            total += agent.restarts - (old.restarts if same and old else 0)
        return total

    def replaced(self, before: Agents) -> int:
        """Pods of *before* that have another uid now."""
        both = before.by_pod.keys() & self.by_pod.keys()
        return sum(self.by_pod[name].uid != before.by_pod[name].uid for name in both)


def job_restarts(kube: Kube, namespace: str, job: str, kind: str = "PyTorchJob") -> int:
    """How often the job said that it restarts: its status keeps no count, but its events do.

    It says so of one pod that failed each time it looks at it, until that pod is gone.
    """
    chosen = f"involvedObject.name={job},reason={kind}Restarting"
    events = kube.find(EVENTS, namespace, fields=chosen)
    return sum(int(event.get("count") or 1) for event in events)


def torchrun_restarts(lines: Sequence[ProgressLine], since: float = 0.0) -> int:
    """The most that an agent's own count (TORCHELASTIC_RESTART_COUNT) says after *since*."""
    return max((line.restart or 0 for line in lines if line.t > since), default=0)
