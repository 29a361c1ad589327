"""The command: exit codes, and one clear error each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from clusters import addons, cache, cli, doctor, engine, ledger, listing, parts, topology
from clusters.cluster import Cluster, ClusterSpec
from clusters.errors import ClusterError
from clusters.local import LocalProcess, LocalProcesses
from clusters.parts import pins, plan
from clusters.providers.existing import ExistingProvider
from clusters.providers.kind import KindProvider
from oracles.errors import HarnessError, UsageError

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process; its exit code."""

    def call(*args: str) -> int:
        monkeypatch.setattr(sys, "argv", ["clusters", *args])
        return cli._run()

    return call


class World:
    """Clusters that only pretend."""

    def __init__(self) -> None:
        self.up: dict[str, ClusterSpec] = {}
        self.done: list[str] = []
        self.fail: dict[str, BaseException] = {}
        self.strangers: list[str] = []

    def step(self, name: str) -> None:
        self.done.append(name)
        if name in self.fail:
            raise self.fail[name]

    def create(self, _: KindProvider, spec: ClusterSpec) -> Cluster:
        self.step("create")
        self.up[spec.name] = spec
        ledger.write(
            spec.name, provider="kind", kubernetes=spec.kubernetes, topology="t", run=spec.run
        )
        ledger.update(spec.name, ready=True)
        return _cluster(spec, "kind")

    def delete(self, _: KindProvider, name: str) -> None:
        self.step(f"delete {name}")
        self.up.pop(name, None)
        ledger.forget(name)


