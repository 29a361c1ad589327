"""The kind provider, with a docker command that only pretends; real clusters are the smoke's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters import cache, engine, ledger, parts, topology
from clusters.cluster import Capability, Cluster, ClusterSpec, Mount
from clusters.engine import capabilities
from clusters.errors import ClusterError, CommandError, EngineError, WrongName
from clusters.kube import Object, until_true
from clusters.parallel import in_parallel
from clusters.providers import containers, kind, kindcommand, kindconfig, kindnodes
from clusters.providers.containers import Found, full_reference, images_of
from clusters.providers.kind import KindProvider
from clusters.providers.kindnodes import ready_since
from oracles.errors import UsageError


@dataclass
class Node:
    """A container of a kind cluster."""

    cluster: str
    mounts: str
    state: str = "running"


@dataclass
class Docker:
    """An engine with containers; answers the few commands that the provider uses."""

    nodes: dict[str, Node] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    inside: dict[str, str] = field(default_factory=dict)
    stuck: bool = False
    gone: bool = False
    calls: list[tuple[str, ...]] = field(default_factory=list)
    host: str = "unix:///x"

    def make(self, cluster: str, *, cache_folder: Path | None = None, **more: str) -> None:
        """A cluster of two nodes, made with this cache folder or another one."""
        root = cache_folder or cache.root()
        for suffix in ("control-plane", "worker"):
            self.nodes[f"muster-{cluster}-{suffix}"] = Node(
                f"muster-{cluster}", f"volume,{root}/clusters/{cluster}/shared,/lib/modules", **more
            )

    def docker(self, *args: str, timeout: float = 0.0) -> str:
        self.calls.append(args)
        if args[:3] == ("ps", "-a", "--no-trunc"):
            rows = [f"{n.cluster}\t{n.state}\t{n.mounts}" for n in self.nodes.values()]
            return "\n".join(rows)
        if args[:2] == ("ps", "-aq"):
            label = args[3].rpartition("=")[2]
            return "\n".join(name for name, node in self.nodes.items() if node.cluster == label)
        if args[0] == "rm":
            if self.stuck:
                raise CommandError("docker rm: exit code 1", output="device is busy")
            for name in args[3:]:
                self.nodes.pop(name)
            return ""
        if args[:2] == ("image", "inspect"):
            return "\n".join(self.images[reference] for reference in args[4:])
        if args[:2] == ("ps", "--filter"):
            return "muster-new-worker"
        if "journalctl" in args:
            return "kubelet: too many open files"
        if args[0] == "version":
            if self.gone:
                raise EngineError("does not answer any more")
            return ""
        if args[0] == "exec" and "ls" in args:
            return self.inside["ls"]
        if args[0] == "exec" and "sh" in args:
            return self.inside["manifests"]
        raise AssertionError(args)

    def has_image(self, reference: str) -> bool:
        return reference in self.images

    def env(self) -> dict[str, str]:
        return {}


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> Docker:
    """The engine that answers."""
    found = Docker()
    monkeypatch.setattr(engine, "ensure", lambda: found)
    monkeypatch.setattr(engine, "find", lambda: found)
    return found


def entry(name: str, *, dead: bool = False, **changes: bool) -> None:
    """A cluster in the ledger, of this process or of one that died."""
    written = ledger.write(name, provider="kind", kubernetes="1.34.4", topology="small", run="r")
    if dead:
        written = replace(written, pid_start=written.pid_start - 1)
    ledger._save(replace(written, **changes))


# whose a cluster is


def test_names_are_those_of_this_cache_folder(docker: Docker, tmp_path: Path) -> None:
    docker.make("mine")
    docker.make("theirs", cache_folder=tmp_path / "other")
    docker.nodes["someones-control-plane"] = Node("someones", "")
    entry("written")
    kinds = KindProvider()
    assert kinds.names() == ["mine", "written"]
    assert kinds.nodes() == {"mine": (True, True)}
    assert kinds.strangers() == ["theirs"]
    assert containers.clusters(docker)["theirs"] == Found(False, (True, True))  # type: ignore[arg-type]


def test_names_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find", lambda: None)
    entry("written")
    assert KindProvider().names() == ["written"]
    with pytest.raises(WrongName, match="no cluster named 'written' is up"):
        KindProvider().get("written")


def test_left_over_and_sweep(
    docker: Docker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("alive", "kept", "gone", "half", "lost"):
        docker.make(name)
    docker.make("theirs", cache_folder=tmp_path / "other")
    entry("alive", ready=True)
    entry("kept", dead=True, ready=True, keep=True)
    entry("gone", dead=True, ready=True)
    entry("half", dead=True)
    entry("nothing", dead=True)  # killed before kind made a container
    kinds = KindProvider()
    assert kinds.left_over() == ["gone", "half", "lost", "nothing"]
    kinds.sweep()
    assert kinds.names() == ["alive", "kept"]
    assert {node.cluster for node in docker.nodes.values()} == {
        "muster-alive", "muster-kept", "muster-theirs",
    }  # fmt: skip
    assert not ledger.folder("half").exists()
    assert capsys.readouterr().err.count("its run is gone") == 4


def test_delete(docker: Docker) -> None:
    docker.make("a")
    docker.make("b")
    entry("a")
    KindProvider().delete("a")
    assert KindProvider().names() == ["b"]
    assert docker.calls[-2][:1] == ("ps",)  # it has looked again
    rm = next(call for call in docker.calls if call[0] == "rm")
    assert rm == ("rm", "-f", "-v", "muster-a-control-plane", "muster-a-worker")
    KindProvider().delete("a")  # gone already


def test_containers_that_do_not_go(docker: Docker) -> None:
    docker.make("a")
    entry("a")
    docker.stuck = True
    with pytest.raises(ClusterError, match="cluster a do not go: device is busy"):
        KindProvider().delete("a")
    assert ledger.read("a") is not None  # so that the next try finds it


def test_remove_waits_for_what_a_killed_kind_started(docker: Docker) -> None:
    """kind's own `docker run` goes on when kind is killed; here a shell looks like one."""
    label = f"{containers.LABEL}={containers.PREFIX}slow"
    client = subprocess.Popen(["sh", "-c", "sleep 0.6; :", "run", "--label", label])
    threading.Timer(0.3, lambda: docker.make("slow")).start()
    start = time.monotonic()
    containers.remove(docker, "slow")  # type: ignore[arg-type]
    assert time.monotonic() - start > 0.5
    assert docker.nodes == {}
    assert client.wait() == 0


