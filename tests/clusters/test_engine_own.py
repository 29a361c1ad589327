"""Our own dockerd: whose process it is, when it is well, what it is made of and how it ends."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from clusters import engine
from clusters.engine import capabilities, install, leftovers, own, probe
from clusters.engine.client import Engine
from clusters.errors import CommandError, EngineError
from clusters.kube import until_true

OURS = Engine(
    host="unix:///nowhere/docker.sock", own=True, version="20.10.24", api_version="1.41",
    cgroup_driver="cgroupfs", cgroup_version="1", data_root=Path("/nowhere/docker"),
    storage_driver="overlay2", runtime="muster",
)  # fmt: skip
THEIRS = replace(OURS, host="", own=False, version="27.1.0", runtime="runc")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(own, "SOCKET", tmp_path / "run" / "docker.sock")
    monkeypatch.setattr(leftovers, "mounts", list)
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def test_a_pid_of_somebody_else_is_not_ours(mine: Path) -> None:
    assert own.pid() is None
    (mine / "docker.pid").write_text(str(os.getpid()))
    assert own.pid() is None
    assert not own.healthy()


def test_one_that_was_killed_leaves_its_pid_file(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever removes containers starts it again then, and only then."""
    monkeypatch.setattr(engine, "find", lambda: None)
    monkeypatch.setattr(engine, "ensure", lambda: OURS)
    assert not own.died()
    assert engine.revived() is None
    (mine / "docker.pid").write_text(str(os.getpid()))
    assert own.died()
    assert engine.revived() is OURS
    monkeypatch.setattr(own, "pid", os.getpid)
    assert not own.died(), "it runs, and may only be slow to answer"
    assert engine.revived() is None


