"""The cache: keys, locks between processes, and that nothing is ever half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clusters import cache
from clusters.kube import until_true

Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(cache_home: Path) -> Start:
    """Runs Python code in a process of its own, which has the same cache; ended with the test."""
    running: list[subprocess.Popen[str]] = []

    def run(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", f"from clusters import cache\nimport time, sys\n{code}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.append(process)
        return process

    yield run  # type: ignore[misc]
    for process in running:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str], stream: str = "stdout") -> str:
    """The next line that a process prints; one that stays silent is killed, and fails the test."""
    watchdog = threading.Timer(20, process.kill)
    watchdog.start()
    text: str = getattr(process, stream).readline()
    watchdog.cancel()
    assert text, "it ended, or hung, without a word"
    return text.strip()


# keys


def test_the_same_inputs_make_the_same_key() -> None:
    assert cache.key("a", {"x": 1, "y": [2]}) == cache.key("a", {"y": [2], "x": 1})


@pytest.mark.parametrize(
    "other", [("a", "c"), ("ab",), ("a", "b", ""), ("b", "a"), ("a", ["b"]), ("a",)]
)
def test_other_inputs_make_another_key(other: tuple[object, ...]) -> None:
    assert cache.key("a", "b") != cache.key(*other)


def test_files_count_with_their_bytes_and_names(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    (folder / "sub").mkdir(parents=True)
    one, two = folder / "one", folder / "sub" / "two"
    one.write_text("1")
    two.write_text("2")
    first = cache.key(folder), cache.key(one)
    assert (cache.key(folder), cache.key(one)) == first
    two.write_text("3")
    assert cache.key(folder) != first[0]
    assert cache.key(one) == first[1]
    two.write_text("2")
    assert cache.key(folder) == first[0]
    two.rename(folder / "two")
    assert cache.key(folder) != first[0]


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache.root() == tmp_path / "cache" / "muster"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for useless in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", useless)
        assert cache.root() == tmp_path / "home" / ".cache" / "muster"


# publishing


def test_published_makes_once(tmp_path: Path) -> None:
    calls = []

    def make(partial: Path) -> None:
        assert not (tmp_path / "part").exists()
        calls.append(partial)
        (partial / "file").write_text("whole")

    for _ in range(2):
        assert cache.published(tmp_path / "part", make) == tmp_path / "part"
    assert len(calls) == 1
    assert (tmp_path / "part" / "file").read_text() == "whole"
    assert list(tmp_path.glob(".part*")) == []


@pytest.mark.parametrize("trouble", [RuntimeError("no"), KeyboardInterrupt()])
def test_a_failing_make_publishes_nothing_and_the_next_works(
    tmp_path: Path, trouble: BaseException
) -> None:
    target = tmp_path / "parts" / "one"

    def fail(partial: Path) -> None:
        (partial / "half").write_text("half")
        raise trouble

    with pytest.raises(type(trouble)):
        cache.published(target, fail)
    assert list(target.parent.iterdir()) == []
    cache.published(target, lambda partial: (partial / "file").touch())
    assert [path.name for path in target.iterdir()] == ["file"]


_BUILD = """
def make(partial):
    (partial / "file").write_text("whole")
    print("making", flush=True)
    sys.stdin.readline()
    (cache.root() / "made").open("a").write("x")