# creating


@pytest.fixture
def maker(docker: Docker, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A provider whose kind makes containers at once; ``fail`` is raised by the named step."""
    state: dict[str, Any] = {"fail": {}, "steps": []}

    def step(name: str, result: object = None) -> Any:
        def run(*args: Any, **kwargs: Any) -> object:
            state["steps"].append(name)
            if name == "kind":
                assert ledger.read("new") is not None, "it must be written down before it is made"
                docker.make("new")
                (ledger.folder("new") / "kubeconfig").touch()
            if name in state["fail"]:
                raise state["fail"][name]
            return result

        return run

    monkeypatch.setattr(parts, "node_image", step("image", "muster/node:x"))
    monkeypatch.setattr(parts, "base_image", step("base", "muster/base:x"))
    monkeypatch.setattr(parts, "host_binary", step("program", Path("/kind")))
    monkeypatch.setattr(kindcommand, "create", step("kind"))
    monkeypatch.setattr(kindnodes, "connect", step("network"))
    monkeypatch.setattr(kindnodes, "wait_ready", step("nodes"))
    monkeypatch.setattr(kindnodes, "wait_dns", step("dns"))
    monkeypatch.setattr(kindnodes, "heal", step("heal"))
    monkeypatch.setattr(kind.fakegpus, "restore", step("gpus"))
    monkeypatch.setattr(Cluster, "kube", None)
    return state


SPEC = ClusterSpec("new", topology.load("small"), "1.34.4", "run-1")


def test_create(maker: dict[str, Any]) -> None:
    cluster = KindProvider().create(SPEC)
    assert maker["steps"] == [
        "image", "base", "program", "kind", "network", "nodes", "gpus", "dns",
    ]  # fmt: skip
    assert cluster == KindProvider().get("new")
    assert cluster.container_names == {
        name: name for name in ("muster-new-control-plane", "muster-new-worker")
    }
    assert (cluster.context, cluster.topology) == ("kind-muster-new", SPEC.topology)
    assert cluster.shared == ledger.folder("new") / "shared"
    written = ledger.read("new")
    assert written is not None
    assert (written.ready, written.keep, written.run) == (True, False, "run-1")


def test_create_with_device_plugins(maker: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are built before kind is called, and run before the nodes' GPUs are waited for."""
    given: dict[str, int] = {}

    def start(cluster: Cluster, shell: object, gpus: dict[str, int]) -> None:
        maker["steps"].append("plugins")
        given.update(gpus)

    monkeypatch.setattr(parts, "program", lambda name: maker["steps"].append(name))
    monkeypatch.setattr(kindnodes.deviceplugin, "start", start)
    spec = replace(SPEC, topology=SPEC.topology.in_mode("device-plugin"))
    cluster = KindProvider().create(spec)
    assert maker["steps"] == [
        "image", "base", "program", "device-plugin", "kind", "plugins", "network", "nodes", "gpus",
        "dns",
    ]  # fmt: skip
    assert given == {"muster-new-worker": 2}
    assert Capability.DEVICE_PLUGIN in cluster.capabilities
    assert Capability.DEVICE_PLUGIN not in KindProvider.capabilities
    assert KindProvider().get("new") == cluster


@pytest.mark.parametrize("where", ["kind", "network", "nodes", "gpus", "dns"])
@pytest.mark.parametrize("error", [ClusterError("no"), KeyboardInterrupt(), EngineError("gone")])
def test_a_creation_that_fails_leaves_nothing(
    docker: Docker, maker: dict[str, Any], where: str, error: BaseException
) -> None:
    maker["fail"] = {where: error}
    with pytest.raises(type(error)):
        KindProvider().create(SPEC)
    assert docker.nodes == {}
    assert not ledger.folder("new").exists()
    assert cache.held() == {}


def test_the_reason_is_told_even_if_nothing_can_be_removed(
    docker: Docker, maker: dict[str, Any]
) -> None:
    maker["fail"] = {"nodes": ClusterError("the reason")}
    docker.stuck = True
    with pytest.raises(ClusterError, match="the reason"):
        KindProvider().create(SPEC)
    assert KindProvider().names() == ["new"]


def test_a_creation_that_fails_is_kept_when_asked_to(docker: Docker, maker: dict[str, Any]) -> None:
    maker["fail"] = {"nodes": ClusterError("no")}
    with pytest.raises(ClusterError):
        KindProvider().create(replace(SPEC, keep=True))
    written = ledger.read("new")
    assert written is not None
    assert (written.keep, written.ready) == (True, False)
    assert not replace(written, pid_start=0).left_over
    assert len(docker.nodes) == 2


def test_a_name_that_is_taken(docker: Docker, maker: dict[str, Any], tmp_path: Path) -> None:
    docker.make("new")
    with pytest.raises(WrongName, match="'new' is there already") as caught:
        KindProvider().create(SPEC)
    assert caught.value.exit_code == 2
    docker.nodes.clear()
    docker.make("new", cache_folder=tmp_path / "other")
    with pytest.raises(WrongName, match="made with another cache folder"):
        KindProvider().create(SPEC)
    docker.nodes.clear()
    entry("new")
    with pytest.raises(WrongName, match="is there already"):
        KindProvider().create(SPEC)
    assert maker["steps"] == []  # nothing long was begun for it


def test_two_at_once_with_the_same_name(
    docker: Docker, maker: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first and is refused, whatever it had seen before."""
    begun, go = threading.Event(), threading.Event()
    make = kindcommand.create

    def slowly(*args: Any) -> None:
        make(*args)
        begun.set()
        assert go.wait(10)

    monkeypatch.setattr(kindcommand, "create", slowly)
    first = threading.Thread(target=lambda: KindProvider().create(SPEC))
    first.start()
    assert begun.wait(10)
    results: list[BaseException] = []

    def second() -> None:
        try:
            KindProvider().create(SPEC)
        except WrongName as error:
            results.append(error)

    # it looks before the first has a container, and waits at the lock
    monkeypatch.setattr(kind, "_refuse_taken", _once_blind(kind._refuse_taken))
    other = threading.Thread(target=second)
    other.start()
    go.set()
    first.join(10)
    other.join(10)
    assert len(results) == 1
    assert maker["steps"].count("kind") == 1


def _once_blind(check: Any) -> Any:
    looks: list[int] = []

    def look(*args: Any) -> None:
        looks.append(1)
        if len(looks) > 1:
            check(*args)

    return look


def test_a_cluster_that_was_not_completed(docker: Docker) -> None:
    docker.make("half")
    with pytest.raises(ClusterError, match=r"(?s)was not completed.*down half"):
        KindProvider().get("half")
    entry("half")
    (ledger.folder("half") / "kubeconfig").touch()
    (ledger.folder("half") / "topology.yaml").write_text("nodes: 3")
    with pytest.raises(ClusterError, match="has a damaged folder"):
        KindProvider().get("half")


# images


@pytest.mark.parametrize(
    ("reference", "full"),
    [
        ("tiny", "docker.io/library/tiny:latest"),
        ("tiny:1.0", "docker.io/library/tiny:1.0"),
        ("muster/base:1", "docker.io/muster/base:1"),
        ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
        ("localhost:5000/x", "localhost:5000/x:latest"),
        ("localhost/x:1", "localhost/x:1"),
        ("a.b/c@sha256:00", "a.b/c@sha256:00"),
    ],
)
def test_full_references(reference: str, full: str) -> None:
    assert full_reference(reference) == full


_LISTED = """REF TYPE DIGEST SIZE PLATFORMS LABELS
docker.io/library/tiny:1 application/vnd sha256:m1 1.0 MiB linux/amd64 a=b
docker.io/library/stale:1 application/vnd sha256:m2 1.0 MiB linux/amd64 -
"""
_MANIFESTS = '{"config": {"digest": "sha256:c1"}}\n{"config": {"digest": "sha256:c2"}}\n'


def test_images_of_a_node(docker: Docker) -> None:
    docker.inside = {"ls": _LISTED, "manifests": _MANIFESTS}
    there = images_of(docker, "n", ["tiny:1", "stale:1", "none:1"])  # type: ignore[arg-type]
    assert there == {"tiny:1": "sha256:c1", "stale:1": "sha256:c2"}
    assert docker.calls[-1][-2:] == ("sha256:m1", "sha256:m2")
    docker.inside = {"ls": "REF TYPE DIGEST\n"}
    assert images_of(docker, "n", ["tiny:1"]) == {}  # type: ignore[arg-type]
    docker.inside = {"ls": _LISTED, "manifests": "\n\n"}  # an index of platforms, say
    found = images_of(docker, "n", ["tiny:1", "stale:1"])  # type: ignore[arg-type]
    assert set(found.values()) == {""}


def cluster() -> Cluster:
    names = {"n1": "n1", "n2": "n2"}
    return Cluster(
        "c", "kind", "1", SPEC.topology, Path("/k"), "c", "r", frozenset(), container_names=names
    )


def test_only_what_is_missing_or_stale_is_loaded(
    docker: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker.images = {"tiny:1": "sha256:c1", "stale:1": "sha256:new", "none:1": "sha256:c3"}
    loaded: list[tuple[str, ...]] = []
    imported: list[str] = []
    answer = docker.docker

    def answering(*args: str, timeout: float = 0.0) -> str:
        if args[0] == "save":
            loaded.append(args[3:])
            return ""
        if args[:2] == ("exec", "n2") and "ls" in args:
            return _LISTED.replace("stale", "other")
        if args[:2] == ("exec", "n2"):
            return _MANIFESTS.splitlines()[0] + "\n"
        return answer(*args, timeout=timeout)

    monkeypatch.setattr(docker, "docker", answering)
    monkeypatch.setattr(kind, "run", lambda args, **_: imported.append(args[3]))
    docker.inside = {"ls": _LISTED, "manifests": _MANIFESTS.splitlines()[0] + "\n"}
    KindProvider().load_image(cluster(), ["tiny:1"])
    assert (loaded, imported) == ([], [])
    docker.inside = {"ls": _LISTED, "manifests": _MANIFESTS.splitlines()[1] + "\n"}
    KindProvider().load_image(cluster(), ["stale:1"])  # n1 has another image of that name
    assert loaded == [("stale:1",)]
    assert sorted(imported) == ["n1", "n2"]


def test_an_image_that_is_not_there(docker: Docker) -> None:
    with pytest.raises(ClusterError, match=r"nope:1 is not in the Docker engine(?s:.)*docker pull"):
        KindProvider().load_image(cluster(), ["nope:1"])


def test_a_node_that_is_not_there(docker: Docker) -> None:
    with pytest.raises(ClusterError, match=r"c has no node 'n3'(?s:.)*n1, n2"):
        KindProvider().stop_node(cluster(), "n3")


# configuration


def test_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "lacking", list)
    spec = replace(SPEC, topology=topology.load("thread"), mounts=(Mount(Path("/h"), "/n"),))
    config = kindconfig.render(spec, "muster/node:x", Path("/shared"))
    assert config["networking"] == {
        "ipFamily": "ipv4", "disableDefaultCNI": True, "apiServerAddress": "127.0.0.1",
    }  # fmt: skip
    plane, worker, second = config["nodes"]
    assert [n["role"] for n in config["nodes"]] == ["control-plane", "worker", "worker"]
    for node in config["nodes"]:
        assert node["image"] == "muster/node:x"
        assert node["extraMounts"] == [
            {"hostPath": "/shared", "containerPath": "/shared", "readOnly": False},
            {"hostPath": "/h", "containerPath": "/n", "readOnly": True},
        ]
    patches = [yaml.safe_load(text) for text in plane["kubeadmConfigPatches"]]
    # whichever of the two kubeadm reads, the taint is there, and replaces kubeadm's own
    assert [p["kind"] for p in patches] == ["InitConfiguration", "JoinConfiguration"]
    assert patches[0]["nodeRegistration"]["taints"] == [
        {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
    ]
    assert worker == second
    assert worker["labels"]["gpu"] == "yes"
    assert "kubeadmConfigPatches" not in worker
    assert "featureGates" not in config


def test_configuration_of_a_host_that_lacks_a_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "lacking", lambda: ["CAP_SYS_RESOURCE"])
    config = kindconfig.render(SPEC, "x", Path("/shared"))
    assert config["featureGates"] == {"KubeletInUserNamespace": True}


@pytest.mark.parametrize("mode", ["patched", "device-plugin"])
def test_a_kubelet_with_a_device_plugin_tells_soon_what_it_has(mode: str) -> None:
    config = kindconfig.render(
        replace(SPEC, topology=SPEC.topology.in_mode(mode)), "x", Path("/shared")
    )
    (kubelet,) = [
        item for text in config["kubeadmConfigPatches"]
        if (item := yaml.safe_load(text))["kind"] == "KubeletConfiguration"
    ]  # fmt: skip
    told = {key: value for key, value in kubelet.items() if key.startswith("nodeStatus")}
    assert told == (
        {}
        if mode == "patched"
        else {"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "5m"}
    )


@pytest.mark.parametrize(
    ("version", "arguments"),
    [
        ("1.34.4", {"leader-elect": "false"}),
        ("1.36.3", [{"name": "leader-elect", "value": "false"}]),
    ],
)
def test_arguments_in_the_form_that_the_version_takes(version: str, arguments: object) -> None:
    config = kindconfig.render(replace(SPEC, kubernetes=version), "x", Path("/shared"))
    (patch,) = [
        item for text in config["kubeadmConfigPatches"]
        if (item := yaml.safe_load(text))["kind"] == "ClusterConfiguration"
    ]  # fmt: skip
    assert patch["scheduler"]["extraArgs"] == arguments
    assert patch["etcd"]["local"]["extraArgs"]


def test_what_is_written_for_kind(docker: Docker) -> None:
    entry("new")
    folder = kindconfig.write(SPEC, "muster/node:x")
    assert topology.load(str(folder / "topology.yaml")) == SPEC.topology
    assert (
        yaml.safe_load((folder / "kind.yaml").read_text())["nodes"][0]["image"] == "muster/node:x"
    )
    assert (folder / "shared").is_dir()


# kind's command


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A kind that prints and fails."""
    path = tmp_path / "kind"
    path.write_text(
        '#!/bin/sh\necho " ✗ Preparing nodes"\n'
        'echo "ERROR: failed to create cluster: command \\"docker run\\" failed"\n'
        'echo "Bind for 127.0.0.1:6443 failed: port is already allocated."; exit 1\n'
    )
    path.chmod(0o755)
    return path


def test_kinds_reason_is_told_and_its_log_is_kept(docker: Docker, program: Path) -> None:
    entry("new")
    folder = ledger.folder("new")
    with pytest.raises(ClusterError) as caught:
        kindcommand.create(docker, program, "new", folder, lambda _: None)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "kind could not create cluster new: failed to create cluster" in text
    assert "port is already allocated" in text
    assert caught.value.exit_code == 3
    ledger.forget("new")
    kept = cache.root() / "logs" / "kind-create-new.log"
    assert str(kept) in text
    assert "Preparing nodes" in kept.read_text()
    assert "==> kubelet of muster-new-worker\nkubelet: too many open files" in kept.read_text()


def test_an_engine_that_died_under_kind_is_the_reason(docker: Docker, program: Path) -> None:
    entry("new")
    docker.gone = True
    with pytest.raises(EngineError, match="does not answer any more"):
        kindcommand.create(docker, program, "new", ledger.folder("new"), lambda _: None)  # type: ignore[arg-type]


_LONG = "".join(f"line {number}\n" for number in range(9))


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("noise\nERROR: a\nERROR: b\n\nb's output\n", "b\n  | b's output"),
        ('ERROR: no: command "docker run -a "b c" x" failed: 125\nOutput: taken\n',
         'no: "docker run ..." failed\n  | Output: taken'),
        (f"ERROR: kubeadm\n{_LONG}", "kubeadm\n  | ...\n  | line 6\n  | line 7\n  | line 8"),
        (f"ERROR: {'x' * 999}", "x" * 293),
        ("", "kind: no end after 300 s"),
        ("just noise", "kind: no end after 300 s"),
    ],
)  # fmt: skip
def test_reasons(output: str, told: str) -> None:
    error = CommandError("kind: no end after 300 s", output="the end of the log")
    assert kindcommand.reason(output, error) == told


