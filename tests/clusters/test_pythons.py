"""Interpreters of the host that pods can use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clusters import libc, pythons
from clusters.pythons import Interpreter


def fake(folder: Path, version: str, prefix: str | None = None) -> Path:
    """A python3 that says that it is *version*."""
    path = folder / "bin" / "python3"
    path.parent.mkdir(parents=True)
    numbers = version.replace(".", " ")
    path.write_text(f"#!/bin/sh\necho {numbers} {prefix or folder}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without interpreters."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for name in ("PYENV_ROOT", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    which = pythons.shutil.which
    monkeypatch.setattr(
        pythons.shutil, "which", lambda name: which(name, path=str(tmp_path / "bin"))
    )
    return tmp_path


def test_where_they_are_found(home: Path) -> None:
    fake(home / ".pyenv/versions/3.10.1", "3.10.1")
    fake(home / ".pyenv/versions/3.10.13", "3.10.13")
    fake(home / ".local/share/uv/python/cpython-3.12.1", "3.12.1")
    broken = fake(home / ".pyenv/versions/broken", "x")
    broken.write_text("#!/bin/sh\nexit 1\n")
    (home / "bin").mkdir()
    (home / "bin/python3.9").symlink_to(fake(home / "opt/python", "3.9.2"))
    found = pythons.interpreters()
    assert [p.version for p in found] == ["3.12.1", "3.10.13", "3.10.1", "3.9.2"]
    assert found[0].prefix == home / ".local/share/uv/python/cpython-3.12.1"
    assert found[1].minor == "3.10"


def test_each_once(home: Path) -> None:
    path = fake(home / ".pyenv/versions/3.10.1", "3.10.1")
    (home / "bin").mkdir()
    (home / "bin/python3.10").symlink_to(path)
    assert len(pythons.interpreters()) == 1


def test_pyenvs_shims_are_not_interpreters(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = fake(home / "shims", "3.11.1")
    monkeypatch.setattr(pythons.shutil, "which", lambda name: str(shim))
    assert pythons.interpreters() == []


def test_find_takes_one_that_runs_in_pods(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(home / ".pyenv/versions/3.10.13", "3.10.13")  # linked against a newer libc, say
    fake(home / ".pyenv/versions/3.10.1", "3.10.1")
    fake(home / ".pyenv/versions/3.11.0", "3.11.0", prefix="/usr")
    monkeypatch.setattr(libc, "runs_in_pods", lambda python: python.version != "3.10.13")
    found = pythons.find("3.10")
    assert found is not None
    assert found.version == "3.10.1"
    assert pythons.find("3.11") is None  # its folder would hide a pod's own files
    assert pythons.find("3.13") is None


@pytest.mark.parametrize(
    ("prefix", "mountable"),
    [("/usr", False), ("/usr/local", False), ("/", False), ("/opt/p", True)],
)
def test_what_can_be_mounted(prefix: str, mountable: bool) -> None:
    assert Interpreter("3.12.1", Path("/x"), Path(prefix)).mountable is mountable


def test_this_very_interpreter_is_judged() -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    here = Interpreter(version, Path(sys.executable).resolve(), Path(sys.base_prefix))
    assert libc.interpreter_needs(here) >= (2, 2)