cache.published(cache.root() / "bin" / "part", make)
print("done", flush=True)
"""


def test_processes_that_want_the_same_build_it_once(start: Start) -> None:
    first = start(_BUILD)
    assert line(first) == "making"
    second = start(_BUILD)
    said = line(second, "stderr")
    assert f"waiting for bin-part: held by pid {first.pid} (-c" in said
    first.communicate("go on\n", timeout=10)
    out, _ = second.communicate(timeout=10)
    assert out.strip() == "done"
    assert (cache.root() / "made").read_text() == "x"


def test_a_killed_build_leaves_nothing_published_and_the_next_resumes(start: Start) -> None:
    killed = start(_BUILD)
    assert line(killed) == "making"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    folder = cache.root() / "bin"
    assert not (folder / "part").exists()
    (left,) = folder.iterdir()
    assert (left / "file").exists()
    cache.published(folder / "part", lambda partial: (partial / "new").touch())
    assert [path.name for path in folder.iterdir()] == ["part"]
    assert [path.name for path in (folder / "part").iterdir()] == ["new"]


def test_what_a_killed_build_goes_on_writing_is_not_published(start: Start) -> None:
    """A program that the killed build started may be at work in the old folder for a while."""
    killed = start(_BUILD)
    line(killed)
    killed.kill()
    killed.communicate()
    (old,) = (cache.root() / "bin").iterdir()

    def make(partial: Path) -> None:
        old.mkdir(exist_ok=True)
        (old / "late").touch()
        (partial / "new").touch()

    path = cache.published(cache.root() / "bin" / "part", make)
    assert [item.name for item in path.iterdir()] == ["new"]


# locks

_HOLD = """
with cache.lock("it", shared={shared}):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_excludes_and_goes_with_its_holder(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    holder = start(_HOLD.format(shared=False))
    assert line(holder) == "held"
    waiter = start(_HOLD.format(shared=False))
    assert f"held by pid {holder.pid}" in line(waiter, "stderr")
    holder.kill()
    assert line(waiter) == "held"
    assert list(cache.held()) == ["it"]
    assert f"pid {waiter.pid}" in cache.held()["it"]
    waiter.communicate("\n", timeout=10)
    assert cache.held() == {}
    with cache.lock("it"):
        assert capsys.readouterr().err == ""
        assert f"pid {os.getpid()} (" in cache.held()["it"]


def test_who_has_left_is_not_taken_for_who_holds_it(start: Start) -> None:
    with cache.lock("it"):
        assert "pid" in cache.held()["it"]
    reader = start(_HOLD.format(shared=True))
    assert line(reader) == "held"
    assert cache.held()["it"] == "another process"
    reader.communicate("\n", timeout=10)


def test_shared_locks_exclude_only_others(start: Start) -> None:
    readers = [start(_HOLD.format(shared=True)) for _ in range(2)]
    assert [line(reader) for reader in readers] == ["held", "held"]
    writer = start(_HOLD.format(shared=False))
    assert "waiting for it" in line(writer, "stderr")
    for reader in readers:
        reader.communicate("\n", timeout=10)
    assert line(writer) == "held"


def test_who_shares_the_host_waits_only_for_who_does_not(start: Start) -> None:
    code = """
import os
os.environ["MUSTER_SHARE_HOST"] = "{share}"
with cache.host():
    print("held", flush=True)
    sys.stdin.readline()
"""
    sharing = [start(code.format(share="1")) for _ in range(2)]
    assert [line(one) for one in sharing] == ["held", "held"]
    alone = start(code.format(share=""))
    assert "waiting for host" in line(alone, "stderr")
    for one in sharing:
        one.communicate("\n", timeout=10)
    assert line(alone) == "held"


def test_a_passing_lock_leaves_no_file_and_still_excludes(start: Start) -> None:
    code = """
with cache.lock("name", passing=True):
    path = cache.root() / "count"
    before = int(path.read_text()) if path.exists() else 0
    time.sleep(0.02)
    path.write_text(str(before + 1))
"""
    many = [start(f"for _ in range(5):\n{_indented(code)}") for _ in range(4)]
    for process in many:
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
    assert (cache.root() / "count").read_text() == "20"
    assert list((cache.root() / "locks").iterdir()) == []


def _indented(code: str) -> str:
    return "\n".join(f"    {text}" for text in code.splitlines())


# intermediate files


def test_a_workspace_goes_when_it_was_used() -> None:
    with cache.workspace("x") as path:
        (path / "file").touch()
        assert path.parent == cache.root() / "work"
    with pytest.raises(RuntimeError), cache.workspace("x") as path:
        raise RuntimeError
    assert list((cache.root() / "work").iterdir()) == []


def test_a_workspace_of_a_killed_process_goes_with_the_next(start: Start) -> None:
    code = 'with cache.workspace("x"): print("in", flush=True); sys.stdin.readline()'
    killed, alive = start(code), start(code)
    assert (line(killed), line(alive)) == ("in", "in")
    killed.kill()
    killed.communicate()
    with cache.workspace("y"):
        owners = {int(path.name.split(".")[0]) for path in (cache.root() / "work").iterdir()}
    assert owners == {alive.pid, os.getpid()}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_remove_does_not_reach_into_what_is_mounted(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    inside = tmp_path / "tree" / "proc"
    inside.mkdir(parents=True)
    mounted = subprocess.run(["mount", "--bind", str(precious), str(inside)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this host lets nothing be mounted")
    cache.remove(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    assert (precious / "file").exists()


def test_waiting_is_told_once_and_ends(start: Start) -> None:
    holder = start(_HOLD.format(shared=False))
    line(holder)
    waiter = start('with cache.lock("it"): print(time.monotonic(), flush=True)')
    line(waiter, "stderr")
    released = time.monotonic()
    holder.communicate("\n", timeout=10)
    out, err = waiter.communicate(timeout=10)
    assert float(out) >= released
    assert err == ""
    until_true(lambda: cache.held() == {}, deadline=5, why="nothing held")