def _cluster(spec: ClusterSpec, provider: str) -> Cluster:
    return Cluster(
        spec.name,
        provider,
        spec.kubernetes,
        spec.topology,
        Path("/k"),
        "ctx",
        spec.run,
        frozenset(),
    )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A host on which everything works at once."""
    it = World()
    monkeypatch.setattr(KindProvider, "create", lambda self, spec: it.create(self, spec))
    monkeypatch.setattr(KindProvider, "delete", lambda self, name: it.delete(self, name))
    monkeypatch.setattr(KindProvider, "names", lambda self: sorted(it.up))
    monkeypatch.setattr(KindProvider, "nodes", lambda self: dict.fromkeys(it.up, (True, True)))
    monkeypatch.setattr(KindProvider, "sweep", lambda self: it.step("sweep"))
    monkeypatch.setattr(doctor, "preflight", lambda needs=None: it.step(f"preflight {needs}"))
    monkeypatch.setattr(plan, "announce", lambda *_: it.step("announce") or [])
    monkeypatch.setattr(parts, "found_binary", lambda _: Path("/bin/kubectl"))
    monkeypatch.setattr(addons, "check", lambda **_: None)
    monkeypatch.setattr(addons, "mounts", lambda: (it.step("mounts"), ())[1])
    monkeypatch.setattr(addons, "install", lambda cluster, **words: it.step(f"install {words}"))
    monkeypatch.setattr(KindProvider, "strangers", lambda self: it.strangers)
    monkeypatch.setattr(parts, "prune", lambda: it.step("prune") or [])
    monkeypatch.setattr(engine, "find", lambda: object())
    monkeypatch.setattr(engine, "ensure", lambda: object())
    monkeypatch.setattr(engine, "stop", lambda: (it.step("stop"), True)[1])
    return it


# bad words


@pytest.mark.parametrize(
    ("args", "error", "hint"),
    [
        (["up", "--topology", "nope"], "no topology 'nope'", ", thread"),
        (["up", "--gpu-mode", "real"], "no GPU mode 'real'", "one of patched, device-plugin"),
        (["up", "--topology", "nope.yaml"], "no topology 'nope.yaml'", "one of"),
        (["up", "--kubernetes", "1.2.3"], "Kubernetes '1.2.3' is not pinned", "1.34.4, 1.28.9"),
        (["up", "--provider", "x"], "no provider 'x'", "one of kind, embedded, existing:CONTEXT"),
        (["up", "--operator", "x"], "no operator named 'x'", "training-operator"),
        (["up", "--scheduler", "x"], "no scheduler named 'x'", "coscheduling"),
        (["up", "Bad_Name"], "'Bad_Name' cannot be a cluster's name", "a-z, 0-9"),
        (["up", "--colour"], "No such option: --colour", "--help"),
        (["up", "a", "b"], "unexpected extra argument", "--help"),
        (["up", "--topology"], "requires an argument", "--help"),
        (["load", "x"], "Missing argument 'images'", "--help"),
        (["fly"], "No such command 'fly'", "--help"),
        (["down", "nope"], "no cluster 'nope'", "there is none"),
        (["down"], "which cluster?", "a name or --all"),
        (["prepare", "--kubernetes", "1"], "Kubernetes '1' is not pinned", "1.34.4"),
        (["load", "nope", "x"], "no cluster named 'nope' is up", "makes one"),
    ],
)
def test_usage_errors(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    args: list[str], error: str, hint: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(engine, "find", lambda: None)
    assert run(*args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    first, *rest = captured.err.strip().splitlines()
    assert first.startswith("error: ")
    assert error in first
    assert [line.startswith("  next: ") for line in rest] == [True]
    assert hint in rest[0]


def test_a_source_that_is_none(
    run: Run, world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTS", "steal")
    assert run("up") == 2
    assert "error: PARTS='steal' is not a source" in capsys.readouterr().err
    assert world.done == []
    assert run("prepare") == 2


def test_no_command_is_a_question_for_help(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 2
    captured = capsys.readouterr()
    assert "Usage:" in captured.out
    assert "error" not in captured.err
    assert run("--help") == 0
    out = capsys.readouterr().out
    for command in ("up", "down", "list", "load", "doctor", "prepare", "clean"):
        assert command in out


# up


def test_up(run: Run, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("up", "one", "--topology", "small", "--operator", "a", "--scheduler", "b") == 0
    assert world.done == [
        "preflight None", "sweep", "announce", "mounts", "create",
        "install {'operator': 'a', 'scheduler': 'b'}",
    ]  # fmt: skip
    spec = world.up["one"]
    assert spec.topology == topology.load("small")
    assert spec.kubernetes == "1.34.4"
    entry = ledger.read("one")
    assert entry is not None
    assert entry.keep  # it is the user's now, and nobody's to sweep
    out = capsys.readouterr().out
    assert "cluster one: Kubernetes 1.34.4, topology small, 2 GPUs" in out
    assert "export KUBECONFIG=/k\n" in out
    assert "/bin/kubectl --context ctx get nodes\n" in out


def test_up_with_a_file(run: Run, world: World, tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("{name: own, description: d, nodes: [{role: control-plane, gpus: 3}]}")
    assert run("up", "--topology", str(path)) == 0
    assert world.up["muster"].topology.gpus == 3


@pytest.mark.parametrize("error", [HarnessError("too little disk", hint="free some")])
def test_up_on_a_host_that_is_not_fit(
    run: Run, world: World, capsys: pytest.CaptureFixture[str], error: HarnessError
) -> None:
    world.fail = {"preflight None": error}
    assert run("up") == 3
    assert capsys.readouterr().err == "error: too little disk\n  next: free some\n"
    assert world.done == ["preflight None"]


def test_up_that_fails_to_install_leaves_nothing(
    run: Run, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.fail = {"install {'operator': 'a', 'scheduler': 'none'}": ClusterError("never ready")}
    assert run("up", "--operator", "a") == 3
    assert world.up == {}
    assert ledger.entries() == []
    err = capsys.readouterr().err
    assert "error: never ready" in err
    assert "with --keep it stays" in err


def test_up_keep_leaves_what_there_is(run: Run, world: World) -> None:
    world.fail = {"install {'operator': 'a', 'scheduler': 'none'}": ClusterError("never ready")}
    assert run("up", "--operator", "a", "--keep") == 3
    assert world.up["muster"].keep
    entry = ledger.read("muster")
    assert entry is not None
    assert entry.keep


def test_up_of_somebodys_cluster(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    specs: list[ClusterSpec] = []

    def look(self: ExistingProvider, spec: ClusterSpec) -> Cluster:
        specs.append(spec)
        return _cluster(spec, self.name)

    monkeypatch.setattr(ExistingProvider, "create", look)
    assert run("up", "--provider", "existing:prod") == 0
    # no folders of this host, nothing swept, and no engine asked for
    assert world.done == [
        f"preflight {doctor.ELSEWHERE}", "install {'operator': 'none', 'scheduler': 'none'}",
    ]  # fmt: skip
    assert specs[0].mounts == ()
    assert not doctor.ELSEWHERE.docker
    capsys.readouterr()
    world.fail = {world.done[-1]: ClusterError("never ready")}
    assert run("up", "--provider", "existing:prod") == 3
    assert capsys.readouterr().err == "error: never ready\n"  # and it is not removed


# down, list, clean


def test_down(run: Run, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b", "c"):
        run("up", name)
    world.done.clear()
    assert run("down", "a", "nope") == 2
    assert "there: a, b, c" in capsys.readouterr().err
    assert sorted(world.up) == ["a", "b", "c"]  # a wrong name stops it before anything is gone
    assert run("down", "c", "a", "c") == 0
    assert world.done == ["delete c", "delete a"]
    assert run("down", "--all") == 0
    assert "nothing is left" in capsys.readouterr().err
    assert world.up == {}
    assert run("down", "--all") == 0


def test_down_all_spares_a_run_at_work(
    run: Run, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "busy"):
        run("up", name)
    ledger.update("busy", keep=False)  # this very process owns it
    capsys.readouterr()
    assert run("down", "--all") == 0
    assert sorted(world.up) == ["busy"]
    err = capsys.readouterr().err
    assert f"cluster busy stays, pid {os.getpid()} works with it" in err
    assert "nothing is left" not in err
    assert run("down", "busy") == 0
    assert world.up == {}


def test_down_goes_on_after_one_that_does_not_go(
    run: Run, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        run("up", name)
    world.fail = {"delete a": ClusterError("a does not go")}
    assert run("down", "--all") == 3
    assert sorted(world.up) == ["a"]
    err = capsys.readouterr().err
    assert "error: a does not go" in err
    assert "nothing is left" not in err


def test_list_for_programs(run: Run, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "no clusters\n")
    run("up", "one")
    run("up", "two")
    ledger.write("two", provider="kind", kubernetes="1.28.9", topology="small", run="r")
    capsys.readouterr()
    assert run("list") == 0
    header, one, two = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header == list(listing.COLUMNS)
    assert one[:2] == ["one", "1.34.4"]
    assert one[3] == "up"
    assert one[-1] == str(ledger.folder("one") / "kubeconfig")  # whole, however long
    assert two[3] == f"being made (pid {os.getpid()})"
    assert two[-1] == "-"


def test_list_states(run: Run, world: World, capsys: pytest.CaptureFixture[str],
                     monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    for name in ("up", "lost", "dead", "failed", "halted", "gone"):
        run("up", name)
    ledger.forget("lost")
    dead = ledger.write("dead", provider="kind", kubernetes="1", topology="t", run="r")
    ledger._save(type(dead)(**{**dead.__dict__, "pid_start": 1}))
    ledger.write("failed", provider="kind", kubernetes="1", topology="t", run="r")
    ledger.update("failed", keep=True)
    ledger.write("here", provider="embedded", kubernetes="1", topology="t", run="r")
    ledger.update("here", ready=True, keep=True)
    ledger.write("crashed", provider="embedded", kubernetes="1", topology="t", run="r")
    ledger.update("crashed", ready=True, keep=True)
    processes = LocalProcesses(ledger.folder("crashed"))
    processes.start(LocalProcess("etcd", ("/bin/sleep", "600")))
    processes.stop("etcd")
    running = dict.fromkeys(world.up, (True, True)) | {"halted": (True, False), "gone": ()}
    monkeypatch.setattr(KindProvider, "nodes", lambda self: running)
    capsys.readouterr()
    run("list")
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    states = {row[0]: row[3] for row in rows}
    assert states["up"] == "up"
    assert states["lost"] == "left over (no ledger)"
    assert states["dead"] == "left over"
    assert states["failed"] == "failed, kept"
    assert states["halted"] == "1 of 2 nodes stopped"
    assert states["gone"] == "gone"
    assert states["here"] == "up"
    assert states["crashed"] == "ended: etcd"


def test_clean(run: Run, world: World) -> None:
    run("up", "a")
    world.done.clear()
    assert run("clean") == 0
    assert world.done == ["delete a", "prune", "stop"]


def test_clean_without_an_engine(run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find", lambda: None)
    assert run("clean") == 0
    assert world.done == ["stop"]  # whatever is left of one in /run goes


def test_clean_leaves_the_engine_to_others(
    run: Run, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.strangers = ["theirs"]
    assert run("clean") == 0
    assert world.done == []
    assert "the Docker engine goes on" in capsys.readouterr().err


def test_clean_refuses_while_somebody_is_at_work(
    run: Run, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with cache.lock("run"):
        assert run("clean") == 3
    assert f"somebody is at work: run is held by pid {os.getpid()}" in capsys.readouterr().err
    ledger.write("theirs", provider="kind", kubernetes="1", topology="t", run="r")
    assert run("clean") == 3
    assert f"pid {os.getpid()} works with cluster theirs" in capsys.readouterr().err
    assert world.done == []


def test_doctor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    state = [doctor.State.WARN]
    monkeypatch.setattr(doctor, "report", lambda leftovers: [doctor.Check("x", state[0], "", "")])
    assert run("doctor") == 0
    state[0] = doctor.State.FAIL
    assert run("doctor") == 3


# prepare


def test_prepare(run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(plan, "announce", lambda *words: asked.append(words))
    monkeypatch.setattr(parts, "host_binary", lambda name: asked.append(name))
    monkeypatch.setattr(parts, "node_image", lambda version: asked.append(version))
    monkeypatch.setattr(parts, "base_image", lambda: asked.append("base"))
    monkeypatch.setattr(parts, "image", lambda name, _, image: asked.append((name, image)))
    monkeypatch.setattr(parts, "control_plane", lambda it: asked.append(f"control plane {it}"))
    monkeypatch.setattr(parts, "program", lambda name: asked.append(name))
    assert run("prepare", "--kubernetes", "1.28.9") == 0
    programs = pins.pins().programs
    images = {name: program.images for name, program in programs.items() if program.images}
    assert asked == [
        # said before anything is begun
        (["1.28.9"], list(images)), "kind", "1.28.9", "control plane 1.28.9", "kwok",
        "device-plugin", "base",
        *((name, image) for name, found in images.items() for image in found),
    ]  # fmt: skip
    assert ("scheduler-plugins", "controller") in asked


# the way out


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (ClusterError("broken", hint="mend it"), 3, "error: broken\n  next: mend it\n"),
        (UsageError("wrong"), 2, "error: wrong\n"),
        (KeyboardInterrupt(), 3, "interrupted\n"),
        (typer.Abort(), 3, "interrupted\n"),
    ],
)
def test_the_way_out(
    run: Run, world: World, capsys: pytest.CaptureFixture[str],
    error: BaseException, code: int, word: str,
) -> None:  # fmt: skip
    world.fail = {"create": error}
    assert run("up") == code
    assert capsys.readouterr().err == word


def test_a_defect_of_ours_is_not_a_behaviour(
    run: Run, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.fail = {"create": ZeroDivisionError("oops")}
    assert run("up") == 3
    err = capsys.readouterr().err
    assert "ZeroDivisionError: oops" in err
    assert err.splitlines()[-1].startswith("error: this should not happen")


_HANG = """
import sys, time
from clusters import cli
from clusters.providers.kind import KindProvider
def names(self):
    try:
        print("there", flush=True)
        for _ in range(300):  # one long sleep may miss a signal that comes just before it
            time.sleep(0.1)
    finally:
        print("cleaned up", flush=True)
KindProvider.names = names
sys.argv = ["clusters", "list"]
cli.main()
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_it_let_it_clean_up(sign: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _HANG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        process.send_signal(sign)
        out, err = process.communicate(timeout=10)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (3, "cleaned up\n", "interrupted\n")


def test_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "clusters", "up", "--topology", "nope"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: no topology 'nope'")
    assert "Traceback" not in done.stderr
