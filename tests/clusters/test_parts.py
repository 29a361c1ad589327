"""Where parts come from, with an engine that only pretends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clusters import engine, parts, progress
from clusters.engine import probe
from clusters.errors import CommandError, EngineError, PartError, UnknownVersion
from clusters.parts import gobuild, images, nodeimage, pins, plan, rootfs

BUILT = "muster/it:1-abc"
PUBLISHED = "registry/it:1"


@dataclass
class Engine:
    """An engine that has some images, and a registry that serves some."""

    images: set[str] = field(default_factory=set)
    registry: set[str] = field(default_factory=set)
    trouble: Exception | None = None
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def has_image(self, reference: str) -> bool:
        return reference in self.images

    def docker(self, *args: str, timeout: float = 0.0) -> str:
        self.asked.append(args)
        if args[0] == "images":
            return "\n".join(sorted(i for i in self.images if i.startswith("muster/")))
        if args[0] == "rmi":
            self.images.discard(args[1])
            return ""
        assert args[:2] == ("pull", "-q")
        if self.trouble is not None:
            raise self.trouble
        if args[2] not in self.registry:
            raise CommandError("docker pull: exit code 1", output="manifest unknown")
        self.images.add(args[2])
        return ""


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The engine that answers; it has nothing."""
    found = Engine()
    monkeypatch.setattr(engine, "ensure", lambda: found)
    monkeypatch.setattr(engine, "find", lambda: found)
    return found


@pytest.fixture
def obtain(docker: Engine) -> Callable[..., str]:
    """Obtains the part; ``obtain.steps`` says what was done for it."""
    steps: list[str] = []

    def build(_: object, detail: Callable[[str], None]) -> str:
        steps.append("build")
        docker.images.add(BUILT)
        return BUILT

    def call(published: str | None = PUBLISHED) -> str:
        prepare = lambda: steps.append("prepare")  # noqa: E731
        return parts._obtain("it", BUILT, published, prepare, build)  # type: ignore[arg-type]

    call.steps = steps  # type: ignore[attr-defined]
    return call


@pytest.mark.parametrize(
    ("source", "images", "registry", "reference", "steps", "pulls"),
    [
        ("auto", {BUILT, PUBLISHED}, set(), BUILT, [], 0),
        ("auto", {PUBLISHED}, set(), PUBLISHED, [], 0),
        ("auto", set(), {PUBLISHED}, PUBLISHED, [], 1),
        ("auto", set(), set(), BUILT, ["prepare", "build"], 1),
        ("build", {BUILT}, set(), BUILT, [], 0),
        ("build", {PUBLISHED}, {PUBLISHED}, BUILT, ["prepare", "build"], 0),
        ("pull", {BUILT, PUBLISHED}, set(), PUBLISHED, [], 0),
        ("pull", {BUILT}, {PUBLISHED}, PUBLISHED, [], 1),
    ],
)
def test_sources(
    docker: Engine, obtain: Callable[..., str], monkeypatch: pytest.MonkeyPatch,
    source: str, images: set[str], registry: set[str],
    reference: str, steps: list[str], pulls: int,
) -> None:  # fmt: skip
    monkeypatch.setenv("PARTS", source)
    docker.images, docker.registry = set(images), registry
    assert obtain() == reference
    assert obtain.steps == steps  # type: ignore[attr-defined]
    assert len(docker.asked) == pulls
    assert obtain() == reference  # and nothing more is done for it
    assert obtain.steps == steps  # type: ignore[attr-defined]


