"""Topologies: named layouts of nodes, as YAML with a schema.

A node's GPUs are fake, but its labels are the ones that GPU feature discovery puts on real GPU
nodes (``nvidia.com/gpu.present``, ``.product``, ``.count``, ``.memory``), so that selectors
written for real clusters work here.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from clusters.errors import TopologyError
from oracles.errors import UsageError

FOLDER = Path(__file__).parent / "topologies"
#: topologies whose workers can be counted: `scale-1000` is `scale` with 1000 of them
COUNTED = re.compile(r"(scale)-([1-9][0-9]{0,3})")
GPU = "nvidia.com/gpu"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Taint(_Strict):
    """A node taint, as in ``spec.taints``."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class GpuMode(StrEnum):
    """Who says how many GPUs a node has."""

    #: what is written to the node's status: seen by schedulers; anybody can change it
    PATCHED = "patched"
    #: a real device plugin of the kubelet: containers get devices, and the kubelet polices them
    DEVICE_PLUGIN = "device-plugin"


class GpuModel(_Strict):
    """What the fake GPUs claim to be. ``memory`` is in MiB, as on real nodes."""

    product: str = "NVIDIA-A100-SXM4-40GB"
    memory: int = Field(default=40960, gt=0)
    mode: GpuMode = GpuMode.PATCHED


class NodeGroup(_Strict):
    """``count`` equal nodes."""

    role: Literal["control-plane", "worker"]
    count: int = Field(default=1, ge=1)
    gpus: int = Field(default=0, ge=0)
    labels: dict[str, str] = Field(default_factory=dict)
    taints: list[Taint] = Field(default_factory=list)


class Node(_Strict):
    """One node of a topology; ``index`` counts from 0 within its role."""

    role: Literal["control-plane", "worker"]
    index: int
    gpus: int
    labels: dict[str, str]
    taints: list[Taint]


class Topology(_Strict):
    """A named layout of nodes."""

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$")
    description: str
    gpu: GpuModel = GpuModel()
    nodes: list[NodeGroup] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_control_plane(self) -> Topology:
        planes = sum(g.count for g in self.nodes if g.role == "control-plane")
        if planes != 1:
            raise ValueError(f"a topology has exactly one control-plane node, this one {planes}")
        return self

    def each_node(self) -> list[Node]:
        """All nodes, control plane first, with every label that they carry."""
        result: list[Node] = []
        for role in ("control-plane", "worker"):
            index = 0
            for group in (g for g in self.nodes if g.role == role):
                for _ in range(group.count):
                    labels = {**self._gpu_labels(group.gpus), **group.labels}
                    result.append(
                        Node(
                            role=group.role,
                            index=index,
                            gpus=group.gpus,
                            labels=labels,
                            taints=group.taints,
                        )
                    )
                    index += 1
        return result

    @property
    def size(self) -> int:
        """How many nodes it has."""
        return sum(group.count for group in self.nodes)

    @property
    def gpus(self) -> int:
        """GPUs of all nodes together."""
        return sum(group.count * group.gpus for group in self.nodes)

    def in_mode(self, mode: str) -> Topology:
        """The same, with its GPUs in another mode.

        Raises:
            UsageError: no such mode.
        """
        if mode not in list(GpuMode):
            raise UsageError(f"no GPU mode {mode!r}", hint=f"one of {', '.join(GpuMode)}")
        return self.model_copy(update={"gpu": self.gpu.model_copy(update={"mode": GpuMode(mode)})})

    def _gpu_labels(self, gpus: int) -> dict[str, str]:
        if gpus == 0:
            return {}
        return {
            f"{GPU}.present": "true",
            f"{GPU}.product": self.gpu.product,
            f"{GPU}.count": str(gpus),
            f"{GPU}.memory": str(self.gpu.memory),
        }


def names() -> list[str]:
    """Names of the topologies that come with the harness."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name_or_path: str) -> Topology:
    """A topology by name, or from a file when the name ends in ``.yaml``.

    ``scale-N`` is the topology ``scale`` with N workers.

    Raises:
        TopologyError: no such topology, or a file that breaks the schema; each problem on a line.
    """
    is_file = name_or_path.endswith((".yaml", ".yml"))
    if counted := COUNTED.fullmatch(name_or_path):
        return _counted(load(counted[1]), name_or_path, int(counted[2]))
    path = Path(name_or_path) if is_file else FOLDER / f"{name_or_path}.yaml"
    if not path.is_file() or (not is_file and name_or_path not in names()):
        raise TopologyError(
            f"no topology {name_or_path!r}",
            hint=f"one of {', '.join(names())}, or the path of a .yaml file",
        )
    try:
        return Topology.model_validate(yaml.safe_load(path.read_text()))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TopologyError(f"{path} is not YAML: {error}") from error
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(part) for part in item['loc']) or 'topology'}: {item['msg']}"
            for item in error.errors()
        ]
        raise TopologyError(f"{path} is not a topology:\n  " + "\n  ".join(problems)) from error


def _counted(topology: Topology, name: str, workers: int) -> Topology:
    groups = [
        group.model_copy(update={"count": workers}) if group.role == "worker" else group
        for group in topology.nodes
    ]
    text = f"One control plane and {workers} nodes with {groups[-1].gpus} GPUs each."
    return topology.model_copy(update={"name": name, "description": text, "nodes": groups})
