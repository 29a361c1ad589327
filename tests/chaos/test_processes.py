"""Agents and worker processes are told apart; a signal goes to the process that was meant."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest
from places import Place

from chaos import processes
from chaos.errors import FaultError
from chaos.faults.signals import SignalProcess, StopProcess
from chaos.processes import Process, Which
from clusters.errors import CommandError
from clusters.kube import PODS, Object

STAT = "{pid} ({name}) {state} {parent}" + " 0" * 17 + " {start} 0 0"


def line(pid: int, parent: int, command: str, *, state: str = "S", start: int | None = None) -> str:
    stat = STAT.format(pid=pid, name="a (b) c", state=state, parent=parent, start=start or pid)
    return f"{stat}\t{command}"


TORCHRUN = "\n".join(
    [
        line(100, 1, "/venv/bin/python -m torch.distributed.run /muster/train_digits.py"),
        line(103, 100, "/venv/bin/python -c from multiprocessing.resource_tracker import main"),
        line(105, 100, "/venv/bin/python -u /muster/train_digits.py"),
        line(104, 100, "/venv/bin/python -u /muster/train_digits.py", state="Z"),
        line(106, 105, "/venv/bin/python -u /muster/train_digits.py"),
    ]
)


def pids(which: Which, text: str = TORCHRUN) -> list[int]:
    return [process.pid for process in processes.choose(processes.parse(text), which)]


def test_who_is_who_under_torchrun() -> None:
    assert pids(Which.AGENT) == [100]
    assert pids(Which.MAIN) == [100]
    assert pids(Which.WORKER) == [105], "not a helper, not one that ended, no grandchild"
    assert pids(Which.ALL) == [100, 103, 105, 106]


def test_a_container_without_torchrun_has_neither() -> None:
    text = "\n".join([line(7, 1, "/bin/sh -c while :; do sleep 1; done"), line(9, 7, "sleep 1")])
    assert pids(Which.AGENT, text) == []
    assert pids(Which.WORKER, text) == []
    assert pids(Which.MAIN, text) == [7]


def test_what_is_no_process_is_passed_over() -> None:
    assert processes.parse("\nnonsense\n1 (x) S\t\n") == []


def running(name: str = "w", container: str = "pytorch") -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": "n1"},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": container, "state": {"running": {}}, "containerID": "containerd://abc"}
            ],
        },
    }


@pytest.fixture
def pod(place: Place) -> Place:
    place.kube.put(PODS, running(), "t")
    place.provider.scripts = {"grep -ls 'abc'": TORCHRUN}
    return place


def test_killing_a_worker_process(pod: Place) -> None:
    fault = SignalProcess(pod.site, "t", "w", "pytorch", Which.WORKER)
    fault.inject()
    assert "kill -9 105" in pod.provider.calls[-1]
    assert "= 105 ]" in pod.provider.calls[-1], "only if it still is that process"
    pod.provider.scripts = {"else echo 105 gone": "105 gone\n"}
    proof = fault.proof(deadline=0)
    assert "process 105" in proof.evidence
    assert fault.name == "kill worker"


def test_a_process_that_lives_on_is_no_proof(pod: Place) -> None:
    fault = SignalProcess(pod.site, "t", "w", "pytorch", Which.WORKER)
    fault.inject()
    pod.provider.scripts = {"else echo 105 gone": "105 S\n"}
    with pytest.raises(FaultError, match="SIGKILL was sent, but"):
        fault.proof(deadline=0)


def test_a_deleted_pod_is_never_passed_off_as_a_signal(pod: Place) -> None:
    fault = SignalProcess(pod.site, "t", "w", "pytorch", Which.AGENT)
    fault.inject()
    pod.provider.scripts = {"else echo 100 gone": "100 gone\n"}
    pod.kube.put(PODS, {**running(), "metadata": {"name": "w", "uid": "another"}}, "t")
    with pytest.raises(FaultError, match="was replaced"):
        fault.proof(deadline=0)


def test_no_such_process(pod: Place) -> None:
    pod.provider.scripts = {"grep -ls 'abc'": line(7, 1, "/bin/sh")}
    with pytest.raises(FaultError, match="has no process agent; it has: 7 "):
        SignalProcess(pod.site, "t", "w", "pytorch", Which.AGENT).inject()


@pytest.mark.parametrize("container", ["other", "pytorch"])
def test_no_such_container(place: Place, container: str) -> None:
    item = running()
    item["status"]["containerStatuses"][0]["state"] = {"waiting": {}}
    place.kube.put(PODS, item, "t")
    with pytest.raises(FaultError, match="does not run"):
        SignalProcess(place.site, "t", "w", container).inject()


def test_stopping_says_how_to_continue_before(pod: Place) -> None:
    fault = StopProcess(pod.site, "t", "w", "pytorch", Which.AGENT)
    (step,) = fault.plan()
    assert "kill -CONT 100" in step.model_dump_json()
    fault.inject()
    assert "kill -19 100" in pod.provider.calls[-1]
    pod.provider.scripts = {"echo 100": "100 T\n"}
    assert fault.proof(deadline=0).evidence["process 100"].endswith("S -> T")
    with pytest.raises(FaultError, match="still stopped"):
        fault.recover()
    pod.provider.scripts = {"echo 100": "100 S\n"}
    fault.recover()


def test_a_signal_that_cannot_be_sent(pod: Place) -> None:
    fault = SignalProcess(pod.site, "t", "w", "pytorch", Which.AGENT)
    fault.plan()
    pod.provider.scripts = {"kill -9": CommandError("exit code 1")}
    with pytest.raises(FaultError, match="no SIGKILL could be sent"):
        fault.inject()


def bash(script: str) -> str:
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, timeout=20
    ).stdout


def test_the_scripts_work_on_real_processes() -> None:
    """A process of this host stands for one of a node."""
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            text = bash(f'read -r stat < /proc/{child.pid}/stat; printf "%s\\tsleep 60\\n" "$stat"')
            (process,) = processes.parse(text)
            assert process.pid == child.pid
            other = Process(process.pid, 1, "S", process.start + 1, "another one")
            assert bash(f"if {processes.check(process)}; then echo yes; fi") == "yes\n"
            assert bash(f"if {processes.check(other)}; then echo yes; fi") == ""
            child.send_signal(signal.SIGSTOP)
            wait_state(child.pid, "T")
            bash(processes.thaw([other]))
            assert state(child.pid) == "T"
            bash(processes.thaw([process]))
            wait_state(child.pid, "S")
        finally:
            child.kill()


def state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def wait_state(pid: int, wanted: str) -> None:
    end = time.monotonic() + 5
    while state(pid) != wanted:
        assert time.monotonic() < end
        time.sleep(0.01)
