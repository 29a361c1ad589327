"""What is not there yet, and how long it will take: said before it is begun."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusters import engine
from clusters.engine import Engine
from clusters.parts import Source, gobuild, images, nodeimage, pins, rootfs, source
from clusters.progress import last_time, say

#: seconds of each step on 2 cores, with nothing cached, where this machine has not done it before
MEASURED = {
    "build cni-plugins": 10.0,
    "build control-plane": 300.0,
    "build coredns": 90.0,
    "build device-plugin": 10.0,
    "build etcd": 65.0,
    "build image": 2.0,
    "build jobset": 85.0,
    "build kind": 20.0,
    "build kubernetes": 310.0,
    "build kueue": 255.0,
    "build kwok": 110.0,
    "build metrics-server": 200.0,
    "build node image": 25.0,
    "build rendezvous-etcd": 65.0,
    "build root file system": 80.0,
    "build scheduler-plugins": 190.0,
    "build trainer": 80.0,
    "build training-operator": 75.0,
    "build volcano": 95.0,
    "get the Docker engine": 45.0,
}
_CORES = 2


@dataclass(frozen=True)
class Cold:
    """A step that has to be done once. ``seconds``: how long it is expected to take."""

    step: str
    seconds: float


def cold(kubernetes: Iterable[str], programs: Iterable[str] = ()) -> list[Cold]:
    """What has to be built for clusters of these versions and the images of these programs.

    A program is ``NAME`` or ``NAME:VERSION``.

    Nothing is started or pulled to find out: where an image may be pulled (``PARTS=auto``), it is
    counted as if it had to be built. Empty for ``PARTS=pull``, whose times are the network's.
    """
    steps = []
    docker = engine.find()
    if docker is None:
        steps.append("get the Docker engine")
    if source() is not Source.PULL:
        for version in kubernetes:
            steps += _node_image(docker, version)
        steps += _base_image(docker)
        for name in programs:
            steps += _program(docker, name)
    return [Cold(step, _expected(step)) for step in dict.fromkeys(steps)]


def cold_processes(kubernetes: Iterable[str], programs: Iterable[str] = ()) -> list[Cold]:
    """As :func:`cold`, for embedded clusters, where all are processes of this host."""
    steps = _go("etcd", "kwok", *programs)
    for version in kubernetes:
        wanted = (pins.kubernetes_program(version), pins.control_plane_program(version))
        if not any(gobuild.folder(program).exists() for program in wanted):
            steps.append(f"build {wanted[1].name} {version}")
    return [Cold(step, _expected(step)) for step in dict.fromkeys(steps)]


def announce(kubernetes: Iterable[str], programs: Iterable[str] = ()) -> list[Cold]:
    """Say what has to be built, and return it."""
    steps = cold(kubernetes, programs)
    tell(steps)
    return steps


def tell(steps: Sequence[Cold]) -> None:
    """Say what has to be built."""
    if steps:
        minutes = max(1, round(sum(step.seconds for step in steps) / 60))
        say(f"to be made once, then cached: about {minutes} min on {os.cpu_count() or 1} cores")
        for step in steps:
            say(f"  {step.step}: {step.seconds:.0f} s")


def _node_image(docker: Engine | None, version: str) -> list[str]:
    pin = pins.node_pin(version)
    built = nodeimage.reference(version)
    if _there(docker, built, pin.pull):
        return _go("kind")
    steps = _go("kind", "etcd", "coredns", "cni-plugins")
    if not gobuild.folder(pins.kubernetes_program(version)).exists():
        steps.append(f"build kubernetes {version}")
    steps += [f"build root file system {n}" for n in ("base", "node") if not rootfs.made(n)]
    return [*steps, f"build node image {version}"]


def _base_image(docker: Engine | None) -> list[str]:
    if _there(docker, images.base_reference(), pins.pins().base.pull):
        return []
    made = [] if rootfs.made("base") else ["build root file system base"]
    return [*made, "build image base"]


def _program(docker: Engine | None, wanted: str) -> list[str]:
    name, _, chosen = wanted.partition(":")
    program, version, at = pins.program_pin(name, chosen or None)
    lacking = [
        f"build image {name} {version} {image}"
        for image in program.images
        if not _there(docker, images.program_reference(name, image, version), at.pull.get(image))
    ]
    return _go(wanted) + lacking if lacking else []


def _go(*wanted: str) -> list[str]:
    programs = [
        pins.program(name, version or None)
        for name, _, version in (text.partition(":") for text in wanted)
    ]
    return [f"build {p.name} {p.version}" for p in programs if not gobuild.folder(p).exists()]


def _there(docker: Engine | None, built: str, published: str | None) -> bool:
    if docker is None:
        return False
    if docker.has_image(built):
        return True
    return published is not None and source() is Source.AUTO and docker.has_image(published)


def _expected(step: str) -> float:
    before = last_time(step)
    if before is not None:
        return before
    matching = [name for name in MEASURED if step.startswith(name)]
    seconds = MEASURED[max(matching, key=len)] if matching else 60.0
    return seconds * _CORES / min(os.cpu_count() or 1, 8)
