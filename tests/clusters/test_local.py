"""Local processes: real ones of this host, small."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import belonging, ledger
from clusters.errors import ProcessError
from clusters.kube import until_true
from clusters.local import LocalProcess, LocalProcesses
from clusters.processes import start_of

SLEEPER = ("/bin/sh", "-c", "echo begun; exec sleep 600")


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalProcesses]:
    """Of a cluster in a cache of the test's own; nothing is left of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = ledger.folder("some")
    folder.mkdir(parents=True)
    found = LocalProcesses(folder)
    yield found
    found.stop_all()
    assert belonging.alive(folder) == []


def pid_of(processes: LocalProcesses, name: str) -> int:
    state = processes.state(name)
    assert state is not None
    assert state.pid is not None
    return state.pid


def test_it_is_ready_when_its_address_answers(processes: LocalProcesses) -> None:
    port = processes.port()
    server = (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
    processes.start(LocalProcess("web", server, ready=f"http://127.0.0.1:{port}/", key="a"))
    assert processes.runs("web", "a")
    assert not processes.runs("web", "b")
    until_true(lambda: "GET / " in processes.log("web"), deadline=5, why="its log")


def test_one_that_ends_is_started_again_and_the_count_told(processes: LocalProcesses) -> None:
    processes.start(LocalProcess("sleeper", SLEEPER))
    old = pid_of(processes, "sleeper")
    os.kill(old, signal.SIGKILL)

    def again() -> bool:
        state = processes.state("sleeper")
        return state is not None and state.pid not in (None, old) and state.restarts == 1

    until_true(again, deadline=10, why="a new process", every=0.05)
    assert "ended with code 137" in processes.log("sleeper")


def test_restart_makes_a_new_process_at_once(processes: LocalProcesses) -> None:
    processes.start(LocalProcess("sleeper", SLEEPER))
    old = pid_of(processes, "sleeper")
    processes.restart("sleeper")
    assert pid_of(processes, "sleeper") != old
    assert start_of(old) is None


def test_a_crash_loop_is_not_waited_out(processes: LocalProcesses) -> None:
    begun = time.monotonic()
    with pytest.raises(ProcessError, match=r"ended once|ended \d times|it ended") as caught:
        processes.start(
            LocalProcess(
                "crasher", ("/bin/sh", "-c", "echo no such flag; exit 2"),
                ready="http://127.0.0.1:9/", restarts=False,
            )
        )  # fmt: skip
    assert time.monotonic() - begun < 10
    assert "no such flag" in str(caught.value)


def test_what_is_no_program_is_said(processes: LocalProcesses) -> None:
    with pytest.raises(ProcessError, match="is not a program"):
        processes.start(LocalProcess("none", ("/nowhere/program",)))


def test_children_of_a_process_end_with_its_cluster(processes: LocalProcesses) -> None:
    """Also those that left its group, and also when the notes on it are lost."""
    script = "setsid sleep 601 & exec sleep 602"
    processes.start(LocalProcess("parent", ("/bin/sh", "-c", script)))
    folder = ledger.folder("some")
    until_true(lambda: len(belonging.alive(folder)) >= 3, deadline=5, why="all of them", every=0.05)
    for name in ("process.json", "pid", "keeper"):
        (processes.folder("parent").parent / name).unlink()
    processes.stop_all()
    assert belonging.alive(folder) == []


def test_a_pid_that_became_somebody_elses_is_let_be(processes: LocalProcesses) -> None:
    processes.start(LocalProcess("sleeper", SLEEPER))
    processes.stop("sleeper")
    folder = processes.folder("sleeper").parent
    (folder / "pid").write_text(f"{os.getpid()} 0")
    (folder / "keeper").write_text(f"{os.getpid()} 1")
    state = processes.state("sleeper")
    assert state is not None
    assert state.pid is None
    processes.stop("sleeper")  # else this test ends here


def test_a_log_is_not_where_the_configuration_is(processes: LocalProcesses) -> None:
    """Volcano's scheduler watches that folder, and reads all anew when something is written."""
    processes.start(LocalProcess("sleeper", SLEEPER))
    until_true(lambda: processes.log("sleeper") != "", deadline=5, why="its log")
    assert list(processes.folder("sleeper").iterdir()) == []


def test_ports_are_given_once(processes: LocalProcesses) -> None:
    other = ledger.folder("other")
    other.mkdir()
    ports = [p.port() for p in (processes, LocalProcesses(other)) for _ in range(20)]
    assert len(set(ports)) == 40


def test_processes_of_another_cluster_are_not_touched(processes: LocalProcesses) -> None:
    other = ledger.folder("other")
    other.mkdir()
    neighbours = LocalProcesses(other)
    neighbours.start(LocalProcess("sleeper", SLEEPER))
    try:
        processes.stop_all()
        assert neighbours.ended() == []
    finally:
        neighbours.stop_all()
