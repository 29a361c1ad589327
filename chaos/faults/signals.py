"""Signals to processes in pods that stay: killed, told to end, stopped and continued."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence

from chaos import processes
from chaos.errors import FaultError, NotProven
from chaos.faults.base import Planned, Proof, Scope
from chaos.processes import Process, Which
from chaos.site import Site
from chaos.undo.steps import OnNode, Step
from clusters.cluster import Capability
from clusters.errors import ClusterError
from clusters.kube import PODS, until_true


class SignalProcess(Planned):
    """Send a signal that ends a process: SIGKILL, or SIGTERM that it may handle.

    The pod stays. What ends with the process (the container, when it is the first one) is the
    system's business.
    """

    scope = Scope.NAMESPACE

    def __init__(
        self, site: Site, namespace: str, pod: str, container: str,
        which: Which = Which.MAIN, sign: signal.Signals = signal.SIGKILL,
    ) -> None:  # fmt: skip
        super().__init__(site)
        site.cluster.require(Capability.NODE_EXEC)
        self.name = f"{'kill' if sign is signal.SIGKILL else sign.name} {which}"
        self.namespace = namespace
        self.pod = pod
        self.which = which
        self._container = container
        self._sign = sign
        self._uid = self._node = ""
        self._processes: list[Process] = []
        self._sent = 0.0

    @property
    def about(self) -> str:
        """Which pod."""
        return f"{self.namespace}/{self.pod}"

    def look(self) -> Sequence[Step]:
        """Find the processes. Raises FaultError when there are none."""
        pod = self.site.pod(self.namespace, self.pod)
        self._uid, self._node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        _, self._processes = processes.find(self.site, pod, self._container, self.which)
        return ()

    def inject(self) -> None:
        """Send it. Raises FaultError when they are gone by now."""
        self.plan()
        self._sent = time.time()
        processes.send(self.site, self._node, self._processes, self._sign)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The processes are gone, and the pod is the same. Raises NotProven."""
        ended(
            self.site, self._node, self._processes,
            f"{self.which} of {self.about}", f"{self._sign.name} was sent", deadline,
        )  # fmt: skip
        self._same_pod()
        return Proof(
            f"{self.which} of {self.about} ended by {self._sign.name} in a pod that stayed",
            {
                "pod uid, before and after": self._uid,
                **{f"process {p.pid}": f"{p.command[:200]} -> gone" for p in self._processes},
            },
            self._sent,
        )

    def _same_pod(self) -> None:
        found = self.site.kube.get(PODS, self.pod, self.namespace)
        uid = found["metadata"]["uid"] if found else "none"
        if uid != self._uid:
            raise NotProven(
                f"pod {self.about} was replaced ({self._uid} -> {uid}): that is a lost pod, not a"
                " signal to a process"
            )
        if found and "deletionTimestamp" in found["metadata"]:
            raise NotProven(f"pod {self.about} is being deleted: that ends its processes, too")


class StopProcess(SignalProcess):
    """Stop processes (SIGSTOP) until they are continued: they are there, and answer nothing."""

    def __init__(
        self, site: Site, namespace: str, pod: str, container: str, which: Which = Which.ALL
    ) -> None:
        super().__init__(site, namespace, pod, container, which, signal.SIGSTOP)
        self.name = f"stop {which}"

    def look(self) -> Sequence[Step]:
        """Find the processes; SIGCONT undoes it."""
        super().look()
        return [OnNode(node=self._node, script=processes.thaw(self._processes))]

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """They are in state T. Raises NotProven."""
        return stopped(self.site, self._node, self._processes, self.about, self._sent, deadline)

    def healed(self) -> None:
        """None of them is stopped. Raises FaultError."""
        running(self.site, self._node, self._processes)


def ended(
    site: Site, node: str, chosen: Sequence[Process], about: str, done: str, deadline: float
) -> None:
    """Wait until processes are gone, or zombies. *done* is what was done to them, in words.

    Raises:
        NotProven: they are still there; says in which states.
    """
    seen: dict[int, str] = {}

    def gone() -> bool:
        seen.update(processes.states(site, node, chosen))
        return all(state in processes.ENDED for state in seen.values())

    try:
        until_true(gone, deadline=deadline, why=f"{about} gone", every=0.1)
    except ClusterError as error:
        raise NotProven(f"{done}, but is still there: {error}; states: {seen}") from error


def stopped(
    site: Site, node: str, chosen: Sequence[Process], about: str, sent: float, deadline: float
) -> Proof:
    """The proof that processes are stopped. Raises NotProven."""
    seen: dict[int, str] = {}

    def all_stopped() -> bool:
        seen.update(processes.states(site, node, chosen))
        there = [state for state in seen.values() if state != "gone"]
        return bool(there) and all(state == "T" for state in there)

    try:
        until_true(all_stopped, deadline=deadline, why=f"processes of {about} stopped", every=0.1)
    except ClusterError as error:
        raise NotProven(f"SIGSTOP was sent, but: {error}; states: {seen}") from error
    there = [process for process in chosen if seen[process.pid] == "T"]
    return Proof(
        f"{len(there)} processes of {about} are stopped",
        {f"process {p.pid}": f"{p.command[:200]}: {p.state} -> T" for p in there},
        sent,
    )


def running(site: Site, node: str, chosen: Sequence[Process]) -> None:
    """Raise FaultError while one of the processes is stopped; a node that is off has none."""
    if not site.answers(node):
        return
    still = [pid for pid, state in processes.states(site, node, chosen).items() if state == "T"]
    if still:
        raise FaultError(f"processes {still} on {node} are still stopped after SIGCONT")