def test_stop_leaves_somebody_elses_process_alone(mine: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        (mine / "docker.pid").write_text(str(other.pid))
        folder = mine / "exec" / "containerd"
        folder.mkdir(parents=True)
        (folder / "containerd.pid").write_text(str(other.pid))
        assert own.stop() is False
        assert other.poll() is None
        assert not (mine / "docker.pid").exists()
        assert not (folder / "containerd.pid").exists()
    finally:
        other.kill()
        other.wait()


def test_stop_ends_our_dockerd(mine: Path, tmp_path: Path) -> None:
    dockerd = tmp_path / "dockerd"  # a shell under that name, with our configuration's path
    dockerd.write_bytes(Path("/bin/bash").read_bytes())
    dockerd.chmod(0o755)
    config = str(mine / "daemon.json")
    for args, ours in (["elsewhere.json"], False), (["--config-file", config], True):
        process = subprocess.Popen(
            [str(dockerd), "-c", "echo up; read x", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()  # the kernel shows its arguments only once it runs
        own._children.append(process)  # so that its end is noticed
        try:
            (mine / "docker.pid").write_text(str(process.pid))
            assert own.pid() == (process.pid if ours else None)
            assert own.stop() is ours
            assert (process.poll() is not None) is ours
        finally:
            process.kill()
            process.communicate()
            own._children.remove(process)


def test_health_needs_the_marker_of_this_very_process(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "pid", lambda: 4711)
    own.data_root().mkdir(parents=True)
    (mine / "daemon.json").write_text(f'{{"data-root": "{own.data_root()}"}}')
    assert not own.healthy()
    own.confirm()
    assert own.healthy()
    monkeypatch.setattr(own, "pid", lambda: 4712)
    assert not own.healthy()
    monkeypatch.setattr(own, "pid", lambda: 4711)
    (own.data_root() / ".muster-engine").unlink()  # the cache was emptied
    assert not own.healthy()


def test_health_needs_the_shim(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "pid", lambda: 4711)
    own.data_root().mkdir(parents=True)
    own.confirm()
    (mine / "daemon.json").write_text(
        f'{{"data-root": "{own.data_root()}", "runtimes": {{"muster": {{"path": "/gone"}}}}}}'
    )
    assert not own.healthy()


def test_the_shim_is_configured_only_where_it_is_needed(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, "lacking", list)
    assert "runtimes" not in own._config()
    monkeypatch.setattr(capabilities, "lacking", lambda: ["CAP_SYS_RESOURCE"])
    config = own._config()
    assert config["default-runtime"] == "muster"
    assert config["oom-score-adjust"] == 0


def test_a_dockerd_that_ends_at_once_shows_its_log(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dockerd = tmp_path / "dockerd"
    dockerd.write_text("#!/bin/sh\necho cannot do that >&2\nexit 1\n")
    dockerd.chmod(0o755)
    monkeypatch.setattr(own, "which", lambda name: str(dockerd))
    monkeypatch.setattr(capabilities, "lacking", list)
    with pytest.raises(EngineError, match=r"code 1(.|\n)*cannot do that"):
        own.start()


def test_mounts_reads_escapes_and_removed_ones(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "30 1 0:1 / /data/a\\040b rw - ext4 x rw\n31 1 0:2 / /data/gone//deleted rw - tmpfs x rw\n"
    )
    assert leftovers.mounts(table) == [Path("/data/a b"), Path("/data/gone")]


def test_containers_of_a_killed_engine_are_ended_and_no_others(tmp_path: Path) -> None:
    """Shells under the name of containerd's shim, each with a child that stands for a container."""
    shim = tmp_path / "containerd-shim-runc-v2"
    shim.write_bytes(Path("/bin/bash").read_bytes())
    shim.chmod(0o755)
    keepers = []
    try:
        for address in ("/ours/containerd.sock", "/other/containerd.sock"):
            script = "sleep 60 & echo $!; wait"
            keepers.append(
                subprocess.Popen(
                    [str(shim), "-c", script, "-address", address], stdout=subprocess.PIPE
                )
            )
        children = [int(k.stdout.readline()) for k in keepers if k.stdout]
        assert leftovers.kill_containers(Path("/ours/containerd.sock")) == 1
        keepers[0].wait(timeout=5)  # killed, or at its own end after its child's
        assert keepers[1].poll() is None
        until_true(lambda: _ended(children[0]), deadline=5, why="the container's end", every=0.05)
        assert not _ended(children[1])
    finally:
        for number in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, 9)
        for keeper in keepers:
            keeper.kill()
            keeper.communicate()


def _ended(number: int) -> bool:
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_forget_removes_what_is_in_run_but_not_under_a_running_engine(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mine / "daemon.json").touch()
    monkeypatch.setattr(own, "pid", lambda: 4711)
    own.forget()
    assert mine.exists()
    monkeypatch.setattr(own, "pid", lambda: None)
    monkeypatch.setattr(leftovers, "mounts", lambda: [mine / "exec" / "netns"])
    own.forget()
    assert mine.exists()
    monkeypatch.setattr(leftovers, "mounts", list)
    own.forget()
    assert not mine.exists()


def test_unmounts_only_what_is_below_its_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    there = ["/", "/c/docker", "/c/docker/overlay2/x/merged", "/c/docker-other", "/c/rootfs/proc"]
    monkeypatch.setattr(leftovers, "mounts", lambda: [Path(p) for p in there])
    calls: list[str] = []

    def umount(args: list[str], timeout: float) -> str:
        calls.append(args[-1])
        return ""

    monkeypatch.setattr(leftovers, "run", umount)
    leftovers.unmount([Path("/c/docker")])
    assert calls == ["/c/docker/overlay2/x/merged", "/c/docker"]


def test_installs_only_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    there = set(install.PACKAGES) - {"dockerd", "ip"}
    calls: list[list[str]] = []

    def apt(args: list[str], *_: object, **__: object) -> None:
        calls.append(args)
        there.update(install.PACKAGES)

    monkeypatch.setattr(install, "which", lambda name: f"/x/{name}" if name in there else None)
    monkeypatch.setattr(install, "run_logged", apt)
    monkeypatch.setattr(install, "run", lambda *_, **__: "")
    install.missing()
    assert [args[3] for args in calls] == ["update", "install"]
    assert calls[1][-2:] == ["docker.io", "iproute2"]
    install.missing()
    assert len(calls) == 2


def test_a_package_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def apt(*_: object, **__: object) -> None:
        raise CommandError("apt-get: exit code 100", output="E: no network")

    monkeypatch.setattr(install, "which", lambda name: None)
    monkeypatch.setattr(install, "run_logged", apt)
    monkeypatch.setattr(install, "run", lambda *_, **__: "")
    with pytest.raises(EngineError, match=r"docker\.io(.|\n)*no network"):
        install.missing()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no probe program")
def test_the_probe_program_runs_and_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    path.write_bytes(probe.program())
    path.chmod(0o755)
    assert subprocess.run([str(path)], check=False).returncode == 0


def test_the_probe_program_of_an_unknown_processor() -> None:
    with pytest.raises(EngineError, match="pdp11"):
        probe.program("pdp11")


class Refusing(Engine):
    """An engine that has the probe's image and cannot start it."""

    def docker(self, *args: str, **_: object) -> str:
        if args[0] == "run":
            raise CommandError("docker run: exit code 125", output="unable to apply caps")
        return ""


def test_a_strangers_engine_without_the_capability_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capabilities, "lacking", lambda: ["CAP_SYS_RESOURCE"])
    refusing = Refusing(**vars(THEIRS))
    with pytest.raises(EngineError, match=r"lacks CAP_SYS_RESOURCE(.|\n)*stop that engine"):
        probe.check_privileged(refusing)


def test_our_engine_that_cannot_start_one_shows_docker_s_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capabilities, "lacking", lambda: ["CAP_SYS_RESOURCE"])
    with pytest.raises(EngineError, match="unable to apply caps"):
        probe.check_privileged(Refusing(**vars(OURS)))
