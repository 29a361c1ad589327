"""What was late on a crowded host, and what was wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oracles import history as histories
from oracles.crowd import Crowd
from oracles.graces import graces
from oracles.history import Header
from oracles.judgement import Judgement
from oracles.judging import judge_history
from oracles.outcome import Outcome
from oracles.reading import History as Reading
from tests.oracles.build import BEGIN, SCHEDULER, History


def _late(seconds: float) -> History:
    """A gang is bound in part for so long (its grace is some seconds), then in whole."""
    h = History()
    h.node("n1", gpus=8)
    h.group("g", 2)
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    pods = [h.pod(f"w{i}", labels=labels, gpus=1, schedulerName=SCHEDULER) for i in range(2)]
    pods[0].bind("n1")
    h.after(seconds)
    pods[1].bind("n1")
    h.after(1).add("mark", "test-end")
    return h


def _judge(h: History, folder: Path, **facts: Any) -> Judgement:
    path = folder / "h.jsonl"
    histories.write(path, Header(run="r", cluster="c", started=BEGIN, facts=facts), h.events)
    history = Reading(path)
    told = judge_history(history, list(history.events()))
    assert told == judge_history(Reading(path))
    return told


@pytest.fixture
def grace() -> float:
    return graces()["gang_partial"]


#: three times as busy as graces allow for
CROWDED = {"threads": 36.0, "cores": 2}


def test_what_is_late_on_a_crowded_host_is_unsure(tmp_path: Path, grace: float) -> None:
    judgement = _judge(_late(2 * grace), tmp_path, host=CROWDED)

    assert judgement.outcome is Outcome.INCONCLUSIVE
    assert not judgement.violations
    [reason] = judgement.reasons()
    assert "this host had 36 threads to run on 2 cores, so that nobody can say" in reason


def test_what_is_later_than_that_explains_is_broken(tmp_path: Path, grace: float) -> None:
    judgement = _judge(_late(3 * grace + 2), tmp_path, host=CROWDED)

    assert judgement.outcome is Outcome.FAIL
    assert [v.invariant for v in judgement.violations] == ["gang-atomicity"]


@pytest.mark.parametrize("facts", [{}, {"host": {"threads": 11.9, "cores": 2}}])
def test_elsewhere_a_grace_is_a_grace(tmp_path: Path, grace: float, facts: dict[str, Any]) -> None:
    assert _judge(_late(2 * grace), tmp_path, **facts).outcome is Outcome.FAIL


def test_what_is_wrong_at_once_is_wrong_on_any_host(tmp_path: Path, grace: float) -> None:
    h = _late(2 * grace)
    h.pod("more", gpus=8).bind("n1")

    judgement = _judge(h, tmp_path, host=CROWDED)

    assert judgement.outcome is Outcome.FAIL
    assert [v.invariant for v in judgement.violations] == ["gpu-capacity"]
    assert [v.invariant for v in judgement.unsure] == ["gang-atomicity"]


def test_only_seconds_get_longer() -> None:
    strict = graces()
    patient = Crowd(60.0, 2).patient(strict)
    for name in strict.names():
        times = 5 if strict.grace(name).unit == "s" else 1
        assert patient[name] == pytest.approx(times * strict[name])
