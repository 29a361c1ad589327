"""Moments are seen in a history while it is written, and not before they come."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos import aim
from chaos.aim import (
    GroupWithoutPods,
    JobCondition,
    Joining,
    PodsBound,
    PodsMade,
    Stream,
    Told,
    log_says,
)
from chaos.errors import NotReached
from clusters.errors import ApiError
from oracles.history import DELETED, MODIFIED, PROGRESS, WATCH, Event, Header

ENCODE = msgspec.json.Encoder().encode


def event(
    seq: int, kind: str, name: str, object: dict[str, Any] | None = None, **more: Any
) -> Event:
    values = {"type": MODIFIED, "source": WATCH, "namespace": "t", "uid": f"u-{name}", **more}
    return Event(
        seq=seq, t=float(seq), mono=float(seq), kind=kind, name=name, object=object or {}, **values
    )


def pod(seq: int, name: str, node: str = "", **more: Any) -> Event:
    labels = {"training.kubeflow.org/job-name": more.pop("job", "train")}
    spec = {"nodeName": node} if node else {}
    running = more.pop("running", False)
    status = {"containerStatuses": [{"state": {"running": {}} if running else {"waiting": {}}}]}
    return event(
        seq, "Pod", name, {"metadata": {"labels": labels}, "spec": spec, "status": status}, **more
    )


def history(path: Path, *events: Event) -> Path:
    with path.open("ab") as file:
        if file.tell() == 0:
            file.write(ENCODE(Header(run="r", cluster="c", started=0.0)) + b"\n")
        file.writelines(ENCODE(each) + b"\n" for each in events)
    return path


def reached(moment: aim.Moment, *events: Event) -> int:
    """The number of the event with which the moment comes; 0: it does not."""
    return next((each.seq for each in events if moment.feed(each)), 0)


def test_the_third_pod_bound() -> None:
    events = [
        pod(1, "a"), pod(2, "a", "n1"), pod(3, "a", "n1"), pod(4, "b", "n1"),
        pod(5, "c", "n2", namespace="other"), pod(6, "d", "n2", job="another"), pod(7, "e", "n2"),
    ]  # fmt: skip
    assert reached(PodsBound("t", 3, "train"), *events) == 7
    assert reached(PodsBound("t", 3), *events) == 6
    assert reached(PodsBound("t", 4, "train"), *events) == 0


def test_the_second_pod_made() -> None:
    events = [pod(1, "a"), pod(2, "a"), pod(3, "b", type=DELETED), pod(4, "b")]
    assert reached(PodsMade("t", 2), *events) == 4
    assert reached(PodsMade("t", 1, pod="b"), *events) == 4


def test_a_group_and_no_pod() -> None:
    def group(seq: int, phase: str = "") -> Event:
        return event(seq, "PodGroup", "g", {"status": {"phase": phase}})

    assert reached(GroupWithoutPods("t"), group(1)) == 1
    assert reached(GroupWithoutPods("t"), pod(1, "a"), group(2)) == 0
    assert reached(GroupWithoutPods("t", ("Inqueue",)), group(1), group(2, "Inqueue")) == 2


def test_a_jobs_first_running() -> None:
    def job(seq: int, status: str, name: str = "train") -> Event:
        condition = {"type": "Running", "status": status}
        return event(seq, "PyTorchJob", name, {"status": {"conditions": [condition]}})

    moment = JobCondition("t", "train")
    assert reached(moment, job(1, "False"), job(2, "True", "other"), job(3, "True")) == 3


def line(seq: int, name: str, told: str = "step", **fields: Any) -> Event:
    return event(seq, "", name, fields, source=PROGRESS, type=told)


def test_a_step_of_a_rank() -> None:
    events = [
        line(1, "a", "start", rank=0),
        line(2, "a", rank=0, step=3),
        line(3, "b", rank=1, step=4),
    ]
    assert reached(Told("t", "step", step=4), *events) == 3
    assert reached(Told("t", "step", rank=0), *events) == 2
    assert reached(Told("t", "start", pod="b"), *events) == 0


def test_a_pod_that_joins_runs_and_has_told_of_nothing() -> None:
    assert reached(Joining("t", "a"), pod(1, "a"), pod(2, "a", running=True)) == 2
    assert reached(Joining("t", "a"), line(1, "a", "start"), pod(2, "a", running=True)) == 0
    assert reached(Joining("t", "a"), pod(1, "b", running=True)) == 0


def test_a_stream_begins_where_the_history_was(tmp_path: Path) -> None:
    path = history(tmp_path / "h.jsonl", pod(1, "old", "n1"))
    stream = Stream(path)
    history(path, pod(2, "new", "n1"))
    assert stream.wait(PodsBound("t", 1), deadline=5).name == "new"
    assert stream.wait(PodsBound("t", 1), deadline=5).name == "new", "what came is not lost"


def test_a_moment_is_seen_when_it_is_written(tmp_path: Path) -> None:
    path = history(tmp_path / "h.jsonl")
    stream = Stream(path)
    whole = ENCODE(pod(1, "a", "n1")) + b"\n"

    def write() -> None:
        with path.open("ab") as file:
            file.write(whole[:20])
            file.flush()
            time.sleep(0.1)
            file.write(whole[20:])

    thread = threading.Thread(target=write)
    thread.start()
    assert stream.wait(PodsBound("t", 1), deadline=10).seq == 1
    thread.join()


def test_a_moment_that_does_not_come_is_said(tmp_path: Path) -> None:
    path = history(tmp_path / "h.jsonl")
    stream = Stream(path)
    history(path, pod(1, "a", "n1"))
    with pytest.raises(NotReached, match=r"pods bound \(namespace t, count 2\).*bound to n1"):
        stream.wait(PodsBound("t", 2), deadline=0.1)


def test_moments_in_words() -> None:
    assert isinstance(aim.make("t", {"moment": "pods_bound", "count": 3}), PodsBound)
    with pytest.raises(ValueError, match="no moment 'full_moon'; one of pods_bound"):
        aim.make("t", {"moment": "full_moon"})
    with pytest.raises(ValueError, match="moment told"):
        aim.make("t", {"moment": "told", "colour": "red"})


class Logs:
    def __init__(self, *texts: str | Exception) -> None:
        self.texts = list(texts)

    def logs(self, *words: str) -> str:
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if isinstance(text, Exception):
            raise text
        return text


def test_a_line_of_a_log() -> None:
    logs: Any = Logs(ApiError("waiting to start", status=400), "x\n", "x\nRendezvous'ing now\n")
    assert log_says(logs, "t", "a", "c", "endezvous.ing", deadline=10) == "Rendezvous'ing now"
    never: Any = Logs("x\ny\n")
    with pytest.raises(NotReached, match="last: y"):
        log_says(never, "t", "a", "c", "endezvous", deadline=0.1)
