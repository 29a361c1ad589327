"""Running other programs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusters import command
from clusters.command import run, run_logged
from clusters.errors import CommandError
from clusters.kube import until_true


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "LOOK", 0.1)
    monkeypatch.setattr(command, "REST", 0.3)


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def number_in(path: Path) -> int:
    """The process id that a script wrote into *path*, once it is there."""
    until_true(
        lambda: path.exists() and path.read_text().endswith("\n"),
        deadline=10,
        why="a pid",
        every=0.02,
    )
    return int(path.read_text())


def test_output_input_and_environment(tmp_path: Path) -> None:
    assert run(["cat"], stdin="a\nb") == "a\nb"
    assert run(["cat"], stdin=b"x") == "x"
    assert run(["cat"]) == ""  # no input: it must not wait for the terminal's
    assert (
        run(["sh", "-c", "echo $ME; pwd"], env={"ME": "you"}, cwd=tmp_path) == f"you\n{tmp_path}\n"
    )
    assert run(["printf", r"\377"]) == "�"


def test_a_bad_exit_code_is_told_with_what_was_printed() -> None:
    with pytest.raises(CommandError) as caught:
        run(["sh", "-c", "echo out; echo why >&2; exit 7"])
    error = caught.value
    assert (error.code, error.output, error.exit_code) == (7, "why\n", 3)
    assert str(error) == "sh -c echo out; echo why >&2; exit 7: exit code 7\n  | why"
    assert run(["sh", "-c", "echo out; exit 7"], check=False) == "out\n"


def test_standard_output_is_told_where_nothing_else_was_printed() -> None:
    with pytest.raises(CommandError, match=r"\| only here"):
        run(["sh", "-c", "echo only here; exit 1"])


def test_of_long_output_the_end_is_shown() -> None:
    with pytest.raises(CommandError) as caught:
        run(["sh", "-c", "seq 100; exit 1"])
    shown = str(caught.value).splitlines()
    assert shown[-1] == "  | 100"
    assert len(shown) == 16


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot run no-such-program: No such file"):
        run(["no-such-program"])
    with pytest.raises(CommandError, match="cannot run no-such-program: No such file"):
        run_logged(["no-such-program"], tmp_path / "log", timeout=5)


_FAMILY = 'sleep 60 & echo $! > "$0"; echo started >&2; wait'


def test_a_timeout_ends_the_whole_family(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    start = time.monotonic()
    with pytest.raises(CommandError, match=r"no end after 0 s\n  \| started"):
        run(["sh", "-c", _FAMILY, str(pid)], timeout=0.5)
    assert time.monotonic() - start < 5
    until_true(lambda: not alive(number_in(pid)), deadline=5, why="the child's end", every=0.02)


def test_a_child_that_left_the_family_does_not_hold_us_up() -> None:
    start = time.monotonic()
    with pytest.raises(CommandError, match="no end after 0 s"):
        run(["sh", "-c", "setsid sleep 8 & wait"], timeout=0.3)
    assert time.monotonic() - start < 6


# with a log


def test_logged_output_and_the_newest_line_as_detail(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "x.log"
    details: list[str] = []
    run_logged(
        ["sh", "-c", "echo one; echo two >&2; sleep 0.3"], log, timeout=20, detail=details.append
    )
    assert log.read_text() == "one\ntwo\n"
    assert set(details) == {"two"}


def test_logged_failure_names_the_log_and_shows_its_end(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("from before\n")
    with pytest.raises(CommandError) as caught:
        run_logged(["sh", "-c", "echo broken; exit 3"], log, timeout=20)
    assert caught.value.code == 3
    assert str(log) in str(caught.value)
    assert caught.value.output == "from before\nbroken\n"


@pytest.mark.parametrize("group", [True, False])
def test_logged_timeout(tmp_path: Path, group: bool) -> None:
    """Children are ended as well, unless they are to come to their own end."""
    pid = tmp_path / "pid"
    with pytest.raises(CommandError, match="no end after 0 s; log:"):
        run_logged(["sh", "-c", _FAMILY, str(pid)], tmp_path / "log", timeout=0.5, group=group)
    child = number_in(pid)
    try:
        if group:
            until_true(lambda: not alive(child), deadline=5, why="the child's end", every=0.02)
        else:
            assert alive(child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


_LOGGED = """
import sys
from pathlib import Path
from clusters.command import run_logged
command = ["sh", "-c", 'echo $$ > "$0"; exec sleep 60', sys.argv[1]]
run_logged(command, Path(sys.argv[2]), timeout=60)
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_a_long_command_does_not_outlive_us(tmp_path: Path, sign: signal.Signals) -> None:
    pid = tmp_path / "pid"
    ours = subprocess.Popen(
        [sys.executable, "-c", _LOGGED, str(pid), str(tmp_path / "log")], stderr=subprocess.DEVNULL
    )
    child = number_in(pid)
    assert alive(child)
    ours.send_signal(sign)
    ours.wait(timeout=10)
    until_true(lambda: not alive(child), deadline=5, why="the command's end", every=0.02)
