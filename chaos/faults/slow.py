"""Packets to a pod wait in a queue of the kernel, on the pod's device on its node."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from chaos.errors import FaultError, NotProven
from chaos.faults.base import Planned, Proof, Scope
from chaos.faults.network import device_of, pod_end
from chaos.site import Site
from chaos.undo.steps import OnNode, Step
from clusters.cluster import Capability
from clusters.errors import ClusterError, CommandError
from clusters.kube import until_true


class Slow(Planned):
    """A queue of the kernel in front of a pod.

    Its ``netem`` delays each packet by *delay_ms*; its ``tbf`` bounds the rate to *rate_kbit*, so
    that packets wait for their turn.

    Args:
        delay_ms: None to bound the rate. Only kernels with ``netem``: see :mod:`chaos.faults.late`.
    """

    scope = Scope.NAMESPACE

    def __init__(
        self, site: Site, namespace: str, pod: str, *,
        delay_ms: int | None = None, rate_kbit: int = 256,
    ) -> None:  # fmt: skip
        super().__init__(site)
        site.cluster.require(Capability.NODE_EXEC)
        self.name = "delay packets" if delay_ms is not None else "slow link"
        self.namespace = namespace
        self.pod = pod
        self._delay = delay_ms
        self._rate = rate_kbit
        self._node = self._device = ""
        self._done = 0.0

    @property
    def about(self) -> str:
        """Which pod."""
        return f"{self.namespace}/{self.pod}"

    def look(self) -> Sequence[Step]:
        """Find the pod's device on its node."""
        end = pod_end(self.site, self.namespace, self.pod)
        self._node = end.node
        self._device = device_of(self.site, end)
        queue = self.site.on(end.node, f"tc qdisc show dev {self._device}")
        if "tbf" in queue or "netem" in queue:
            raise FaultError(f"{self.about} is slow already: {queue.strip()}")
        return [
            OnNode(node=end.node, script=f"tc qdisc del dev {self._device} root 2>/dev/null; true")
        ]

    def inject(self) -> None:
        """Put the queue in."""
        self.plan()
        what = (
            f"netem delay {self._delay}ms"
            if self._delay is not None
            else f"tbf rate {self._rate}kbit burst 4kb latency 5s"
        )
        self._done = time.time()
        try:
            self.site.on(self._node, f"tc qdisc add dev {self._device} root {what}")
        except CommandError as error:
            raise FaultError(f"no queue for {self.about}: {error}") from error

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The queue is there, and packets went through it. Raises NotProven."""
        text = ""

        def used() -> bool:
            nonlocal text
            text = " ".join(
                self.site.on(self._node, f"tc -s qdisc show dev {self._device}").split()
            )
            sent = re.search(r"Sent \d+ bytes (\d+) pkt", text)
            return ("tbf" in text or "netem" in text) and sent is not None and int(sent[1]) > 0

        try:
            until_true(used, deadline=deadline, why=f"packets in the queue of {self.about}")
        except ClusterError as error:
            raise NotProven(f"the queue was put in, but: {error}; {text}") from error
        return Proof(f"packets to {self.about} come late", {"queue": text}, self._done)
