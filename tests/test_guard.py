"""Unit tests cannot reach a real Docker engine, even where they forget their fakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters.engine import install, own

FAILED = pytest.fail.Exception


@pytest.mark.parametrize("what", [own.start, own.stop])
def test_the_real_engine_is_out_of_reach(what) -> None:
    # looked up by name: that is what code under test calls
    with pytest.raises(FAILED, match="the real Docker engine"):
        getattr(own, what.__name__)()


def test_a_real_dockerd_is_not_started_elsewhere_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(own, "SOCKET", tmp_path / "run" / "docker.sock")
    with pytest.raises(FAILED, match="real dockerd"):
        own._spawn()


def test_nothing_is_installed() -> None:
    with pytest.raises(FAILED, match="install"):
        install.packages(["docker.io"])
