"""The doctor's verdicts on machines that are made up, and its report's form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from clusters import doctor, engine, hostfacts
from clusters.doctor import Check, Needs, NotFit, State, faults, machine, tools
from clusters.doctor.needs import BUILD_DISK, INSTANCES, WARM_DISK, WATCHES, raise_inotify
from clusters.engine import Engine, install
from clusters.errors import EngineError
from oracles.errors import HarnessError

OURS = Engine(
    host="unix:///run/docker.sock", own=True, version="20.10.24+dfsg1", api_version="1.41",
    cgroup_driver="cgroupfs", cgroup_version="1", data_root=Path("/data"),
    storage_driver="overlay2", runtime="muster",
)  # fmt: skip
THEIRS = replace(OURS, host="", own=False, version="27.1.0", cgroup_version="2", runtime="runc")


class Machine:
    """A machine whose facts are set by a test; well in every respect at first."""

    def __init__(self, patch: pytest.MonkeyPatch, cache: Path) -> None:
        self.engine: Engine | None = THEIRS
        self.engine_error: EngineError | None = None
        self.root, self.debian = True, True
        self.lacking: list[str] = []
        self.inotify = hostfacts.Inotify(8192, 1_000_000)
        self.disk, self.memory = 100.0, 16.0
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.delenv("PARTS", raising=False)
        patch.setattr(engine, "find", self.find)
        patch.setattr(install, "is_root", lambda: self.root)
        patch.setattr(install, "is_debian", lambda: self.debian)
        patch.setattr(hostfacts, "is_root", lambda: self.root)
        patch.setattr(hostfacts, "lacking_capabilities", lambda: self.lacking)
        patch.setattr(hostfacts, "inotify", lambda: self.inotify)
        patch.setattr(hostfacts, "inotify_instances_used", lambda: 3)
        patch.setattr(hostfacts, "disk_free", lambda path: self.disk)
        patch.setattr(hostfacts, "memory_available", lambda: self.memory)
        patch.setattr("clusters.doctor.needs.raise_inotify", self.raise_inotify)

    def find(self) -> Engine | None:
        if self.engine_error:
            raise self.engine_error
        return self.engine

    def raise_inotify(self, instances: int, watches: int) -> bool:
        self.inotify = hostfacts.Inotify(instances, watches)
        return True


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    return Machine(monkeypatch, tmp_path)


def test_engine_of_the_host(host: Machine) -> None:
    check = machine.docker(THEIRS)
    assert check.state is State.OK
    assert "27.1.0" in check.found
    assert "the host's" in check.found


def test_engine_of_ours(host: Machine) -> None:
    assert "ours" in machine.docker(OURS).found


def test_no_engine_where_one_can_be_made_is_no_failure(host: Machine) -> None:
    check = machine.docker(None)
    assert check.state is State.WARN
    assert "installs and starts" in check.hint


@pytest.mark.parametrize(("root", "debian"), [(False, True), (True, False)])
def test_no_engine_and_none_to_be_made(host: Machine, root: bool, debian: bool) -> None:
    host.root, host.debian = root, debian
    check = machine.docker(None)
    assert check.failed
    assert check.hint
    assert "next:" not in check.found


def test_an_engine_that_may_not_be_used(host: Machine) -> None:
    host.engine_error = EngineError("this user may not use it", hint="join the docker group")
    first = machine.engine_checks()[0]
    assert (first.state, first.hint) == (State.FAIL, "join the docker group")


@pytest.mark.parametrize("version", ["19.03.15", "20.9.1"])
def test_an_old_engine(host: Machine, version: str) -> None:
    assert machine.docker(replace(THEIRS, version=version)).failed


@pytest.mark.parametrize("version", ["20.10.24+dfsg1", "28.2.2", "26.1.5-ce", "dev"])
def test_an_engine_that_is_new_enough(host: Machine, version: str) -> None:
    assert machine.docker(replace(THEIRS, version=version)).state is State.OK


def test_a_storage_driver_that_copies_everything(host: Machine) -> None:
    assert machine.docker(replace(OURS, storage_driver="vfs")).state is State.WARN


def test_capabilities(host: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.capabilities(THEIRS).found == "all"
    host.lacking = ["CAP_SYS_RESOURCE"]
    assert "shim" in machine.capabilities(OURS).found
    assert machine.capabilities(None).state is State.OK

    def refuse(_: Engine) -> None:
        raise EngineError("cannot start privileged containers", hint="stop that engine")

    monkeypatch.setattr(engine, "check_privileged", refuse)
    check = machine.capabilities(THEIRS)
    assert check.failed
    assert check.hint == "stop that engine"
    monkeypatch.setattr(engine, "check_privileged", lambda _: None)
    assert machine.capabilities(THEIRS).state is State.OK


def test_cgroups(host: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.cgroup(THEIRS).found == "version 2, driver cgroupfs"
    assert "1.35" in machine.cgroup(OURS).found
    monkeypatch.setattr(hostfacts, "cgroup_version", lambda: "")
    assert machine.cgroup(None).failed


@pytest.mark.parametrize(
    ("instances", "watches", "root", "state"),
    [
        (512, 65536, False, State.OK),
        (128, 65536, False, State.WARN),
        (512, 8192, False, State.WARN),
        (64, 65536, False, State.FAIL),
        (512, 4096, False, State.FAIL),
        (64, 65536, True, State.WARN),  # root's are raised
        (None, None, False, State.OK),
    ],
)
def test_inotify(
    host: Machine, instances: int | None, watches: int | None, root: bool, state: State
) -> None:
    host.root = root
    host.inotify = hostfacts.Inotify(instances, watches)
    check = machine.inotify()
    assert check.state is state
    assert (check.hint != "") is (state is not State.OK)


@pytest.mark.parametrize(("free", "state"), [(40, State.OK), (15, State.WARN), (5, State.FAIL)])
def test_disk(host: Machine, free: float, state: State) -> None:
    host.disk = free
    assert machine.disk().state is state


@pytest.mark.parametrize(("free", "state"), [(5, State.OK), (3, State.WARN), (1, State.FAIL)])
def test_memory(host: Machine, free: float, state: State) -> None:
    host.memory = free
    assert machine.memory().state is state


def test_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.loopback().state is State.OK

    def no_port(*_: object) -> None:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr("socket.socket.bind", no_port)
    check = machine.loopback()
    assert check.failed
    assert "already in use" in check.found


@pytest.mark.parametrize(
    ("version", "parts", "state"),
    [
        ("go1.24", "auto", State.OK),
        ("go1.26.8", "build", State.OK),
        ("go1.21.3", "auto", State.WARN),
        ("go1.21.3", "build", State.FAIL),
        ("devel", "auto", State.WARN),
    ],
)
def test_go(monkeypatch: pytest.MonkeyPatch, version: str, parts: str, state: State) -> None:
    monkeypatch.setenv("PARTS", parts)
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/x/go")
    monkeypatch.setattr(tools, "run", lambda *_, **__: f"{version}\n")
    assert tools.go().state is state


def test_tools_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARTS", raising=False)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.setattr(tools, "which", lambda name: None)
    for check in (tools.go(), tools.debootstrap(), tools.report_page()):
        assert check.state is State.WARN
        assert check.hint


def test_kernel_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostfacts, "freezer", lambda: False)
    monkeypatch.setattr(faults, "features", lambda: {"statistic", "tbf"})
    states = {check.name: check.state for check in faults.checks()}
    assert states == {
        "iptables statistic match": State.OK,
        "tc netem": State.WARN,
        "tc tbf": State.OK,
        "cgroup freezer": State.WARN,
    }


def test_kernel_features_need_a_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "which", lambda name: f"/x/{name}")
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/x/unshare")
    monkeypatch.setattr(faults, "run", lambda *_, **__: "")  # unshare: Operation not permitted
    assert faults.features() is None
    monkeypatch.setattr(faults, "run", lambda *_, **__: "namespace\nnetem\n")
    assert faults.features() == {"netem"}
    monkeypatch.setattr(faults, "which", lambda name: None)
    assert faults.features() is None


def test_leftovers() -> None:
    def broken() -> list[str]:
        raise HarnessError("no engine", hint="start it")

    answers: list[tuple[Callable[[], list[str]], State, str]] = [
        (list, State.OK, "none"),
        (lambda: ["a", "b"], State.WARN, "a, b"),
        (broken, State.WARN, "cannot be told"),
    ]
    for ask, state, found in answers:
        check = doctor._leftovers(ask)
        assert (check.state, check.found) == (state, found)


def test_render_shows_everything_and_the_hints_of_what_is_not_well() -> None:
    console = Console(record=True, width=60, force_terminal=False)
    checks = [
        Check("alpha", State.OK, "a[b]c", "for x", "never shown"),
        Check("beta", State.WARN, "half of it", "all of it", "get the rest"),
        Check("gamma", State.FAIL, "nothing", "something", "install it"),
    ]
    doctor.render(checks, console)
    text = console.export_text()
    for word in ("alpha", "a[b]c", "for x", "beta: get the rest", "gamma: install it"):
        assert word in text
    assert "never shown" not in text
    assert text.index("gamma: install") < text.index("beta: get")  # the worst first
    assert "3 checks: 1 ok, 1 warnings, 1 failures" in text


def test_exit_code() -> None:
    ok, warn, fail = (Check("x", state, "", "") for state in State)
    assert doctor.exit_code([ok, warn]) == 0
    assert doctor.exit_code([ok, fail, warn]) == 3


# before a run


def test_preflight_on_a_machine_that_is_well(host: Machine) -> None:
    doctor.preflight()


def test_preflight_does_not_mind_an_engine_that_can_be_made(host: Machine) -> None:
    host.engine = None
    doctor.preflight()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engine": None, "root": False}, "no Docker engine answers, and this user may not"),
        ({"disk": 19.0}, "too little disk: 19.0 GB free.*20 GB needed"),
        ({"memory": 1.0}, "too little memory: 1.0 GB available"),
        (
            {"inotify": hostfacts.Inotify(64, 65536), "root": False},
            "inotify limits too low: 64 instances",
        ),
        ({"inotify": hostfacts.Inotify(256, 1024), "root": False}, "inotify limits too low.*1024"),
    ],
)
def test_preflight_names_the_first_thing_that_is_missing(
    host: Machine, change: dict[str, object], message: str
) -> None:
    for name, value in change.items():
        setattr(host, name, value)
    with pytest.raises(HarnessError, match=message) as caught:
        doctor.preflight()
    assert caught.value.exit_code == 3
    assert caught.value.hint
    assert "\n" not in str(caught.value.args[0])


def test_preflight_raises_roots_limits(host: Machine) -> None:
    host.inotify = hostfacts.Inotify(32, 1024)
    doctor.preflight()
    assert host.inotify == hostfacts.Inotify(INSTANCES, WATCHES)


def test_preflight_asks_for_less_once_the_cache_is_warm(host: Machine, tmp_path: Path) -> None:
    host.disk = (BUILD_DISK + WARM_DISK) / 2
    with pytest.raises(NotFit):
        doctor.preflight()
    half_made = tmp_path / "muster" / "rootfs" / ".node.partial"
    half_made.mkdir(parents=True)
    with pytest.raises(NotFit):
        doctor.preflight()
    half_made.rename(half_made.with_name("node"))
    doctor.preflight()


def test_preflight_asks_for_less_where_nothing_is_built(
    host: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.disk = (BUILD_DISK + WARM_DISK) / 2
    monkeypatch.setenv("PARTS", "pull")
    doctor.preflight()


def test_preflight_without_an_engine_of_this_host(host: Machine) -> None:
    host.engine, host.root = None, False
    doctor.preflight(Needs(docker=False))


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    (tmp_path / "max_user_instances").write_text("128\n")
    (tmp_path / "max_user_watches").write_text("192536\n")
    return tmp_path


def test_raise_inotify_raises_only_what_is_too_low(
    limits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raise_inotify(256, 65536, limits)
    assert (limits / "max_user_instances").read_text() == "256"
    assert (limits / "max_user_watches").read_text() == "192536\n"
    said = capsys.readouterr().err
    assert "max_user_instances from 128 to 256" in said
    assert "watches" not in said


def test_raise_inotify_that_may_not(limits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    assert not raise_inotify(256, 65536, limits)
    assert raise_inotify(64, 65536, limits)


def test_raise_inotify_where_there_are_no_limits(tmp_path: Path) -> None:
    assert raise_inotify(256, 65536, tmp_path / "nowhere")
