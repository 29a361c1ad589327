"""Signals to processes, tried on processes of this host under a pretended container runtime."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from chaos.errors import FaultError, NotProven
from chaos.faults.signals import SignalProcess, Target
from clusters.cluster import Capability
from clusters.errors import CommandError


class Here:
    """A cluster whose only node is this host, and its provider."""

    def __init__(self, agent: int, folder: Path) -> None:
        (folder / "ctr").write_text(f"#!/bin/sh\necho 'abc {agent} RUNNING'\n")
        (folder / "ctr").chmod(0o755)
        self._path = folder
        self.kube = self
        self.running = True
        self.needed: tuple[Capability, ...] = ()

    def require(self, *needed: Capability) -> None:
        self.needed = needed

    def get(self, *_: Any) -> dict[str, Any]:
        state: dict[str, Any] = {"running": {}} if self.running else {"waiting": {}}
        status = {"name": "main", "containerID": "containerd://abc", "state": state}
        return {"spec": {"nodeName": "here"}, "status": {"containerStatuses": [status]}}

    def node_exec(self, _: Any, node: str, command: list[str], *, timeout: float = 30.0) -> str:
        assert node == "here"
        done = subprocess.run(
            command, env={"PATH": f"{self._path}:/usr/bin:/bin"}, capture_output=True, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip
        if done.returncode:
            raise CommandError(done.stderr, code=done.returncode)
        return done.stdout


@pytest.fixture
def agent() -> Any:
    # a shell that waits for a child, as an agent does for its worker
    process = subprocess.Popen(["bash", "-c", "sleep 300 & wait"])
    while not children(process.pid):
        time.sleep(0.01)
    yield process
    for pid in [*children(process.pid), process.pid]:
        subprocess.run(["kill", "-KILL", str(pid)], check=False, stderr=subprocess.DEVNULL)
    process.wait()


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def fault(here: Here, sign: signal.Signals, target: Target) -> SignalProcess:
    place: Any = here
    return SignalProcess(place, place, "ns", "pod", "main", sign, target)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_and_its_agent_lives(agent: Any, tmp_path: Path, sign: Any) -> None:
    child = children(agent.pid)[0]
    it = fault(Here(agent.pid, tmp_path), sign, Target.WORKER)
    it.inject()
    assert str(child) in it.proof(deadline=2).evidence["processes"]
    assert state(child) in ("", "Z")


def test_an_agent_is_frozen_and_thawed(agent: Any, tmp_path: Path) -> None:
    child = children(agent.pid)[0]
    it = fault(Here(agent.pid, tmp_path), signal.SIGSTOP, Target.AGENT)
    it.inject()
    assert "frozen" in it.proof(deadline=2).what
    assert state(agent.pid) == "T"
    assert state(child) == "S"
    it.recover()
    while state(agent.pid) == "T":
        time.sleep(0.01)
    it.recover()  # twice does no harm


def test_what_is_gone_needs_no_thaw(agent: Any, tmp_path: Path) -> None:
    it = fault(Here(agent.pid, tmp_path), signal.SIGSTOP, Target.WORKER)
    it.inject()
    for pid in children(agent.pid):
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
    agent.wait()
    it.recover()


def test_processes_that_do_not_end_are_no_proof(tmp_path: Path) -> None:
    stubborn = subprocess.Popen(["bash", "-c", "trap '' TERM; echo; while :; do sleep 0.1; done"],
                                stdout=subprocess.PIPE)  # fmt: skip
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    try:
        it = fault(Here(stubborn.pid, tmp_path), signal.SIGTERM, Target.AGENT)
        it.inject()
        with pytest.raises(NotProven, match="did not end within"):
            it.proof(deadline=0.5)
    finally:
        stubborn.kill()
        stubborn.wait()


def test_nothing_to_signal(agent: Any, tmp_path: Path) -> None:
    here = Here(agent.pid, tmp_path)
    here.running = False
    with pytest.raises(FaultError, match="does not run"):
        fault(here, signal.SIGKILL, Target.AGENT).inject()
    here.running = True
    for pid in children(agent.pid):
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
    agent.wait()
    with pytest.raises(FaultError):
        fault(here, signal.SIGKILL, Target.WORKER).inject()
