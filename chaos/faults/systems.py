"""Operators and schedulers: killed, frozen, taken away, rolled to another version."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import Literal

from chaos import hostprocesses, processes
from chaos.errors import FaultError, NotProven
from chaos.faults import signals
from chaos.faults.base import Planned, Proof
from chaos.hostprocesses import HostProcess
from chaos.processes import Process, Which
from chaos.site import Site
from chaos.target import BACK, Target, selector
from chaos.undo.steps import Continue, OnNode, Patch, Reinstall, StartLocal, Step
from clusters import local
from clusters.cluster import Capability
from clusters.errors import WaitTimeout
from clusters.kube import DEPLOYMENTS, PODS, Object


class SystemFault(Planned):
    """Something about an operator or a scheduler."""

    word = ""

    def __init__(self, site: Site, target: Target) -> None:
        super().__init__(site)
        self.target = target
        self.name = f"{self.word} {target.role}"
        self.pauses = (target.role,)
        self._done = 0.0

    @property
    def about(self) -> str:
        """Which one."""
        return self.target.name

    def healed(self) -> None:
        """It is Ready again, each of its deployments."""
        self.target.wait_back(self.site)


class KillSystem(SystemFault):
    """Kill its processes, in pods that stay, or its pods without grace.

    A container that is killed again soon is kept waiting by the kubelet, 10 s and more: for many
    kills take the pods.
    """

    word = "kill"

    def __init__(
        self, site: Site, target: Target, how: Literal["process", "pod"] = "process"
    ) -> None:
        super().__init__(site, target)
        self.pauses = ()  # it is back soon, and its pods say when
        self._how = how
        self._found: list[tuple[Object, str, Process]] = []
        self._local: list[HostProcess] = []
        self._pods: list[Object] = []

    def look(self) -> Sequence[Step]:
        """Find what is to be killed; Kubernetes, or who keeps it, starts it again."""
        self._local = hostprocesses.of(self.site, self.target)
        if self._local:
            return ()
        if self._how == "process":
            self.site.cluster.require(Capability.NODE_EXEC)
        self._pods = self.target.pods(self.site)
        if self._how == "process":
            for pod in self._pods:
                name = pod["spec"]["containers"][0]["name"]
                task, chosen = processes.find(self.site, pod, name, Which.MAIN)
                self._found.append((pod, task, chosen[0]))
        return ()

    def inject(self) -> None:
        """Kill it."""
        self.plan()
        self._done = time.time()
        for one in self._local:
            one.send(signal.SIGKILL)
        for pod in self._pods if self._how == "pod" else ():
            meta = pod["metadata"]
            self.site.kube.delete(PODS, meta["name"], meta["namespace"], grace=0)
        for pod, _, process in self._found:
            processes.send(self.site, pod["spec"]["nodeName"], [process], signal.SIGKILL)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The processes, or the pods, are not there any more. Raises NotProven."""
        evidence: dict[str, str] = {}
        for one in self._local:
            one.wait_gone(deadline)
            evidence[f"process {one.pid} ({one.name})"] = "gone"
        for pod, task, process in self._found:
            signals.ended(
                self.site, pod["spec"]["nodeName"], [process],
                f"process {process} of {self.about}", "it was killed", deadline,
            )  # fmt: skip
            evidence[f"process {process.pid} of container {task[:12]}"] = "gone"
        if self._how == "pod" and self._pods:
            gone = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in self._pods}

            def none_left(pods: list[Object]) -> bool | None:
                return None if any(p["metadata"]["uid"] in gone for p in pods) else True

            try:
                self.site.kube.wait(
                    PODS, none_left, namespace=self._pods[0]["metadata"]["namespace"],
                    deadline=deadline, why=f"the killed pods of {self.about} gone",
                )  # fmt: skip
            except WaitTimeout as error:
                raise NotProven(f"they were deleted, but: {error}") from error
            evidence = {f"pod {name}": f"{uid} -> gone" for uid, name in gone.items()}
        return Proof(f"{self.about} was killed ({self._how})", evidence, self._done)

    def recover(self) -> None:
        """Kubernetes does; wait for it."""
        if self._steps is not None:
            self.healed()

    def healed(self) -> None:
        """Other containers than those that were killed are there, and Ready."""
        for pod, task, _ in self._found:
            meta = pod["metadata"]

            def other(pods: list[Object], task: str = task) -> bool | None:
                there = [s for p in pods for s in p["status"].get("containerStatuses") or ()]
                return None if any(task in s.get("containerID", "") for s in there) else True

            self.site.kube.wait(
                PODS, other, namespace=meta["namespace"], fields=f"metadata.name={meta['name']}",
                deadline=BACK, why=f"another container in {meta['name']}",
            )  # fmt: skip
        super().healed()


