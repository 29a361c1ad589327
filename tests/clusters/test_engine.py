"""Finding, making and losing a Docker engine, with a docker command that only pretends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from clusters import engine
from clusters.engine import capabilities, client, install, own
from clusters.engine.client import Engine
from clusters.errors import CommandError, EngineError

OURS = Engine(
    host="unix:///nowhere/docker.sock", own=True, version="20.10.24", api_version="1.41",
    cgroup_driver="cgroupfs", cgroup_version="1", data_root=Path("/nowhere/docker"),
    storage_driver="overlay2", runtime="muster",
)  # fmt: skip
THEIRS = replace(OURS, host="", own=False, version="27.1.0", runtime="runc")

#: answers for each address that has a file of its name in $ENGINES; logs what it was asked
DOCKER = """#!/bin/sh
echo "$DOCKER_HOST|$DOCKER_BUILDKIT|$*" >> "$ENGINES/calls"
name=$(echo "${DOCKER_HOST:-default}" | tr -c 'a-z0-9\\n' _)
[ -f "$ENGINES/denied" ] && { echo "permission denied while trying to connect" >&2; exit 1; }
[ -f "$ENGINES/$name" ] || { echo "Cannot connect to the Docker daemon at X" >&2; exit 1; }
case "$1" in
pull) echo "Error response from daemon: Get https://x/v2/: dial tcp: connection refused" >&2
  exit 1 ;;
version) echo '{"Server": {"Version": "20.10.24+dfsg1", "ApiVersion": "1.41"}}' ;;
info) echo '{"ServerVersion": "x", "CgroupDriver": "systemd", "CgroupVersion": "2",
  "DockerRootDir": "/data", "Driver": "overlay2", "DefaultRuntime": "runc"}' ;;
