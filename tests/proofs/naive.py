"""A tiny gang scheduler that is wrong, as the source thread's was: the proofs' broken system.

It compares the GPUs that a gang asks for with those that all nodes have together, and sees neither
who else uses them, nor how they are spread, nor taints, selectors and cordons. A node without GPUs
counts as big enough (``pod.gpus < node.gpus or node.gpus == 0``), and the nodes are tried in the
order of their names, in which the control plane comes first. It binds the pods that there are,
whether or not the gang is complete.

    python -m tests.proofs.naive KUBECONFIG CONTEXT

looks after the pods that name the scheduler ``naive``, until it is killed.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clusters.cluster import Cluster
from clusters.errors import ApiError, Expired, Unreachable
from clusters.kube import NODES, PODS, Kube, Object
from clusters.topology import GPU
from fixtures.systems.protocols import GangScheduler
from oracles import relations
from oracles.errors import HarnessError
from tests.proofs import breaking

NAME = "naive"
#: seconds that one watch lasts
WATCH = 300.0
#: it says so when it has seen all pods that there are
LISTENS = "listens"


class Naive:
    """Binds pods. Start with :meth:`run`."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._pods: dict[str, Object] = {}

    def run(self) -> None:
        """For ever."""
        while True:
            with suppress(Expired, Unreachable):
                found, version = self._kube.list_with_version(PODS)
                self._pods = {pod["metadata"]["uid"]: pod for pod in found if _mine(pod)}
                self.schedule()
                print(LISTENS, flush=True)
                for event in self._kube.watch(PODS, since=version, timeout=WATCH):
                    self._see(event)

    def _see(self, event: Object) -> None:
        pod = event["object"]
        if event["type"] == "BOOKMARK" or not _mine(pod):
            return
        if event["type"] == "DELETED":
            self._pods.pop(pod["metadata"]["uid"], None)
        else:
            self._pods[pod["metadata"]["uid"]] = pod
        self.schedule()

    def schedule(self) -> None:
        """Bind what seems to have room."""
        have = {
            node["metadata"]["name"]: int(node["status"].get("allocatable", {}).get(GPU, 0))
            for node in self._kube.find(NODES)
        }
        used: Counter[str] = Counter()
        asked: Counter[tuple[str, str]] = Counter()
        for pod in self._pods.values():
            asked[_gang(pod)] += relations.gpus(pod)
            if node := pod["spec"].get("nodeName"):
                used[node] += relations.gpus(pod)
        for pod in list(self._pods.values()):
            if pod["spec"].get("nodeName") or asked[_gang(pod)] > sum(have.values()):
                continue
            gpus = relations.gpus(pod)
            for node in sorted(have):
                # the source thread's comparison: no GPUs at all pass for enough of them
                if gpus <= have[node] - used[node] or have[node] == 0:
                    self._bind(pod, node)
                    used[node] += gpus
                    break

    def _bind(self, pod: Object, node: str) -> None:
        meta = pod["metadata"]
        pod["spec"]["nodeName"] = node
        with suppress(ApiError):  # gone, or bound by a scheduler before
            breaking.bind(self._kube, meta["namespace"], meta["name"], node)


def _mine(pod: Object) -> bool:
    ended = pod["status"].get("phase") in relations.TERMINAL
    return pod["spec"].get("schedulerName") == NAME and not ended


def _gang(pod: Object) -> tuple[str, str]:
    meta = pod["metadata"]
    return meta["namespace"], relations.group_name(pod) or meta["name"]


@contextmanager
def running(cluster: Cluster) -> Iterator[None]:
    """The scheduler as a process of its own, as long as the block lasts. It listens by then.

    Raises:
        HarnessError: it ended instead.
    """
    command = [sys.executable, "-m", "tests.proofs.naive", str(cluster.kubeconfig), cluster.context]
    process = subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != LISTENS:
            raise HarnessError(f"the naive scheduler ended with {process.wait()}")
        yield
    finally:
        process.kill()
        process.wait()


class Instead:
    """A scheduler whose pods go to another one: ``Instead(coscheduling, "naive")``.

    Its groups are made as ever, and read as ever; only who binds the pods is somebody else.
    """

    def __init__(self, real: GangScheduler, scheduler_name: str) -> None:
        self.real = real
        self.scheduler_name = scheduler_name

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    def join(self, pod: Object, group: str, members: int | None = None) -> None:
        """As the real one does, but for the scheduler's name."""
        self.real.join(pod, group, members)
        pod["spec"]["schedulerName"] = self.scheduler_name


if __name__ == "__main__":
    Naive(Kube(Path(sys.argv[1]), sys.argv[2])).run()
