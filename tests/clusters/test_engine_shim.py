"""The OCI runtime shim: what it drops, what it leaves alone, and that it becomes runc."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from clusters.engine import capabilities, runtime, shim

ALL = {f"CAP_{name}" for name in shim.NAMES}
HAVE = ALL - {"CAP_SYS_RESOURCE"}


def anything(wanted: int) -> int:
    return wanted


def process(**fields: object) -> dict[str, object]:
    sets = ("bounding", "effective", "inheritable", "permitted", "ambient")
    names = ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_SYS_ADMIN"]
    return {"args": ["sh"], "capabilities": {kind: list(names) for kind in sets}, **fields}


def test_drops_what_the_host_lacks_from_all_five_sets() -> None:
    config = process()
    assert shim.clean(config, HAVE, anything)
    kept = {tuple(names) for names in config["capabilities"].values()}  # type: ignore[attr-defined]
    assert kept == {("CAP_CHOWN", "CAP_SYS_ADMIN")}


def test_leaves_a_process_alone_that_asks_for_nothing_special() -> None:
    config = process()
    assert not shim.clean(config, ALL, anything)
    assert config == process()


def test_sets_without_members_or_missing_are_no_fault() -> None:
    config: dict[str, object] = {"capabilities": {"ambient": None, "bounding": []}}
    assert not shim.clean(config, HAVE, anything)
    assert not shim.clean({}, HAVE, anything)
    assert not shim.clean({"capabilities": None}, HAVE, anything)


def test_raises_an_oom_score_that_may_not_be_set() -> None:
    config = process(oomScoreAdj=-500)
    assert shim.clean(config, ALL, lambda wanted: max(wanted, 1))
    assert config["oomScoreAdj"] == 1
    config = process(oomScoreAdj=500)
    assert not shim.clean(config, ALL, lambda wanted: max(wanted, 1))


def test_lowest_score_tries_before_it_gives_up(tmp_path: Path) -> None:
    score = tmp_path / "oom_score_adj"
    score.write_text("7")
    assert shim.lowest_score(-3, str(score)) == -3


def test_lowest_score_falls_back_to_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = open

    def refuse(path: str, mode: str = "r") -> object:
        if mode == "w":
            raise PermissionError
        return real("/proc/self/oom_score_adj")

    monkeypatch.setattr("builtins.open", refuse)
    with real("/proc/self/oom_score_adj") as handle:
        assert shim.lowest_score(-999) == int(handle.read())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("create --bundle /b --pid-file /p ID", ("/b/config.json", "process")),
        (
            "--root /r --log /l --log-format json create --bundle /b ID",
            ("/b/config.json", "process"),
        ),
        ("--systemd-cgroup --root=/r run -b /b ID", ("/b/config.json", "process")),
        ("create --bundle=/b ID", ("/b/config.json", "process")),
        ("run ID", ("./config.json", "process")),
        ("--root /r exec --process /tmp/p --detach ID", ("/tmp/p", None)),
        ("exec -p /tmp/p ID", ("/tmp/p", None)),
        ("exec ID sh", None),
        ("--root create state ID", None),
        ("--version", None),
        ("delete --force ID", None),
        ("", None),
    ],
)
def test_target(line: str, expected: tuple[str, str | None] | None) -> None:
    assert shim.target(line.split()) == expected


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shim as it is installed, in front of a runc that prints what it was called with."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runc = tmp_path / "runc"
    runc.write_text('#!/bin/sh\necho "runc $*"\nexit 7\n')
    runc.chmod(0o755)
    return runtime.install_shim(str(runc))


def call(shim_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(shim_path), *args], capture_output=True, text=True, check=False)


def test_becomes_runc_with_its_arguments_and_exit_code(installed: Path) -> None:
    result = call(installed, "--root", "/r", "state", "x")
    assert (result.stdout, result.returncode) == ("runc --root /r state x\n", 7)


def test_rewrites_the_bundle_before_runc_reads_it(installed: Path, tmp_path: Path) -> None:
    # names that no kernel has stand for a capability that this host lacks, whatever it has
    config = {"ociVersion": "1.0.2", "process": process(), "root": {"path": "rootfs"}}
    config["process"]["capabilities"]["bounding"].append("CAP_OF_NOBODY")  # type: ignore[index]
    (tmp_path / "config.json").write_text(json.dumps(config))
    result = call(installed, "create", "--bundle", str(tmp_path), "x")
    assert result.stdout.startswith("runc create")
    after = json.loads((tmp_path / "config.json").read_text())
    assert "CAP_OF_NOBODY" not in after["process"]["capabilities"]["bounding"]
    assert "CAP_CHOWN" in after["process"]["capabilities"]["bounding"]
    assert after["root"] == {"path": "rootfs"}


def test_a_file_that_cannot_be_read_is_left_to_runc(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    result = call(installed, "create", "--bundle", str(tmp_path), "x")
    assert result.stdout.startswith("runc create")
    assert "config.json" in result.stderr


def test_the_same_shim_is_installed_once(installed: Path, tmp_path: Path) -> None:
    assert runtime.install_shim(str(tmp_path / "runc")) == installed
    assert runtime.install_shim("/elsewhere/runc") != installed


def test_lacking_is_the_difference_to_what_the_kernel_knows(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("Name:\tx\nCapBnd:\t000001fffeffffff\n")
    (tmp_path / "last").write_text("40\n")
    assert capabilities.lacking(tmp_path / "status", tmp_path / "last") == ["CAP_SYS_RESOURCE"]
    (tmp_path / "status").write_text("CapBnd:\t000001ffffffffff\n")
    assert capabilities.lacking(tmp_path / "status", tmp_path / "last") == []
    (tmp_path / "last").write_text("41\n")  # one that is younger than this code
    assert capabilities.lacking(tmp_path / "status", tmp_path / "last") == ["CAP_41"]
    assert capabilities.lacking(tmp_path / "none", tmp_path / "last") == []