image) [ "$5" = there:1 ] || { echo "Error: No such image: $5" >&2; exit 1; } ;;
*) echo "did $*"; cat ;;
esac
"""


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A machine with a docker command and no engine; call it with an address to have one there."""
    folder = tmp_path / "engines"
    folder.mkdir()
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:/usr/bin:/bin")
    monkeypatch.setenv("ENGINES", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    for module in (client, own):
        monkeypatch.setattr(module, "SOCKET", tmp_path / "run" / "docker.sock")

    def answer(host: str) -> None:
        name = "".join(c if c.isascii() and (c.islower() or c.isdigit()) else "_" for c in host)
        (folder / name).touch()

    return answer


def ours_answers(engines: Callable[[str], None]) -> None:
    client.SOCKET.parent.mkdir()
    client.SOCKET.touch()
    engines(f"unix://{client.SOCKET}")


def test_finds_nothing_where_nothing_answers(engines: Callable[[str], None]) -> None:
    assert engine.find() is None


def test_finds_the_hosts_engine(engines: Callable[[str], None]) -> None:
    engines("default")
    found = engine.find()
    assert found == Engine(
        "", False, "20.10.24+dfsg1", "1.41", "systemd", "2", Path("/data"), "overlay2", "runc"
    )


def test_an_engine_of_ours_that_runs_is_kept(engines: Callable[[str], None]) -> None:
    engines("default")
    ours_answers(engines)
    found = engine.find()
    assert found is not None
    assert found.own
    assert found.host == f"unix://{client.SOCKET}"


def test_docker_host_rules(engines: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    ours_answers(engines)
    engines("tcp://there:1")
    monkeypatch.setenv("DOCKER_HOST", "tcp://there:1")
    found = engine.find()
    assert found is not None
    assert (found.host, found.own) == ("tcp://there:1", False)


def test_a_dead_docker_host_is_not_replaced_in_silence(
    engines: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    engines("default")
    monkeypatch.setenv("DOCKER_HOST", "tcp://gone:1")
    with pytest.raises(EngineError, match="DOCKER_HOST=tcp://gone:1"):
        engine.find()


def test_a_user_who_may_not_is_told(engines: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "engines" / "denied").touch()
    with pytest.raises(EngineError, match="docker group"):
        engine.find()


def test_docker_goes_to_its_engine_and_kind_is_sent_there(
    engines: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours_answers(engines)
    found = engine.find()
    assert found is not None
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere:1")  # set later, by somebody
    assert found.docker("import", "-", stdin="bytes") == "did import -\nbytes"
    last = (tmp_path / "engines" / "calls").read_text().splitlines()[-1]
    assert last == f"unix://{client.SOCKET}|0|import -"
    assert found.env()["DOCKER_HOST"] == f"unix://{client.SOCKET}"


def test_has_image(engines: Callable[[str], None]) -> None:
    engines("default")
    found = engine.find()
    assert found is not None
    assert found.has_image("there:1")
    assert not found.has_image("nowhere:1")


def test_an_engine_that_dies_is_named(engines: Callable[[str], None], tmp_path: Path) -> None:
    engines("default")
    found = engine.find()
    assert found is not None
    (tmp_path / "engines" / "default").unlink()
    with pytest.raises(EngineError, match="does not answer any more"):
        found.docker("ps")
    with pytest.raises(EngineError, match="does not answer any more"):
        found.has_image("there:1")


def test_without_a_docker_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    assert engine.find() is None
    with pytest.raises(EngineError, match="docker command is not installed"):
        THEIRS.docker("ps")


# ensure(): which way it goes


class Host:
    """A machine on which ensure() acts: what answers, and what was done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.found: list[Engine | None] = []
        self.after_apt: Engine | None = None
        self.healthy = True
        self.done: list[str] = []
        self.patch = monkeypatch
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setattr(engine, "find", self.find)
        monkeypatch.setattr(engine, "found_default", lambda wait: self.after_apt)
        monkeypatch.setattr(engine, "check_privileged", lambda e: self.done.append("check"))
        monkeypatch.setattr(install, "is_root", lambda: True)
        monkeypatch.setattr(install, "is_debian", lambda: True)
        monkeypatch.setattr(install, "missing", lambda: self.done.append("apt"))
        monkeypatch.setattr(own, "healthy", lambda: self.healthy)
        monkeypatch.setattr(own, "start", lambda: self.done.append("start"))
        monkeypatch.setattr(own, "stop", lambda: self.done.append("stop"))
        monkeypatch.setattr(own, "confirm", lambda: self.done.append("confirm"))
        monkeypatch.setattr(capabilities, "lacking", list)

    def find(self) -> Engine | None:
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    return Host(monkeypatch, tmp_path)


def test_ensure_uses_what_answers(host: Host) -> None:
    host.found = [THEIRS]
    assert engine.ensure() is THEIRS
    assert host.done == []


def test_a_registry_that_refuses_is_not_an_engine_that_is_gone(
    engines: Callable[[str], None],
) -> None:
    engines("default")
    found = engine.find()
    assert found is not None
    with pytest.raises(CommandError, match="Error response from daemon"):
        found.docker("pull", "x")


def test_ensure_checks_a_strangers_engine_where_the_host_lacks_something(host: Host) -> None:
    host.found = [THEIRS]
    host.patch.setattr(capabilities, "lacking", lambda: ["CAP_SYS_RESOURCE"])
    assert engine.ensure() is THEIRS
    assert host.done == ["check"]


def test_ensure_starts_one_and_confirms_it_last(host: Host) -> None:
    host.found = [None, None, OURS]
    assert engine.ensure() is OURS
    assert host.done == ["apt", "start", "check", "confirm"]


def test_ensure_prefers_the_service_that_apt_started(host: Host) -> None:
    host.found = [None]
    host.after_apt = THEIRS
    assert engine.ensure() is THEIRS
    assert host.done == ["apt"]


def test_ensure_waits_for_whoever_starts_it_just_now(host: Host) -> None:
    host.found = [None, OURS]
    assert engine.ensure() is OURS
    assert host.done == []


def test_ensure_starts_an_engine_again_that_lost_its_data(host: Host) -> None:
    host.found = [OURS]
    host.healthy = False
    assert engine.ensure() is OURS
    assert host.done == ["stop", "apt", "start", "check", "confirm"]


def test_ensure_does_not_confirm_an_engine_that_cannot_do_it(host: Host) -> None:
    host.found = [None, None, OURS]

    def refuse(_: Engine) -> None:
        raise EngineError("cannot start a privileged container")

    host.patch.setattr(engine, "check_privileged", refuse)
    with pytest.raises(EngineError, match="privileged"):
        engine.ensure()
    assert "confirm" not in host.done


@pytest.mark.parametrize(
    ("root", "debian", "word"), [(False, True, "root"), (True, False, "Debian")]
)
def test_ensure_names_what_is_missing(host: Host, root: bool, debian: bool, word: str) -> None:
    host.found = [None]
    host.patch.setattr(install, "is_root", lambda: root)
    host.patch.setattr(install, "is_debian", lambda: debian)
    with pytest.raises(EngineError, match=rf"no Docker engine answers(.|\n)*{word}"):
        engine.ensure()
    assert host.done == []
