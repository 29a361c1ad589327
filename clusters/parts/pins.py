"""The pinned versions of ``pins.yaml``, checked and typed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field

from clusters.errors import UnknownVersion
from clusters.parts.gobuild import GoProgram

FOLDER = Path(__file__).parent

#: what a control plane and a node run, all from the one module ``k8s.io/kubernetes``
KUBERNETES_BINARIES = (
    "kube-apiserver", "kube-controller-manager", "kube-scheduler",
    "kube-proxy", "kubelet", "kubeadm", "kubectl",
)  # fmt: skip
#: what an embedded control plane runs of them, and the command for its user
CONTROL_PLANE_BINARIES = (
    "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl",
)  # fmt: skip


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tags(_Strict):
    """Image tags that a version of kubeadm asks for."""

    etcd: str
    pause: str
    coredns: str


class KubernetesPin(_Strict):
    """One version of Kubernetes; without ``tags`` and ``pull`` for the embedded provider only."""

    sum: str
    tags: Tags | None = None
    pull: str | None = None


class NodePin(_Strict):
    """What a node image of a version of Kubernetes is made from."""

    tags: Tags
    pull: str


class KubernetesPins(_Strict):
    """All versions of Kubernetes."""

    default: str
    versions: dict[str, KubernetesPin]


class VersionPin(_Strict):
    """One version of a program; ``pull`` maps image name -> published reference."""

    sum: str
    pull: dict[str, str] = Field(default_factory=dict)


class ProgramPin(_Strict):
    """A Go module's programs; ``images`` maps binary -> path of the entry point in its image."""

    default: str
    module: str
    binaries: dict[str, str]
    main: str | None = None
    images: dict[str, str] = Field(default_factory=dict)
    versions: dict[str, VersionPin]


class BasePin(_Strict):
    """The image that pods run in."""

    pull: str


class Pins(_Strict):
    """The whole file."""

    debian: str
    kubernetes: KubernetesPins
    base: BasePin
    programs: dict[str, ProgramPin]


@cache
def pins() -> Pins:
    """The pins that come with the harness."""
    return Pins.model_validate(yaml.safe_load((FOLDER / "pins.yaml").read_text()))


def kubernetes_pin(version: str) -> KubernetesPin:
    """The pin of a Kubernetes version. Raises UnknownVersion."""
    found = pins().kubernetes.versions.get(version)
    if found is None:
        raise UnknownVersion(
            f"Kubernetes {version!r} is not pinned",
            hint=f"one of {', '.join(pins().kubernetes.versions)}, without a leading v",
        )
    return found


def node_pin(version: str) -> NodePin:
    """What a node image of a version is made from. Raises UnknownVersion when there is none."""
    pin = kubernetes_pin(version)
    if pin.tags is None or pin.pull is None:
        known = [name for name, each in pins().kubernetes.versions.items() if each.tags]
        raise UnknownVersion(
            f"Kubernetes {version} runs as an embedded control plane only: its kubelet was not"
            " tried in nodes that are containers (it wants containerd 2, and refuses cgroup v1)",
            hint=f"--provider embedded, or one of {', '.join(known)}",
        )
    return NodePin(tags=pin.tags, pull=pin.pull)


def program_pin(name: str, version: str | None = None) -> tuple[ProgramPin, str, VersionPin]:
    """A program, its version (the default one for None) and that version's pin.

    Raises:
        UnknownVersion: not pinned; lists what is.
    """
    program = pins().programs[name]
    chosen = version or program.default
    if chosen not in program.versions:
        raise UnknownVersion(
            f"{name} {chosen!r} is not pinned",
            hint=f"one of {', '.join(program.versions)}, or {name}@image:REF, or {name}@src:DIR",
        )
    return program, chosen, program.versions[chosen]


def program(name: str, version: str | None = None) -> GoProgram:
    """What to build for a program."""
    pin, chosen, at = program_pin(name, version)
    main = (FOLDER / pin.main).read_text() if pin.main else None
    return GoProgram(name, pin.module, chosen, at.sum, pin.binaries, main=main)


def kubernetes_program(version: str) -> GoProgram:
    """What to build for nodes of a Kubernetes version: all of it."""
    return _kubernetes("kubernetes", version, KUBERNETES_BINARIES)


def control_plane_program(version: str) -> GoProgram:
    """What to build for an embedded control plane of a Kubernetes version."""
    return _kubernetes("control-plane", version, CONTROL_PLANE_BINARIES)


def _kubernetes(name: str, version: str, binaries: tuple[str, ...]) -> GoProgram:
    """Programs of Kubernetes.

    The version is written in through linker variables: without them a component calls itself
    v0.0.0-master, and kubeadm and kubelet refuse each other.
    """
    pin = kubernetes_pin(version)
    major, minor, _ = version.split(".")
    variables = {
        f"{package}.{variable}": value
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for variable, value in (
            ("gitVersion", f"v{version}"),
            ("gitMajor", major),
            ("gitMinor", minor),
        )
    }
    packages = {binary: f"k8s.io/kubernetes/cmd/{binary}" for binary in binaries}
    return GoProgram(name, "k8s.io/kubernetes", version, pin.sum, packages, variables=variables)
