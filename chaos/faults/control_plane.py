"""The cluster's own control plane: the API server away, its parts frozen or killed."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Sequence
from typing import Literal

from chaos import processes
from chaos.errors import FaultError, NotProven
from chaos.faults import signals
from chaos.faults.base import Planned, Proof
from chaos.faults.network import MARK, counters, remove_rules
from chaos.processes import Process, Which
from chaos.site import Site
from chaos.undo.steps import OnNode, Step
from clusters.cluster import Capability
from clusters.errors import ClusterError, CommandError
from clusters.kube import PODS, until_true

#: port of the API server on its node (kubeadm's default)
PORT = 6443
#: seconds until the control plane answers again
BACK = 120.0

Component = Literal["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"]


class ApiServerAway(Planned):
    """Nobody reaches the API server: connections are refused at once, or never answered.

    A rule on its node, so it is exact to the millisecond: a static pod whose manifest is moved ends
    and comes back half a minute late.

    Args:
        how: ``refused`` (reset, as by a server that is not there), or ``silent``.
        spare_us: whether the harness still reaches it, so that its history has no gap. It comes
            through the node's gateway, as nobody else does.
    """

    pauses = ("operator", "scheduler")

    def __init__(
        self, site: Site, how: Literal["refused", "silent"] = "refused", *, spare_us: bool = True
    ) -> None:
        super().__init__(site)
        site.cluster.require(Capability.NODE_EXEC, Capability.OWN_CLUSTER)
        self.name = "API server away" if how == "refused" else "API server silent"
        self._how = how
        self._spare = spare_us
        self._node = ""
        self.mark = f"{MARK}{secrets.token_hex(4)}"
        self._done = 0.0

    @property
    def about(self) -> str:
        """Who is spared."""
        return "for all but the harness" if self._spare else "for all"

    def look(self) -> Sequence[Step]:
        """Whether it answers."""
        self._node = self.site.control_plane()
        if not self._livez():
            raise FaultError("the API server does not answer already")
        return [OnNode(node=self._node, script=remove_rules(self.mark))]

    def inject(self) -> None:
        """Write the rule."""
        self.plan()
        target = "REJECT --reject-with tcp-reset" if self._how == "refused" else "DROP"
        # a network may have IPv6 besides, and kubelets talk over it; we come by IPv4
        lines = ["set -e", "spare="]
        if self._spare:
            lines.append("spare=\"! -s $(ip -4 route show default | awk '{print $3; exit}')\"")
        for tool, spare in (("iptables", "$spare"), ("ip6tables", "")):
            lines.append(
                f"{tool} -w 5 -I INPUT -p tcp --dport {PORT} {spare} -m comment"
                f" --comment {self.mark} -j {target}"
            )
        script = "\n".join(lines)
        self._done = time.time()
        try:
            self.site.on(self._node, script)
        except CommandError as error:
            raise FaultError(f"the rule could not be written: {error}") from error

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """Packets were refused, and a request from the node is not answered. Raises NotProven."""

        def counted() -> bool:
            return sum(counters(self.site, self._node, self.mark)) > 0

        answered = self._livez()
        try:
            until_true(counted, deadline=deadline, why="a packet refused", every=0.2)
        except ClusterError as error:
            raise NotProven(f"the rule is there, but: {error}") from error
        if answered:
            raise NotProven("the rule is there, but the API server answers its own node")
        count = sum(counters(self.site, self._node, self.mark))
        return Proof(
            f"the API server is {'away' if self._how == 'refused' else 'silent'} {self.about}",
            {"packets refused": str(count), "asked from its node": "no answer"},
            self._done,
        )

    def healed(self) -> None:
        """It answers, from its node too."""
        until_true(self._livez, deadline=BACK, why="the API server answers its node")
        until_true(self.site.kube.ready, deadline=BACK, why="the API server ready")

    def _livez(self) -> bool:
        try:
            self.site.on(self._node, f"curl -sk -o /dev/null -m 3 https://127.0.0.1:{PORT}/livez")
        except CommandError:
            return False
        return True


class _ComponentFault(Planned):
    """Something about one program of the control plane."""

    word = ""

    def __init__(self, site: Site, component: Component) -> None:
        super().__init__(site)
        site.cluster.require(Capability.NODE_EXEC, Capability.OWN_CLUSTER)
        self.component = component
        self.name = f"{self.word} {component}"
        self.pauses = ("scheduler",) if component == "kube-scheduler" else ("operator", "scheduler")
        self._node = ""
        self._processes: list[Process] = []
        self._done = 0.0

    def _find(self) -> None:
        self._node = self.site.control_plane()
        pods = self.site.kube.find(PODS, "kube-system", labels=f"component={self.component}")
        mine = [pod for pod in pods if pod["spec"].get("nodeName") == self._node]
        if not mine:
            raise FaultError(f"there is no {self.component} on {self._node}")
        _, self._processes = processes.find(self.site, mine[0], self.component, Which.MAIN)

    def healed(self) -> None:
        """The API server is ready; the component's pod too."""
        until_true(self.site.kube.ready, deadline=BACK, why="the API server ready")
        self.site.kube.wait(
            PODS,
            lambda pods: (
                True
                if any(
                    status.get("ready")
                    for pod in pods
                    for status in pod["status"].get("containerStatuses") or []
                )
                else None
            ),
            namespace="kube-system", labels=f"component={self.component}",
            deadline=BACK, why=f"{self.component} ready",
        )  # fmt: skip


class FreezeComponent(_ComponentFault):
    """Stop a program of the control plane (SIGSTOP), etcd for instance.

    After 80 s and more its liveness probe has the kubelet start another one.
    """

    word = "freeze"

    def look(self) -> Sequence[Step]:
        """Find it; SIGCONT undoes it."""
        self._find()
        return [OnNode(node=self._node, script=processes.thaw(self._processes))]

    def inject(self) -> None:
        """Stop it."""
        self.plan()
        self._done = time.time()
        processes.send(self.site, self._node, self._processes, signal.SIGSTOP)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """It is in state T. Raises NotProven."""
        return signals.stopped(
            self.site, self._node, self._processes, self.component, self._done, deadline
        )

    def healed(self) -> None:
        """It runs, and the API server is ready."""
        signals.running(self.site, self._node, self._processes)
        super().healed()


class KillComponent(_ComponentFault):
    """Kill a program of the control plane; the kubelet starts it again."""

    word = "kill"

    def look(self) -> Sequence[Step]:
        """Find it."""
        self._find()
        return ()

    def inject(self) -> None:
        """Kill it."""
        self.plan()
        self._done = time.time()
        processes.send(self.site, self._node, self._processes, signal.SIGKILL)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The process is gone. Raises NotProven."""
        signals.ended(
            self.site, self._node, self._processes, self.component, "it was killed", deadline
        )
        (process,) = self._processes
        return Proof(f"{self.component} was killed", {f"process {process}": "gone"}, self._done)
