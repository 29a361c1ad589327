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

#: a port that nobody listens on: the pod itself refuses
DISCARD = 9
#: milliseconds by which an answer may be later than it has to be: TCP sends again after 1000
RESENT_MS = 800


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
        self._node = self._device = self._address = ""
        self._done = 0.0

    @property
    def about(self) -> str:
        """Which pod."""
        return f"{self.namespace}/{self.pod}"

    def look(self) -> Sequence[Step]:
        """Find the pod's device on its node."""
        end = pod_end(self.site, self.namespace, self.pod)
        self._node, self._address = end.node, end.addresses[0]
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
        """Packets waited in it: for as long as was asked, or for their turn. Raises NotProven."""
        if self._delay is not None:
            took = prove_late(self.site, self._node, self._address, self._delay, deadline)
            return Proof(
                f"packets to {self.about} come {self._delay} ms late",
                {"answered after": f"{took:.1f} ms", "queue": self._queue()},
                self._done,
            )
        text = ""

        def waited() -> bool:
            nonlocal text
            text = self._queue()
            over = re.search(r"overlimits (\d+)", text)
            return "tbf" in text and over is not None and int(over[1]) > 0

        why = f"packets to {self.about} that waited for their turn"
        try:
            until_true(waited, deadline=deadline, why=why)
        except ClusterError as error:
            raise NotProven(f"the queue was put in, but: {error}; {text}") from error
        return Proof(f"packets to {self.about} wait for their turn", {"queue": text}, self._done)

    def healed(self) -> None:
        """No queue is left. Raises FaultError."""
        if self.site.answers(self._node) and re.search("tbf|netem", text := self._queue()):
            raise FaultError(f"{self.about} is still slow: {text}")

    def _queue(self) -> str:
        show = f"tc -s qdisc show dev {self._device} 2>/dev/null || true"  # it goes with its pod
        return " ".join(self.site.on(self._node, show).split())


def prove_late(site: Site, node: str, address: str, delay_ms: int, deadline: float) -> float:
    """Milliseconds until a pod answered a connection from its node: one packet there, one back.

    Raises:
        NotProven: no answer came at least so late, and not so late that a packet was lost: TCP
            sends its first one again after 1 s.
    """
    dial = (
        f"s=$EPOCHREALTIME; said=$(timeout 20 bash -c ': >/dev/tcp/{address}/{DISCARD}' 2>&1);"
        ' [ $? -eq 124 ] && said="no answer"; echo "$s $EPOCHREALTIME $said"'
    )
    took: list[float] = []

    def late() -> bool:
        began, ended, said = site.on(node, dial).strip().split(" ", 2)
        answered = "refused" in said or not said
        took.append((float(ended) - float(began)) * 1000 if answered else float("inf"))
        return delay_ms <= took[-1] < delay_ms + RESENT_MS

    try:
        until_true(late, deadline=deadline, why=f"{address} answers {delay_ms} ms late")
    except ClusterError as error:
        tries = ", ".join(f"{each:.1f}" for each in took[-5:])
        raise NotProven(f"{error}; it answered after {tries} ms") from error
    return took[-1]
