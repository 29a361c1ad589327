"""What long steps say, and what is remembered of them."""

from __future__ import annotations

import json
import sys
import time

import pytest

from clusters import cache, progress


class Terminal:
    """A stderr that is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


def test_a_step_says_its_start_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.step("build it"):
        pass
    captured = capsys.readouterr()
    first, last = captured.err.splitlines()
    assert captured.out == ""  # that is for results
    assert first.endswith("] build it ...")
    assert last.endswith("] build it: done in 0.0 s")
    assert "\x1b" not in captured.err


def test_last_time_is_remembered_when_it_ended_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert progress.last_time("x") is None
    with progress.step("x"):
        time.sleep(0.11)
    assert progress.last_time("x") == pytest.approx(0.1, abs=0.05)
    with pytest.raises(RuntimeError), progress.step("x"):
        raise RuntimeError
    assert progress.last_time("x") == pytest.approx(0.1, abs=0.05)
    said = capsys.readouterr().err.splitlines()
    assert said[2].endswith("x ..., took 0 s last time")
    assert "x: failed in" in said[3]


def test_other_steps_are_not_forgotten_and_rubbish_does_no_harm() -> None:
    path = cache.root() / "durations.json"
    path.write_text("{not json")
    assert progress.last_time("a") is None
    for name in ("a", "b"):
        with progress.step(name):
            pass
    assert json.loads(path.read_text()) == {"a": 0.0, "b": 0.0}
    assert [p.name for p in cache.root().iterdir()] == ["durations.json"]


def test_a_terminal_sees_one_line_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "TERMINAL_TICK", 0.2)
    monkeypatch.setenv("COLUMNS", "60")
    with progress.step("outer") as outer:
        outer("never shown while another runs")
        with progress.step("long") as detail:
            detail("w" * 200)
            time.sleep(0.3)
            progress.say("something else")
    assert "never shown" not in terminal.text
    (live,) = [t for t in terminal.text.split("\r\x1b[2K") if "so far" in t]
    assert live.startswith("  long: 0 s so far (www")
    assert len(live) <= 59
    # what is said meanwhile takes the line's place, and does not stand behind it
    assert "\r\x1b[2K[" in terminal.text.partition("so far")[2]


def test_elsewhere_a_line_appears_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert progress.LOG_TICK >= 10  # a log is read later, as a whole
    monkeypatch.setattr(progress, "LOG_TICK", 0.2)
    with progress.step("long") as detail:
        detail("busy")
        time.sleep(0.3)
    (middle,) = capsys.readouterr().err.splitlines()[1:-1]
    assert middle.endswith("] long: 0 s so far (busy)")
