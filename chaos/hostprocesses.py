"""Processes of an operator or a scheduler that runs on this host, beside an embedded cluster."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from chaos.errors import FaultError, NotProven
from chaos.site import Site
from chaos.target import Target
from clusters import local
from clusters.errors import ClusterError
from clusters.kube import until_true
from clusters.processes import start_of


@dataclass(frozen=True)
class HostProcess:
    """A process of this host that is a part of a system."""

    name: str
    pid: int
    start: int

    def send(self, sign: signal.Signals) -> None:
        """Send it a signal. Raises FaultError when it is gone."""
        if start_of(self.pid) != self.start:
            raise FaultError(f"process {self.pid} ({self.name}) is gone already")
        os.kill(self.pid, sign)

    def state(self) -> str:
        """The letter of proc(5); "" when it is gone."""
        if start_of(self.pid) != self.start:
            return ""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return ""

    def wait_gone(self, deadline: float) -> None:
        """Raises NotProven."""
        self.wait_state("", deadline)

    def wait_state(self, wanted: str, deadline: float) -> None:
        """Raises NotProven."""
        try:
            until_true(
                lambda: self.state() == wanted, deadline=deadline, every=0.05,
                why=f"process {self.pid} ({self.name}) {wanted or 'gone'}",
            )  # fmt: skip
        except ClusterError as error:
            raise NotProven(f"it was signalled, but: {error}; it is {self.state()!r}") from error


def of(site: Site, target: Target) -> list[HostProcess]:
    """The processes of a system; none where it runs in pods.

    Raises:
        FaultError: one of them does not run.
    """
    found = []
    for name in target.local(site):
        state = local.of(site.cluster).state(name)
        start = start_of(state.pid) if state is not None and state.pid is not None else None
        if state is None or state.pid is None or start is None:
            raise FaultError(f"{name} does not run")
        found.append(HostProcess(name, state.pid, start))
    return found
