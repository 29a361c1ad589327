"""Reading a machine's facts, and which interpreters can run in pods."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from clusters import hostfacts, libc, pythons
from clusters.doctor import State, pods
from clusters.pythons import Interpreter


def test_inotify_limits(tmp_path: Path) -> None:
    (tmp_path / "max_user_instances").write_text("128\n")
    assert hostfacts.inotify(tmp_path) == hostfacts.Inotify(128, None)


def test_inotify_instances_of_root_are_counted(tmp_path: Path) -> None:
    for pid, targets in (("1", ["anon_inode:inotify", "/dev/null"]), ("2", ["anon_inode:inotify"])):
        folder = tmp_path / pid / "fd"
        folder.mkdir(parents=True)
        for number, target in enumerate(targets):
            os.symlink(target, folder / str(number))
    (tmp_path / "self").mkdir()
    mine = tmp_path.stat().st_uid == 0
    assert hostfacts.inotify_instances_used(tmp_path) == (2 if mine else 0)


def test_disk_of_a_folder_that_is_yet_to_be_made(tmp_path: Path) -> None:
    there = hostfacts.disk_free(tmp_path)
    assert hostfacts.disk_free(tmp_path / "a" / "b") == pytest.approx(there, rel=0.2)


def test_memory(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:   4000000 kB\n")
    assert hostfacts.memory_available(meminfo) == pytest.approx(4.096)
    meminfo.write_text("nothing\n")
    assert hostfacts.memory_available(meminfo) is None
    assert hostfacts.memory_available(tmp_path / "none") is None


def test_cgroup_versions_and_freezers(tmp_path: Path) -> None:
    assert hostfacts.cgroup_version(tmp_path) == ""
    assert not hostfacts.freezer(tmp_path)
    (tmp_path / "v1" / "memory").mkdir(parents=True)
    (tmp_path / "v1" / "freezer").mkdir()
    assert hostfacts.cgroup_version(tmp_path / "v1") == "1"
    assert hostfacts.freezer(tmp_path / "v1")
    (tmp_path / "v2" / "init.scope").mkdir(parents=True)
    (tmp_path / "v2" / "cgroup.controllers").touch()
    assert hostfacts.cgroup_version(tmp_path / "v2") == "2"
    assert not hostfacts.freezer(tmp_path / "v2")  # a kernel before 5.2
    (tmp_path / "v2" / "init.scope" / "cgroup.freeze").touch()
    assert hostfacts.freezer(tmp_path / "v2")


# the C library


def elf(path: Path, *versions: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = b"\0".join(version.encode() for version in versions)
    path.write_bytes(b"\x7fELF\0memcpy\0" + names + b"\0rest")
    return path


def python(tmp_path: Path, version: str, *versions: str) -> Interpreter:
    prefix = tmp_path / version
    return Interpreter(version, elf(prefix / "bin" / "python3", *versions), prefix)


def test_the_newest_version_counts_and_by_number(tmp_path: Path) -> None:
    path = elf(tmp_path / "x", "GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.9", "GLIBCXX_3.4.30")
    assert libc.needed(path) == (2, 34)
    assert libc.needed(elf(tmp_path / "y", "GLIBC_PRIVATE")) == (0, 0)


def test_text_that_only_looks_like_one_is_no_need(tmp_path: Path) -> None:
    assert libc.needed(elf(tmp_path / "x", "wants GLIBC_2.99", "GLIBC_2.99 or so")) == (0, 0)


def test_library_and_modules_count_too(tmp_path: Path) -> None:
    found = python(tmp_path, "3.12.1", "GLIBC_2.17")
    assert libc.interpreter_needs(found) == (2, 17)
    elf(found.prefix / "lib" / "libpython3.12.so.1.0", "GLIBC_2.34")
    assert libc.interpreter_needs(found) == (2, 34)
    elf(found.prefix / "lib" / "python3.12" / "lib-dynload" / "math.so", "GLIBC_2.38")
    assert libc.interpreter_needs(found) == (2, 38)
    assert not libc.runs_in_pods(found)


def test_musl(tmp_path: Path) -> None:
    found = python(tmp_path, "3.12.1", "/lib/ld-musl-x86_64.so.1")
    with pytest.raises(libc.OtherLibc):
        libc.interpreter_needs(found)
    assert not libc.runs_in_pods(found)


def test_a_real_program_is_read() -> None:
    path = Path(sys.executable).resolve()
    if b"GLIBC_" not in path.read_bytes():
        pytest.skip("not a glibc system")
    assert (2, 2) <= libc.needed(path) < (3, 0)


def test_one_check_per_minor_by_its_best_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = Interpreter("3.11.9", elf(tmp_path / "python3", "GLIBC_2.34"), Path("/usr"))
    found = [
        python(tmp_path, "3.13.2", "GLIBC_2.38"),
        python(tmp_path, "3.12.4", "GLIBC_2.34"),
        system,
        python(tmp_path, "3.11.7", "GLIBC_2.34"),
        python(tmp_path, "3.7.1", "GLIBC_2.34"),
    ]
    monkeypatch.setattr(pythons, "interpreters", lambda: found)
    checks = {check.name: check for check in pods.interpreters()}
    assert set(checks) == {"python 3.13", "python 3.12", "python 3.11"}
    assert checks["python 3.13"].state is State.WARN
    assert "needs glibc 2.38, the pods' image has 2.36" in checks["python 3.13"].found
    assert checks["python 3.12"].state is State.OK
    assert checks["python 3.11"].state is State.OK
    assert "3.11.7" in checks["python 3.11"].found


def test_no_interpreter_that_can_be_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = Interpreter("3.11.9", elf(tmp_path / "python3", "GLIBC_2.34"), Path("/usr"))
    monkeypatch.setattr(pythons, "interpreters", lambda: [system])
    [check] = pods.interpreters()
    assert check.state is State.WARN
    assert "system's own files" in check.found
    monkeypatch.setattr(pythons, "interpreters", list)
    assert pods.interpreters()[0].found == "none found"
