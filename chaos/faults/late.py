"""Each packet to a pod comes late by the same time.

By ``netem`` where the kernel has it. Many small kernels have not: there a program of ours on the
pod's node (``relay.go``) keeps the packets instead. A rule of routing leads all that goes to the
pod into a tun device of that program, and the program puts it on the pod's own link. If it dies its
device is gone, and with that the way to it: packets go directly again.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from chaos.errors import FaultError
from chaos.faults.base import Planned, Proof, Scope
from chaos.faults.network import MARK, device_of, pod_end
from chaos.faults.slow import DISCARD, Slow, prove_late
from chaos.site import Site
from chaos.undo.steps import OnNode, Step
from clusters.cluster import Capability
from clusters.doctor import faults
from clusters.errors import CommandError
from clusters.parts import gobuild
from oracles.errors import NotApplicable

SOURCE = Path(__file__).with_name("relay.go")
#: priority of our rules of routing, before those of the node (32766 and 32767); what finds them
PRIORITY = 90
#: how the units that run the program begin
UNIT = f"{MARK}late-"
#: the tables that our rules look into, one for each fault
_TABLES = range(20_000, 60_000)


def late(site: Site, namespace: str, pod: str, delay_ms: int) -> Planned:
    """The fault that delays each packet to a pod, as this kernel can."""
    features = faults.features()
    if features is not None and "netem" in features:
        return Slow(site, namespace, pod, delay_ms=delay_ms)
    return Relayed(site, namespace, pod, delay_ms)


class Relayed(Planned):
    """Packets to a pod are kept for *delay_ms* by a program on its node."""

    name = "delay packets"
    scope = Scope.NAMESPACE

    def __init__(self, site: Site, namespace: str, pod: str, delay_ms: int) -> None:
        super().__init__(site)
        site.cluster.require(Capability.NODE_EXEC, Capability.HOST_FOLDERS)
        if delay_ms < 1:
            raise FaultError(f"a delay of {delay_ms} ms: it is at least 1")
        self.namespace = namespace
        self.pod = pod
        self._delay = delay_ms
        self._word = secrets.token_hex(4)
        self._table = secrets.choice(_TABLES)
        self._node = self._device = self._address = ""
        self._program = Path()
        self._done = 0.0

    @property
    def about(self) -> str:
        """Which pod."""
        return f"{self.namespace}/{self.pod}"

    @property
    def _unit(self) -> str:
        return f"{UNIT}{self._word}"

    @property
    def _counts(self) -> str:
        return f"/run/{self._unit}.json"

    @property
    def _filter(self) -> str:
        return f"/proc/sys/net/ipv4/conf/{self._device}/rp_filter"

    @property
    def _rule(self) -> str:
        return f"pref {PRIORITY} to {self._address} lookup {self._table}"

    def look(self) -> Sequence[Step]:
        """Find the pod's device on its node; the rule goes before the program."""
        end = pod_end(self.site, self.namespace, self.pod)
        self._node, self._address = end.node, end.addresses[0]
        if not self.site.on(end.node, "ls /dev/net/tun 2>/dev/null || true").strip():
            raise NotApplicable(
                f"{end.node} has neither netem nor tun devices, so packets cannot be delayed;"
                " their rate can be bounded"
            )
        self._program = self._built()
        self._device = device_of(self.site, end)
        if self._device.startswith("late-"):
            raise FaultError(f"packets to {self.about} come late already")
        filtered = self.site.on(end.node, f"cat {self._filter}").strip()
        undone = (
            f"ip rule del {self._rule} 2>/dev/null;"
            f" {{ echo {filtered} >{self._filter}; }} 2>/dev/null;"
            f" systemctl stop {self._unit} 2>/dev/null;"
            f" systemctl reset-failed {self._unit} 2>/dev/null;"
            f" rm -f {self._counts}*; true"
        )
        return [OnNode(node=end.node, script=undone)]

    def inject(self) -> None:
        """Start the program, then lead the pod's packets to it."""
        self.plan()
        name = f"late-{self._word}"
        words = [
            str(self._program), "-tun", name, "-out", self._device, "-mac", self._neighbour(),
            "-to", self._address, "-ms", str(self._delay), "-counts", self._counts,
        ]  # fmt: skip
        self._done = time.time()
        script = (
            f"set -e; systemd-run --quiet --unit={self._unit} {shlex.join(words)}\n"
            f"for i in $(seq 100); do [ -e {self._counts} ] && break; sleep 0.1; done\n"
            f"[ -e {self._counts} ] || {{ journalctl -u {self._unit} -n 5 >&2; exit 1; }}\n"
            f"ip route add {self._address} dev {name} table {self._table}\n"
            # a strict filter would drop what the pod sends: the way back to it is another one now
            f"echo 2 >{self._filter}\n"
            f"ip rule add {self._rule}"
        )
        try:
            self.site.on(self._node, script)
        except CommandError as error:
            raise FaultError(f"packets to {self.about} cannot be delayed: {error}") from error

    def _built(self) -> Path:
        """The program, where the node sees it: built before the moment that is waited for."""
        shared = self.site.cluster.shared
        assert shared is not None
        built = gobuild.build_file("relay", SOURCE.read_text()) / "relay"
        target = shared / f"relay-{built.parent.name}"
        if not target.exists():
            shared.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f"{target.name}.{self._word}")
            shutil.copy2(built, partial)
            partial.replace(target)
        return target

    def _neighbour(self) -> str:
        """The pod's link address, which the node knows once it has sent something there."""
        script = (
            f"for i in $(seq 30); do (echo >/dev/udp/{self._address}/{DISCARD}) 2>/dev/null;"
            f" ip neigh show {self._address} dev {self._device} | grep lladdr && break;"
            " sleep 0.1; done; true"
        )
        found = re.search(r"lladdr ([0-9a-f:]{17})", self.site.on(self._node, script))
        if found is None:
            raise FaultError(f"{self._node} does not know the link address of {self.about}")
        return found[1]

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """The pod answers its node so much later. Raises NotProven."""
        took = prove_late(self.site, self._node, self._address, self._delay, deadline)
        did = json.loads(self.site.on(self._node, f"cat {self._counts}"))
        return Proof(
            f"packets to {self.about} come {self._delay} ms late",
            {
                "answered after": f"{took:.1f} ms",
                "packets given on": f"{did['given']} of {did['taken']}, {did['lost']} lost",
                "kept for": f"{did['least_ms']:.1f} to {did['most_ms']:.1f} ms",
                "by": f"{self._unit} on {self._node}",
            },
            self._done,
        )

    def lasted(self) -> str:
        """See :class:`Planned`: when the program ends, packets come in time again."""
        if not self.site.answers(self._node):
            return ""
        if self.site.unit(self._node, self._unit) == "active":
            return ""
        return f"packets to {self.about} were late for a while only: the relay has ended"

    def healed(self) -> None:
        """No rule and no program is left. Raises FaultError."""
        if not self.site.answers(self._node):
            return
        left = self.site.on(
            self._node,
            f"ip rule | grep 'lookup {self._table}'; systemctl is-active --quiet {self._unit}"
            f" && echo {self._unit}; true",
        )
        if left.strip():
            raise FaultError(f"{self.about} is still slow: {left.strip()}")