class FreezeSystem(SystemFault):
    """Stop its process (SIGSTOP): it holds its leases and connections, and does nothing.

    A liveness probe ends it after a while, if it has one; so freeze for seconds, not for minutes.
    """

    word = "freeze"

    def __init__(self, site: Site, target: Target) -> None:
        super().__init__(site, target)
        self._found: list[tuple[str, list[Process]]] = []
        self._local: list[HostProcess] = []

    def look(self) -> Sequence[Step]:
        """Find the processes; SIGCONT undoes it."""
        self._local = hostprocesses.of(self.site, self.target)
        if self._local:
            return [Continue(pid=one.pid, start=one.start) for one in self._local]
        self.site.cluster.require(Capability.NODE_EXEC)
        steps = []
        for pod in self.target.pods(self.site):
            name = pod["spec"]["containers"][0]["name"]
            _, chosen = processes.find(self.site, pod, name, Which.MAIN)
            node = pod["spec"]["nodeName"]
            self._found.append((node, chosen))
            steps.append(OnNode(node=node, script=processes.thaw(chosen)))
        return steps

    def inject(self) -> None:
        """Stop them."""
        self.plan()
        self._done = time.time()
        for one in self._local:
            one.send(signal.SIGSTOP)
        for node, chosen in self._found:
            processes.send(self.site, node, chosen, signal.SIGSTOP)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """They are in state T. Raises NotProven."""
        evidence: dict[str, str] = {}
        for one in self._local:
            one.wait_state("T", deadline)
            evidence[f"process {one.pid} ({one.name})"] = "S -> T"
        for node, chosen in self._found:
            found = signals.stopped(self.site, node, chosen, self.about, self._done, deadline)
            evidence |= found.evidence
        return Proof(f"{self.about} is frozen", evidence, self._done)

    def healed(self) -> None:
        """None of them is stopped, and it is Ready."""
        for one in self._local:
            if one.state() == "T":
                raise FaultError(f"process {one.pid} ({one.name}) is still stopped after SIGCONT")
        for node, chosen in self._found:
            signals.running(self.site, node, chosen)
        super().healed()


class TakeSystemAway(SystemFault):
    """Scale its deployments down to nothing: there is none until the fault is undone."""

    word = "take away"

    def look(self) -> Sequence[Step]:
        """Its replicas, or its processes; they are written back, or started."""
        if names := self.target.local(self.site):
            return [StartLocal(names=tuple(names))]
        found = self.target.deployments(self.site)
        if not found:
            raise FaultError(f"{self.about} is no deployment, so it cannot be scaled down")
        return [
            Patch.of(
                DEPLOYMENTS, item["metadata"]["name"],
                {"spec": {"replicas": item["spec"].get("replicas", 1) or 1}},
                item["metadata"]["namespace"],
            )
            for item in found
        ]  # fmt: skip

    def inject(self) -> None:
        """Scale down; what is left of its pods is killed, for a graceful end may last."""
        self.plan()
        self._done = time.time()
        if names := self.target.local(self.site):
            local.of(self.site.cluster).stop(*names)
            return
        pods = self.target.pods(self.site)
        for item in self.target.deployments(self.site):
            meta = item["metadata"]
            self.site.kube.patch(
                DEPLOYMENTS, meta["name"], {"spec": {"replicas": 0}}, meta["namespace"]
            )
        for pod in pods:
            meta = pod["metadata"]
            self.site.kube.delete(PODS, meta["name"], meta["namespace"], grace=0)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """It has no pods, or its processes do not run. Raises NotProven."""
        for name in self.target.local(self.site):
            state = local.of(self.site.cluster).state(name)
            if state is not None and state.pid is not None:
                raise NotProven(f"{name} was stopped, but it runs as pid {state.pid}")
        for item in self.target.deployments(self.site):
            try:
                self.site.kube.wait(
                    PODS, lambda pods: None if pods else True, namespace=self.target.namespace,
                    labels=selector(item),
                    deadline=deadline, why=f"no pods of {item['metadata']['name']}",
                )  # fmt: skip
            except WaitTimeout as error:
                raise NotProven(f"it was scaled down, but: {error}") from error
        return Proof(f"{self.about} is away", {"pods": "0"}, self._done)


class RollSystem(SystemFault):
    """Install another version of it, while jobs run; the former one comes back afterwards.

    Args:
        operator, scheduler: what is installed now, as on the command line.
        to: the other version of the one that is meant, ``NAME:VERSION``.
    """

    word = "roll"

    def __init__(
        self, site: Site, target: Target, *, operator: str, scheduler: str, to: str
    ) -> None:
        super().__init__(site, target)
        site.cluster.require(Capability.OWN_CLUSTER)
        self._operator, self._scheduler, self._to = operator, scheduler, to
        self._before: set[str] = set()

    def look(self) -> Sequence[Step]:
        """What runs now; the version from before is installed again."""
        self._before = self._running()
        return [
            Reinstall(which=self.target.role, operator=self._operator, scheduler=self._scheduler)
        ]

    def inject(self) -> None:
        """Install the other version; returns when it answers."""
        self.plan()
        self._done = time.time()
        operator, scheduler = self._operator, self._scheduler
        if self.target.role == "operator":
            operator = self._to
        else:
            scheduler = self._to
        Reinstall(which=self.target.role, operator=operator, scheduler=scheduler).run(self.site)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """Other images, or other programs, run. Raises NotProven."""
        now = self._running()
        if now == self._before:
            raise NotProven(f"{self._to} was installed, but the same runs: {sorted(now)}")
        return Proof(
            f"{self.about} was rolled to {self._to}",
            {"before": ", ".join(sorted(self._before)), "now": ", ".join(sorted(now))},
            self._done,
        )

    def _running(self) -> set[str]:
        """Images of its pods, or the programs that it is on this host."""
        if names := self.target.local(self.site):
            states = [local.of(self.site.cluster).state(name) for name in names]
            return {state.process.argv[0] for state in states if state is not None}
        return {
            container["image"]
            for pod in self.target.pods(self.site)
            for container in pod["spec"]["containers"]
        }
