"""What a device plugin is told, and how it is put on a node; the real one is the smoke's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusters import deviceplugin, fakegpus
from clusters.cluster import Cluster
from clusters.deviceplugin import Offer
from clusters.errors import ClusterError, CommandError
from clusters.topology import load


def cluster(folder: Path, mode: str = "device-plugin") -> Cluster:
    return Cluster(
        name="c", provider="kind", kubernetes="1.34.4", topology=load("gpu-2x4").in_mode(mode),
        kubeconfig=folder / "kubeconfig", context="x", run="r", capabilities=frozenset(),
        shared=folder / "shared",
    )  # fmt: skip


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is built."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / deviceplugin.PROGRAM).write_text("#!/bin/true")
    monkeypatch.setattr(deviceplugin.parts, "program", lambda name: tmp_path / "bin")


@pytest.mark.parametrize(
    ("offer", "healthy"), [(Offer(4), 4), (Offer(4, (0, 3)), 2), (Offer(2, (1, 3)), 1)]
)
def test_an_ill_device_that_is_gone_does_not_count(offer: Offer, healthy: int) -> None:
    assert offer.healthy == healthy


@pytest.mark.usefixtures("program")
def test_a_plugin_on_each_node_with_gpus(tmp_path: Path) -> None:
    it = cluster(tmp_path)
    scripts: dict[str, str] = {}
    deviceplugin.start(it, lambda node, text: scripts.setdefault(node, text), {"n1": 4, "n2": 2})
    shared = tmp_path / "shared" / "gpus"
    assert (shared / deviceplugin.PROGRAM).read_text() == "#!/bin/true"
    assert json.loads((shared / "n2.json").read_text()) == {"count": 2, "unhealthy": []}
    assert sorted(scripts) == ["n1", "n2"]
    words = f"{shared}/device-plugin -resource nvidia.com/gpu -offer {shared}/n1.json"
    assert words in scripts["n1"]
    assert "enable" in scripts["n1"], "it has to come back when its node was off"
    assert deviceplugin.offers(it, ["plane", "n1", "n2"]) == {"n1": Offer(4), "n2": Offer(2)}


@pytest.mark.usefixtures("program")
def test_a_node_that_does_not_start_it(tmp_path: Path) -> None:
    def shell(node: str, text: str) -> str:
        raise CommandError("no")

    with pytest.raises(CommandError, match="no"):
        deviceplugin.start(cluster(tmp_path), shell, {"n1": 4})


@pytest.mark.usefixtures("program")
def test_what_it_offers_is_changed(tmp_path: Path) -> None:
    it = cluster(tmp_path)
    deviceplugin.start(it, lambda *_: "", {"n1": 4})
    deviceplugin.change(it, "n1", Offer(4, (2,)))
    assert deviceplugin.offer(it, "n1") == Offer(4, (2,))
    fakegpus.change(it, "n1", 1)
    assert deviceplugin.offer(it, "n1") == Offer(1)
    left = [path.name for path in (tmp_path / "shared" / "gpus").iterdir()]
    assert sorted(left) == ["device-plugin", "n1.json"], "no half-written file stays"


def test_a_node_without_one(tmp_path: Path) -> None:
    it = cluster(tmp_path)
    with pytest.raises(ClusterError, match="n9 of cluster c has no device plugin"):
        deviceplugin.change(it, "n9", Offer(1))
    assert not (tmp_path / "shared").exists(), "nothing is written for nobody"


def test_the_other_mode_has_none(tmp_path: Path) -> None:
    it = cluster(tmp_path, "patched")
    assert not deviceplugin.used(it)
    assert deviceplugin.offers(it, ["n1"]) is None
