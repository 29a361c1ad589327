"""What a stage makes of logs and lines, and when a disturbance came too late."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import ApiError, WaitTimeout
from oracles.errors import HarnessError
from oracles.progress import Event, ProgressLine, as_json
from suites.elastic import disturbing
from suites.elastic.stage import CLOSED, STARVED, Stage
from suites.training import Training


@dataclass
class FakeKube:
    """Pods with logs, the one before the last restart with ``.previous`` after its name."""

    logs_of: dict[str, str] = field(default_factory=dict)

    def find(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        names = sorted({name.partition(".")[0] for name in self.logs_of})
        return [{"metadata": {"name": name, "uid": name}, "status": {}} for name in names]

    def logs(self, _: str, pod: str, __: str, *, previous: bool = False) -> str:
        name = f"{pod}.previous" if previous else pod
        if name not in self.logs_of:
            raise ApiError(f"previous terminated container of {pod} not found", status=400)
        return self.logs_of[name]


class FakeCluster:
    provider = "kind"

    def __init__(self, kube: FakeKube) -> None:
        self.kube = kube


def line(t: float, event: Event, pod: str, **more: Any) -> ProgressLine:
    return ProgressLine(t=t, event=event, pod=pod, pod_uid=pod, pid=3, **more)


def stage(folder: Path, logs: dict[str, str], lines: list[ProgressLine]) -> tuple[Stage, Any]:
    (folder / "x.jsonl").write_text("".join(f"{as_json(item)}\n" for item in lines))
    measured: dict[str, float] = {}
    anything: Any = None
    cluster: Any = FakeCluster(FakeKube(logs))
    it = Stage(
        cluster, anything, anything, "ns", anything, lambda _: nullcontext(),
        lambda name, value, unit: measured.update({name: value}),
    )  # fmt: skip
    return it.follow(Training(folder)), measured


def test_an_open_rendezvous(tmp_path: Path) -> None:
    logs = {"job-worker-0": "fine", "job-worker-1": f"raise {CLOSED}()"}
    it, measured = stage(tmp_path, logs, [])
    it.open_to_all(but="job-worker-1")
    assert measured == {"agents that met a closed rendezvous": 0}


def test_a_closed_rendezvous_is_seen_in_the_agent_before_too(tmp_path: Path) -> None:
    logs = {"job-worker-0": "fine again", "job-worker-0.previous": CLOSED, "job-worker-1": ""}
    it, measured = stage(tmp_path, logs, [])
    with pytest.raises(AssertionError, match=r"agents of job-worker-0 met a closed rendezvous"):
        it.open_to_all(but="job-worker-1")
    assert measured == {"agents that met a closed rendezvous": 1}


def test_symptoms_come_from_logs_and_from_counts(tmp_path: Path) -> None:
    logs = {"job-worker-0": "RuntimeError: Gloo connectFullMesh failed with", "job-worker-1": ""}
    lines = [
        line(1.0, Event.START, "job-worker-0", restart=0),
        line(1.0, Event.START, "job-worker-1", restart=0),
        line(9.0, Event.START, "job-worker-0", restart=1),
    ]
    it, _ = stage(tmp_path, logs, lines)
    assert it.symptoms() == (
        "job-worker-0 says connectFullMesh failed; "
        "agents' restart counts differ: {'job-worker-0': 1, 'job-worker-1': 0}"
    )
    quiet, _ = stage(tmp_path, {"job-worker-0": ""}, lines[:2])
    assert quiet.symptoms() == "no trouble in the logs"


@pytest.mark.parametrize(
    ("load", "said", "kind", "words"),
    [
        (4.0, CLOSED, WaitTimeout, rf"not within 0 s; .*job-worker-0 says {CLOSED}"),
        (600.0, CLOSED, HarnessError, rf"had 600 threads to run .* job-worker-0 says {CLOSED}"),
        (4.0, STARVED, HarnessError, r"the etcd, which is ours, answered job-worker-0 'etcdserver"),
    ],
)
def test_nobody_is_blamed_for_a_bound_that_the_host_could_not_keep(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    load: float,
    said: str,
    kind: type[Exception],
    words: str,
) -> None:
    it, _ = stage(tmp_path, {"job-worker-0": said}, [])
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    with pytest.raises(HarnessError, match=words) as raised:
        it.trains(since=0.0, deadline=0.0)
    assert type(raised.value) is kind


def test_a_disturbance_that_came_after_the_rendezvous() -> None:
    old = line(1.0, Event.START, "a", world=2)
    disturbing.still_met([old, line(13.0, Event.START, "a", world=3)], 10.0, 12.0)
    with pytest.raises(HarnessError, match=r"that was over 0\.5 s before it struck"):
        disturbing.still_met([old, line(11.5, Event.START, "a", world=3)], 10.0, 12.0)