# small things


def test_in_parallel() -> None:
    barrier = threading.Barrier(3, timeout=5)

    def together(number: int) -> int:
        barrier.wait()
        return number * 2

    assert in_parallel(together, [1, 2, 3]) == [2, 4, 6]
    assert in_parallel(together, []) == []
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda number: 1 // number, [1, 0])


def heartbeat(name: str, time: str, status: str = "True") -> Object:
    condition = {"type": "Ready", "status": status, "lastHeartbeatTime": time}
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


def testready_since() -> None:
    old, new = "1970-01-01T00:00:09Z", "1970-01-01T00:00:10Z"
    assert ready_since("n", 10.0, [heartbeat("n", new)]) is True
    assert ready_since("n", 10.0, [heartbeat("n", old)]) is None
    assert ready_since("n", 10.0, [heartbeat("other", new), heartbeat("n", old)]) is None
    assert ready_since("n", 10.0, [heartbeat("n", new, "Unknown")]) is None
    assert ready_since("n", 10.0, []) is None


# nodes that were restarted by others


@pytest.fixture
def healing(docker: Docker, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A cluster in the ledger with two nodes, ``since`` when they run, and what was done."""
    entry("c")
    state: dict[str, Any] = {"since": {"n1": 100.0, "n2": 200.0}, "done": []}
    monkeypatch.setattr(containers, "started", lambda *_: state["since"])
    monkeypatch.setattr(Cluster, "kube", type("Kube", (), {"ready": lambda: True}))
    for name in ("connect", "wait_ready", "wait_dns"):
        monkeypatch.setattr(kindnodes, name, lambda *_, it=name: state["done"].append(it))
    monkeypatch.setattr(kindnodes.fakegpus, "restore", lambda *_: state["done"].append("gpus"))
    return state


@pytest.mark.parametrize(
    ("connected", "healed"), [("200.5", False), ("150.0", True), (None, True), ("rubbish", True)]
)
def test_nodes_restarted_by_others_are_made_whole(
    docker: Docker, healing: dict[str, Any], connected: str | None, healed: bool
) -> None:
    if connected is not None:
        (ledger.folder("c") / kindnodes.CONNECTED).write_text(connected)
    kindnodes.heal(docker, cluster())  # type: ignore[arg-type]
    assert healing["done"] == (["connect", "wait_ready", "gpus", "wait_dns"] if healed else [])


def test_nodes_that_are_stopped_are_told(docker: Docker, healing: dict[str, Any]) -> None:
    healing["since"]["n2"] = None
    with pytest.raises(ClusterError, match=r"cluster c are stopped: n2(?s:.)*docker start n2"):
        kindnodes.heal(docker, cluster())  # type: ignore[arg-type]


def test_since_when_containers_run(docker: Docker, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        {"Name": "/n1", "State": {"Running": True, "StartedAt": "1970-01-01T00:00:09.123456789Z"}},
        {"Name": "/n2", "State": {"Running": True, "StartedAt": "1970-01-01T00:00:09Z"}},
        {"Name": "/n3", "State": {"Running": False, "StartedAt": "1970-01-01T00:00:09Z"}},
    ]
    monkeypatch.setattr(docker, "docker", lambda *_: json.dumps(items))
    found = containers.started(docker, ["n1", "n2", "n3"])  # type: ignore[arg-type]
    assert found == {"n1": 9.123456, "n2": 9.0, "n3": None}


def test_the_next_second_has_begun() -> None:
    before = time.time()
    second = kindnodes.next_second()
    assert second == int(second)
    assert before <= second <= time.time()


def test_addresses(docker: Docker, monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"Name": "/n", "NetworkSettings": {"Networks": {"kind": {"IPAddress": "172.18.0.9"}}}}
    monkeypatch.setattr(docker, "docker", lambda *_: json.dumps([item]))
    assert containers.addresses(docker, ["n"]) == {"n": "172.18.0.9"}  # type: ignore[arg-type]


# a killed process


_UP = """
import sys
from pathlib import Path
from clusters import engine, ledger, parts, topology
from clusters.cluster import ClusterSpec
from clusters.providers.kind import KindProvider

class Docker:
    def docker(self, *args, timeout=0):
        return ""
    def env(self):
        return {}

engine.ensure = engine.find = lambda: Docker()
parts.node_image = parts.base_image = lambda *_: "x"
parts.host_binary = lambda _: Path(sys.argv[1])
KindProvider().create(ClusterSpec("new", topology.load("small"), "1.34.4", "r"))
"""


@pytest.fixture
def slow_kind(tmp_path: Path) -> Path:
    """A kind that takes its time, and says who it is."""
    path = tmp_path / "slow-kind"
    path.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/kind.pid\nexec sleep 60\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def creating(tmp_path: Path, slow_kind: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process in the middle of a creation."""
    process = subprocess.Popen([sys.executable, "-c", _UP, str(slow_kind)], stderr=subprocess.PIPE)
    try:
        until_true((tmp_path / "kind.pid").exists, deadline=20, why="kind at work", every=0.05)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_killed_creation_is_left_over_and_its_kind_is_gone(
    creating: subprocess.Popen[bytes], docker: Docker, tmp_path: Path
) -> None:
    assert KindProvider().left_over() == []
    assert list(cache.held()) == ["cluster-new"]
    creating.kill()
    creating.wait()
    pid = int((tmp_path / "kind.pid").read_text())
    until_true(lambda: not os.path.exists(f"/proc/{pid}"), deadline=5, why="kind's end", every=0.02)
    assert KindProvider().left_over() == ["new"]
    assert cache.held() == {}
    KindProvider().sweep()
    assert KindProvider().names() == []


def test_a_name_is_not_a_path(docker: Docker) -> None:
    with pytest.raises(UsageError):
        replace(SPEC, name="../../etc")
