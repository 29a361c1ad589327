"""Topologies: those that come along, and files that do not describe one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from clusters import topology
from clusters.errors import TopologyError
from clusters.topology import GPU, GpuMode, Topology
from oracles.errors import UsageError

PLANE = {"role": "control-plane"}


def write(folder: Path, **fields: object) -> str:
    """A topology file with *fields* over a valid one; its path."""
    base = {"name": "mine", "description": "d", "nodes": [PLANE, {"role": "worker", "gpus": 2}]}
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**base, **fields}))
    return str(path)


def test_those_that_come_along() -> None:
    assert {"gpu-2x4", "scale", "small", "thread"} <= set(topology.names())
    for name in topology.names():
        assert topology.load(name).name == name


def test_gpu_2x4() -> None:
    plane, one, two = topology.load("gpu-2x4").each_node()
    assert (plane.role, plane.gpus, plane.labels) == ("control-plane", 0, {})
    assert (one.role, one.index, one.gpus) == ("worker", 0, 4)
    assert (two.role, two.index, two.gpus) == ("worker", 1, 4)
    assert one.labels == {
        f"{GPU}.present": "true",
        f"{GPU}.product": "NVIDIA-A100-SXM4-40GB",
        f"{GPU}.count": "4",
        f"{GPU}.memory": "40960",
        "gpu": "yes",
    }


def test_thread_is_the_cluster_of_the_source_thread() -> None:
    layout = topology.load("thread")
    plane, *workers = layout.each_node()
    taint = plane.taints[0]
    assert len(plane.taints) == 1
    assert (taint.key, taint.effect) == ("node-role.kubernetes.io/master", "NoSchedule")
    assert (plane.gpus, plane.labels) == (0, {})
    assert [(w.gpus, w.labels["gpu"], w.taints) for w in workers] == [(4, "yes", [])] * 2
    assert layout.gpus == 8


def test_small() -> None:
    assert [(n.role, n.gpus) for n in topology.load("small").each_node()] == [
        ("control-plane", 0),
        ("worker", 2),
    ]


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    groups = [
        {"role": "worker", "count": 2, "gpus": 1, "labels": {f"{GPU}.product": "own"}},
        PLANE,
        {"role": "worker", "gpus": 8},
    ]
    gpu = {"product": "NVIDIA-H100", "memory": 81559}
    layout = topology.load(write(tmp_path, nodes=groups, gpu=gpu))
    nodes = layout.each_node()
    # the control plane comes first wherever the file has it; workers count through their groups
    assert [(n.role, n.index, n.gpus) for n in nodes] == [
        ("control-plane", 0, 0), ("worker", 0, 1), ("worker", 1, 1), ("worker", 2, 8),
    ]  # fmt: skip
    assert layout.gpus == 10
    assert nodes[1].labels[f"{GPU}.product"] == "own"  # what a file says wins
    assert nodes[3].labels[f"{GPU}.product"] == "NVIDIA-H100"
    assert nodes[3].labels[f"{GPU}.memory"] == "81559"


def test_what_is_written_down_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "copy.yaml"
    for name in topology.names():
        layout = topology.load(name).in_mode("device-plugin")
        path.write_text(yaml.safe_dump(layout.model_dump(mode="json")))
        assert topology.load(str(path)) == layout


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"nodes": [PLANE, {"role": "worker", "gpu": 1}]}, "nodes.1.gpu: Extra inputs"),
        ({"nodes": [{"role": "worker"}]}, "exactly one control-plane node, this one 0"),
        ({"nodes": [PLANE, PLANE]}, "exactly one control-plane node, this one 2"),
        ({"nodes": [{"role": "control-plane", "count": 3}]}, "this one 3"),
        ({"nodes": []}, "nodes: List should have at least 1 item"),
        ({"nodes": [PLANE, {"role": "worker", "gpus": -1}]}, "nodes.1.gpus: Input should be gr"),
        ({"nodes": [PLANE, {"role": "worker", "count": 0}]}, "nodes.1.count: Input should be gr"),
        ({"nodes": [PLANE, {"role": "wroker"}]}, "nodes.1.role: Input should be 'control-plane'"),
        ({"nodes": [{**PLANE, "taints": [{"key": "a", "effect": "No"}]}]}, "taints.0.effect"),
        ({"nodes": [PLANE, {"role": "worker", "labels": {"gpu": True}}]}, "labels.gpu: Input sho"),
        ({"name": "Mine!"}, "name: String should match pattern"),
        ({"gpu": {"memory": 0}}, "gpu.memory: Input should be greater than 0"),
    ],
)
def test_what_is_not_a_topology_is_told(
    tmp_path: Path, fields: dict[str, object], message: str
) -> None:
    path = write(tmp_path, **fields)
    with pytest.raises(TopologyError) as caught:
        topology.load(path)
    assert message in str(caught.value)
    assert path in str(caught.value)
    assert caught.value.exit_code == 2


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    nodes = [PLANE, {"role": "worker", "gpus": -1, "cpus": 3}]
    with pytest.raises(TopologyError) as caught:
        topology.load(write(tmp_path, nodes=nodes, name="?"))
    told = str(caught.value).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in told] == ["name", "nodes.1.gpus", "nodes.1.cpus"]


@pytest.mark.parametrize("text", [b"nodes: [", b"a: b: c", b"\t- x", b"\xff\xfe\xfa"])
def test_what_is_not_yaml_is_told(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(text)
    with pytest.raises(TopologyError, match=r"bad\.yaml is not YAML"):
        topology.load(str(path))


@pytest.mark.parametrize("text", ["", "just words", "- a\n- b"])
def test_yaml_that_is_no_mapping(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(TopologyError, match="is not a topology"):
        topology.load(str(path))


@pytest.mark.parametrize("name", ["nope", "missing.yaml", "../topologies/small", ""])
def test_no_such_topology(name: str) -> None:
    with pytest.raises(TopologyError, match=r"one of .*gpu-2x4, scale, small, thread"):
        topology.load(name)


def test_scale_is_counted() -> None:
    layout = topology.load("scale-1000")
    assert (layout.name, layout.size, layout.gpus) == ("scale-1000", 1001, 8000)
    nodes = layout.each_node()
    assert nodes[-1].index == 999
    assert nodes[-1].labels["gpu"] == "yes"
    for name in ("scale-0", "scale-12345", "small-3"):
        with pytest.raises(TopologyError, match="no topology"):
            topology.load(name)


def test_topologies_cannot_be_changed() -> None:
    layout: Topology = topology.load("small")
    with pytest.raises(ValueError, match="frozen"):
        layout.name = "other"  # type: ignore[misc]


def test_gpu_modes() -> None:
    patched = topology.load("thread")
    assert patched.gpu.mode is GpuMode.PATCHED
    plugged = patched.in_mode("device-plugin")
    assert plugged.gpu.mode is GpuMode.DEVICE_PLUGIN
    assert plugged.each_node() == patched.each_node(), "labels and counts are the same"
    assert patched.gpu.mode is GpuMode.PATCHED
    with pytest.raises(UsageError, match=r"no GPU mode 'real'(?s:.)*patched, device-plugin"):
        patched.in_mode("real")


def test_a_file_says_the_gpu_mode(tmp_path: Path) -> None:
    layout = topology.load(write(tmp_path, gpu={"mode": "device-plugin"}))
    assert layout.gpu.mode is GpuMode.DEVICE_PLUGIN
    with pytest.raises(TopologyError, match=r"gpu\.mode"):
        topology.load(write(tmp_path, gpu={"mode": "real"}))
