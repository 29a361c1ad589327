"""The embedded provider's parts that need no process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters import fakegpus, fakepods, ledger
from clusters.cluster import Capability, Cluster, ClusterSpec
from clusters.errors import ClusterError, WrongName
from clusters.kube import Kube
from clusters.local import LocalProcess, LocalProcesses
from clusters.providers.embedded import EmbeddedProvider, controlplane, nodes, stages
from clusters.providers.embedded.controlplane import ControlPlane, pace
from clusters.topology import GPU, load
from oracles.errors import NotApplicable, UsageError
from tests.clusters.api_server import Answer, refused, serving

EMBEDDED = EmbeddedProvider()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of these tests is seen by anybody."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


# stages


def test_each_stage_stands_for_itself() -> None:
    options, *found = yaml.safe_load_all(stages.config(7))
    assert options["options"]["podPlayStageParallelism"] == 7
    assert "&" not in stages.config(7).replace("&&", "")
    names = [stage["metadata"]["name"] for stage in found]
    assert len(set(names)) == len(names)
    assert {"node-ready", "pod-run", "pod-time-over", "pod-delete"} <= set(names)
    for stage in found:
        spec = stage["spec"]
        assert spec["resourceRef"]["kind"] in ("Node", "Pod")
        assert spec["selector"]["matchExpressions"]
        (step,) = spec["steps"]
        assert step == {"delete": True} or step["patch"]["subresource"] == "status"


def test_the_stages_know_every_annotation() -> None:
    text = stages.FILE.read_text()
    words = [value for name, value in vars(fakepods).items() if name.isupper()]
    told = [word for word in words if isinstance(word, str) and word.startswith("muster.dev/")]
    assert len(told) == 7
    for word in told:
        assert f'"{word}"' in text, word


@pytest.mark.parametrize(
    "answer",
    [
        refused(404, "there is none"),
        lambda request: request.json({"status": {"phase": "Pending"}}),
        lambda request: request.json(
            {"status": {"containerStatuses": [{"restartCount": 0, "state": {"waiting": {}}}]}}
        ),
    ],
)
def test_what_does_not_run_cannot_end(tmp_path: Path, answer: Answer) -> None:
    with serving(tmp_path) as server:
        server.script = [answer]
        with pytest.raises(ClusterError, match="does not run"):
            fakepods.finish(server.kube, "space", "pod")


def test_the_run_that_is_to_end_is_named(tmp_path: Path) -> None:
    running = {"containerStatuses": [{"restartCount": 2, "state": {"running": {}}}]}
    with serving(tmp_path) as server:
        server.script = [lambda request: request.json({"status": running})]
        fakepods.finish(server.kube, "space", "pod", 3)
        read, patch = server.requests
    assert (read.method, patch.method) == ("GET", "PATCH")
    notes = patch.body["metadata"]["annotations"]
    assert notes == {fakepods.FINISH: "3", fakepods.FINISH_RUN: "2"}


# nodes


def test_nodes_carry_what_the_topology_says() -> None:
    layout = load("thread")
    named = fakegpus.node_names("muster-x", layout)
    made = [
        nodes.node_object(name, node, number, "1.34.4")
        for number, (name, node) in enumerate(named.items())
    ]
    assert fakegpus.missing(made, named) == []
    plane, worker, other = made
    assert plane["spec"]["taints"] == [
        {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
    ]
    assert nodes.PLANE in plane["metadata"]["labels"]
    assert worker["status"]["allocatable"][GPU] == "4"
    assert worker["spec"]["taints"] == []
    addresses = [item["status"]["addresses"][0]["address"] for item in made]
    assert len(set(addresses)) == 3
    assert all(item["metadata"]["labels"][stages.KUBELET] == stages.ON for item in (worker, other))


def test_a_control_plane_is_tainted_as_kubeadm_does() -> None:
    (name, node), *_ = fakegpus.node_names("muster-x", load("gpu-2x4")).items()
    item = nodes.node_object(name, node, 0, "1.34.4")
    assert item["spec"]["taints"] == [{"key": nodes.PLANE, "effect": "NoSchedule"}]


def test_a_thousand_nodes_have_a_thousand_addresses() -> None:
    named = fakegpus.node_names("m", load("scale-1000"))
    made = [nodes.node_object(n, node, i, "1.34.4") for i, (n, node) in enumerate(named.items())]
    assert len({item["status"]["addresses"][0]["address"] for item in made}) == 1001


def test_many_nodes_beat_seldom() -> None:
    assert pace(3).grace < 20
    assert 1001 / (pace(1001).lease / 4) < 20, "writes a second"
    for each in (pace(3), pace(1001)):
        assert each.lease < each.grace, "a node that beats in time is never taken for lost"


# the control plane


def test_gang_scheduling_is_switched_on_where_it_is_an_alpha(tmp_path: Path) -> None:
    flags, apis = ControlPlane(tmp_path, "1.36.3", "c", 3)._gates()
    assert flags == ["--feature-gates=GenericWorkload=true,GangScheduling=true"]
    assert apis == "scheduling.k8s.io/v1alpha2=true"
    assert ControlPlane(tmp_path, "1.34.4", "c", 3)._gates() == ([], "")


def test_everything_listens_on_this_host_only_on_ports_of_its_own() -> None:
    folder = ledger.folder("x")
    folder.mkdir(parents=True)
    plane = ControlPlane(folder, "1.34.4", "muster-x", 3)
    paths = {name: folder / name for name in ("b", "certs", "config")}
    made = [
        plane._etcd(paths["b"], 1, 2),
        plane._api_server(paths["b"], paths["certs"], 1, 3),
        plane._controllers(paths["b"], paths["certs"], paths["config"], 4),
        plane._scheduler(paths["b"], paths["config"], 5),
        plane._kwok(paths["b"], paths["config"], 6),
    ]
    assert [p.name for p in made] == [name for line in controlplane.ORDER for name in line]
    for process in made:
        text = " ".join(process.argv)
        assert "0.0.0.0" not in text
        assert "127.0.0.1" in text
        assert process.ready is not None
        assert "127.0.0.1" in process.ready


# the provider


def test_what_it_cannot() -> None:
    cluster = Cluster(
        "x", "embedded", "1.34.4", load("small"), Path("/k"), "c", "r", EMBEDDED.capabilities
    )
    for needed in (Capability.CONTAINERS, Capability.NODE_EXEC, Capability.HOST_FOLDERS):
        with pytest.raises(NotApplicable, match=r"^provider embedded cannot"):
            cluster.require(needed)
    cluster.require(Capability.OWN_CLUSTER, Capability.NODE_POWER)
    with pytest.raises(NotApplicable, match="load an image"):
        EMBEDDED.load_image(cluster, ["x"])
    with pytest.raises(NotApplicable, match="run commands on a node"):
        EMBEDDED.restart_kubelet(cluster, "n")


def test_only_its_own_are_listed_and_only_the_dead_are_left_over() -> None:
    ledger.write("kinds", provider="kind", kubernetes="1", topology="t", run="r")
    ledger.write("mine", provider="embedded", kubernetes="1", topology="t", run="r")
    dead = ledger.write("dead", provider="embedded", kubernetes="1", topology="t", run="r")
    ledger._save(type(dead)(**{**dead.__dict__, "pid_start": 1}))
    assert EMBEDDED.names() == ["dead", "mine"]
    assert EMBEDDED.left_over() == ["dead"]


def test_deleting_ends_every_process() -> None:
    ledger.write("mine", provider="embedded", kubernetes="1", topology="t", run="r")
    processes = LocalProcesses(ledger.folder("mine"))
    processes.start(LocalProcess("a", ("/bin/sleep", "600")))
    processes.start(LocalProcess("b", ("/bin/sh", "-c", "setsid sleep 601 & sleep 602")))
    state = processes.state("a")
    EMBEDDED.delete("mine")
    assert state is not None
    assert EMBEDDED.names() == []
    assert not ledger.folder("mine").exists()
    EMBEDDED.delete("mine")  # once more is no error


def test_a_name_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.write("taken", provider="kind", kubernetes="1", topology="t", run="r")
    with pytest.raises(WrongName, match="is there already"):
        EMBEDDED.create(ClusterSpec("taken", load("small"), "1.34.4", "r"))


def test_without_a_kubelet_there_is_no_device_plugin() -> None:
    spec = ClusterSpec("x", load("small").in_mode("device-plugin"), "1.34.4", "r")
    with pytest.raises(UsageError, match="embedded has no GPUs of mode device-plugin"):
        EMBEDDED.create(spec)
    assert ledger.read("x") is None


def test_a_half_made_one_cannot_be_used() -> None:
    ledger.write("half", provider="embedded", kubernetes="1", topology="t", run="r")
    with pytest.raises(ClusterError, match="was not completed"):
        EMBEDDED.get("half")
    with pytest.raises(WrongName, match="no cluster named 'nope'"):
        EMBEDDED.get("nope")


def test_a_kubeconfig_needs_no_other_file(tmp_path: Path) -> None:
    from clusters.providers.embedded import access

    for name in ("ca.crt", "admin.crt", "admin.key"):
        (tmp_path / name).write_text(name)
    path = tmp_path / "kubeconfig"
    access.write_kubeconfig(path, "muster-x", "https://127.0.0.1:1", tmp_path, "admin")
    assert path.stat().st_mode & 0o077 == 0
    data = yaml.safe_load(path.read_text())
    assert data["current-context"] == "muster-x"
    assert "certificate-authority" not in data["clusters"][0]["cluster"]
    with pytest.raises(ClusterError):  # no certificate that anybody would take
        Kube(path, "other")


def test_all_nodes_are_waited_for_whatever_their_order() -> None:
    """Those that others were waited for may get lost again meanwhile."""
    named = fakegpus.node_names("m", load("thread"))
    made = [nodes.node_object(n, node, i, "1.34.4") for i, (n, node) in enumerate(named.items())]
    for item in made:
        item["spec"]["taints"] = []
    seen: list[bool | None] = []

    class Watch:
        def wait(self, _what: object, until: Any, **_: object) -> None:
            def lost(*numbers: int) -> list[dict[str, Any]]:
                bad = [{"key": nodes.NOT_READY, "effect": "NoSchedule"}]
                return [
                    {**item, "spec": {"taints": bad if number in numbers else []}}
                    for number, item in enumerate(made)
                ]

            states = [made[:2], lost(0, 1, 2), lost(1, 2), lost(2), lost(0), lost()]
            seen.extend(until(state) for state in states)

    nodes.wait_ready(Watch(), named)  # type: ignore[arg-type]
    assert seen == [None, None, None, None, None, True]