def test_pull_builds_nothing(
    docker: Engine, obtain: Callable[..., str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("PARTS", "pull")
    docker.images = {BUILT}
    with pytest.raises(PartError, match=r"registry/it:1 is not in.*cannot be pulled") as caught:
        obtain()
    assert caught.value.hint is not None
    assert "docker load" in caught.value.hint
    assert "manifest unknown" in capsys.readouterr().err
    with pytest.raises(PartError, match="published nowhere"):
        obtain(None)
    assert obtain.steps == []  # type: ignore[attr-defined]


def test_auto_without_anything_published(docker: Engine, obtain: Callable[..., str]) -> None:
    assert obtain(None) == BUILT
    assert docker.asked == []


def test_an_engine_that_goes_away_is_not_taken_for_a_missing_image(
    docker: Engine, obtain: Callable[..., str]
) -> None:
    docker.trouble = EngineError("gone")
    with pytest.raises(EngineError, match="gone"):
        obtain()


def test_a_build_that_fails_is_told(docker: Engine) -> None:
    def fail(*_: object) -> str:
        raise PartError("no")

    with pytest.raises(PartError, match="no"):
        parts._obtain("it", BUILT, None, lambda: None, fail)
    assert progress.last_time("build it") is None


@pytest.mark.parametrize(("word", "source"), [("", "auto"), ("PULL", "pull"), ("build", "build")])
def test_words(monkeypatch: pytest.MonkeyPatch, word: str, source: str) -> None:
    monkeypatch.setenv("PARTS", word)
    assert parts.source() == source


def test_a_word_that_is_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTS", "steal")
    with pytest.raises(UnknownVersion, match=r"(?s)'steal' is not a source.*auto, pull, build"):
        parts.source()


# references


def test_references_carry_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    node, base = nodeimage.reference("1.34.4"), images.base_reference()
    assert node.startswith("muster/node:v1.34.4-")
    assert nodeimage.reference("1.28.9").rpartition("-")[2] != node.rpartition("-")[2]
    monkeypatch.setitem(rootfs.PACKAGES, "base", (*rootfs.PACKAGES["base"], "jq"))
    assert images.base_reference() != base
    assert nodeimage.reference("1.34.4") != node  # it carries the base image inside
    before = nodeimage.reference("1.34.4")
    monkeypatch.setattr(nodeimage, "RECIPE", nodeimage.RECIPE + 1)
    assert nodeimage.reference("1.34.4") != before


def test_what_is_asked_for_by_name(docker: Engine) -> None:
    controller = images.program_reference("scheduler-plugins", "controller", "0.28.9")
    scheduler = images.program_reference("scheduler-plugins", "kube-scheduler", "0.28.9")
    node, base = nodeimage.reference("1.28.9"), images.base_reference()
    docker.images = {controller, scheduler, node, base}
    assert parts.image("scheduler-plugins", None, "controller") == controller
    assert parts.image("scheduler-plugins", "0.28.9", "kube-scheduler") == scheduler
    assert parts.node_image("1.28.9") == node
    assert parts.base_image() == base
    with pytest.raises(UnknownVersion):
        parts.node_image("1.2.3")
    with pytest.raises(UnknownVersion):
        parts.image("training-operator", "0.1")


def test_published_images_stand_for_the_parts(
    docker: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTS", "pull")
    at = pins.pins().programs["training-operator"].versions["1.8.1"]
    operator = at.pull["training-operator"]
    docker.images = {"kindest/node:v1.34.4", pins.pins().base.pull, operator}
    assert parts.node_image("1.34.4") == "kindest/node:v1.34.4"
    assert parts.base_image() == pins.pins().base.pull
    assert parts.image("training-operator") == operator


def test_prune_removes_what_no_pin_asks_for(docker: Engine) -> None:
    wanted = {nodeimage.reference("1.34.4"), images.base_reference(), probe.IMAGE}
    old, given = "muster/node:v1.34.4-old", "muster/own:1"
    docker.images = {*wanted, old, given, "somebody/else:1"}
    assert parts.prune(keep=[given]) == [old]
    assert docker.images == {*wanted, given, "somebody/else:1"}


# programs of the host


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH; nothing is in it."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_host_binary_built_before_wins(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTS", "pull")
    program(tools, "kind")
    built = program(gobuild.folder(pins.program("kind")), "kind")
    assert parts.host_binary("kind") == built


def test_host_binary_of_path(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = program(tools, "kind")
    monkeypatch.setattr(gobuild, "has_go", lambda: True)
    assert parts.found_binary("kind") is None  # auto, and it can be built: the pinned one
    monkeypatch.setattr(gobuild, "build", lambda it: Path("/built") / it.version)
    assert parts.host_binary("kind") == Path("/built") / pins.program("kind").version / "kind"
    monkeypatch.setenv("PARTS", "pull")
    assert parts.host_binary("kind") == kind
    monkeypatch.setenv("PARTS", "auto")
    monkeypatch.setattr(gobuild, "has_go", lambda: False)
    assert parts.host_binary("kind") == kind


def test_host_binary_that_cannot_be_had(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTS", "pull")
    with pytest.raises(PartError, match=r"(?s)kind is not on PATH.*install kind 0\.33"):
        parts.host_binary("kind")
    assert parts.found_binary("kubectl") is None


# what is cold


def steps(*args: list[str]) -> list[str]:
    return [cold.step for cold in plan.cold(*args)]


def test_everything_is_cold_at_first(docker: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    found = plan.announce(["1.34.4"], ["training-operator"])
    assert [cold.step for cold in found] == [
        "build kind 0.33.0", "build etcd 3.6.16", "build coredns 1.14.7",
        "build cni-plugins 1.10.0", "build kubernetes 1.34.4", "build root file system base",
        "build root file system node", "build node image 1.34.4", "build image base",
        "build training-operator 1.8.1", "build image training-operator 1.8.1 training-operator",
    ]  # fmt: skip
    said = capsys.readouterr().err
    minutes = round(sum(cold.seconds for cold in found) / 60)
    assert f"about {minutes} min on" in said
    assert "build kubernetes 1.34.4: " in said


def test_nothing_is_said_when_all_is_there(
    docker: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    program(gobuild.folder(pins.program("kind")), "kind")
    docker.images = {nodeimage.reference("1.34.4"), images.base_reference()}
    assert plan.announce(["1.34.4"]) == []
    assert capsys.readouterr().err == ""


def test_published_images_are_as_good(docker: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    program(gobuild.folder(pins.program("kind")), "kind")
    docker.images = {"kindest/node:v1.34.4", pins.pins().base.pull}
    assert steps(["1.34.4"]) == []
    monkeypatch.setenv("PARTS", "build")
    assert "build node image 1.34.4" in steps(["1.34.4"])
    monkeypatch.setenv("PARTS", "pull")
    docker.images = set()
    assert steps(["1.34.4"]) == []


def test_what_is_cached_does_not_count(docker: Engine) -> None:
    for folder in (rootfs.folder("base"), gobuild.folder(pins.kubernetes_program("1.34.4"))):
        folder.mkdir(parents=True)
    found = steps(["1.34.4"])
    assert "build kubernetes 1.34.4" not in found
    assert "build root file system base" not in found
    assert "build root file system node" in found


def test_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find", lambda: None)
    assert steps(["1.34.4"])[0] == "get the Docker engine"


def test_last_time_is_the_better_estimate(docker: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan.os, "cpu_count", lambda: 2)

    def seconds() -> float:
        return next(c.seconds for c in plan.cold(["1.28.9"]) if c.step == "build kubernetes 1.28.9")

    assert seconds() == plan.MEASURED["build kubernetes"]
    monkeypatch.setattr(plan.os, "cpu_count", lambda: 4)
    assert seconds() == plan.MEASURED["build kubernetes"] / 2
    progress._remember("build kubernetes 1.28.9", 123.0)
    assert seconds() == 123.0


def test_every_step_has_an_estimate(docker: Engine) -> None:
    known = pins.pins()
    with_nodes = [version for version, pin in known.kubernetes.versions.items() if pin.tags]
    steps = plan.cold(with_nodes, list(known.programs))
    steps += plan.cold_processes(list(known.kubernetes.versions), list(known.programs))
    for cold in steps:
        assert any(cold.step.startswith(name) for name in plan.MEASURED), cold.step
