"""What must be there before anything long is begun."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from clusters import cache, engine, hostfacts
from clusters.engine import install
from clusters.progress import say
from oracles.errors import HarnessError

#: GB that a run from an emptied cache takes at its fullest, rounded up. Measured: Go's caches 11.6,
#: two PyTorch environments 8.4, a cluster of three nodes 3, images 1.7, programs 1.3, file systems
#: 0.3; checkpoints, logs and a second Kubernetes version come on top
COLD_DISK = 32.0
#: GB below which even a run that finds everything cached may fill the disk: images are unpacked
#: in each node, logs and checkpoints grow
WARM_DISK = 8.0
#: GB of memory for three nodes (1.6 GB when idle) and the PyTorch processes of one job
MEMORY = 4.0
#: GB of memory without which three nodes do not come up
LEAST_MEMORY = 2.0
#: inotify limits that let a few clusters run side by side. Measured on an idle cluster of three
#: nodes: 55 instances (27 on the control plane, 14 on each worker) and 505 watches; the kernel's
#: usual default of 128 instances is used up by seven nodes
INSTANCES = 512
WATCHES = 65536
#: inotify limits below which one cluster of three nodes, with pods on it, may not come up
LEAST_INSTANCES = 96
LEAST_WATCHES = 8192

_INOTIFY = Path("/proc/sys/fs/inotify")


class NotFit(HarnessError):
    """This host cannot run a cluster as it is."""


#: GB that building a cluster's parts takes at its fullest: the sum above without PyTorch
BUILD_DISK = 20.0


def _disk() -> float:
    """BUILD_DISK until something big was made in this cache, or nothing will be: WARM_DISK."""
    warm = any((cache.root() / "rootfs").glob("[!.]*"))
    pulled = os.environ.get("PARTS", "").lower() == "pull"
    return WARM_DISK if warm or pulled else BUILD_DISK


@dataclass(frozen=True)
class Needs:
    """What the thing about to be done takes.

    Attributes:
        disk, memory: GB.
        instances, watches: the least inotify limits; as root they are raised further.
        docker: whether it runs on a Docker engine of this host.
    """

    disk: float = field(default_factory=_disk)
    memory: float = LEAST_MEMORY
    instances: int = LEAST_INSTANCES
    watches: int = LEAST_WATCHES
    docker: bool = True


#: for a cluster that runs elsewhere: room for what a run writes down
ELSEWHERE = Needs(disk=1.0, memory=0.0, instances=0, watches=0, docker=False)


def preflight(needs: Needs | None = None) -> None:
    """Stop on the first thing without which the run cannot end well.

    Inotify limits that are too low are raised when this is root. Nothing is installed or started:
    an engine that is missing but can be made here is no fault.

    Raises:
        EngineError: no Docker engine, and none can be made here.
        NotFit: too little of something; says how much there is and what to do.
    """
    needs = needs or Needs()
    if needs.docker and engine.find() is None:
        install.refused()
    free = hostfacts.disk_free(cache.root())
    if free < needs.disk:
        raise NotFit(
            f"too little disk: {free:.1f} GB free for {cache.root()}, {needs.disk:.0f} GB needed",
            hint="free some, or point XDG_CACHE_HOME at a larger disk",
        )
    memory = hostfacts.memory_available()
    if memory is not None and memory < needs.memory:
        raise NotFit(
            f"too little memory: {memory:.1f} GB available, {needs.memory:.0f} GB needed",
            hint="end other programs, or take a smaller topology",
        )
    if needs.docker and hostfacts.is_root():
        raise_inotify(max(needs.instances, INSTANCES), max(needs.watches, WATCHES))
    limits = hostfacts.inotify()
    if (limits.instances or needs.instances) < needs.instances or (
        limits.watches or needs.watches
    ) < needs.watches:
        raise NotFit(
            f"inotify limits too low: {limits.instances} instances and {limits.watches} watches,"
            f" {needs.instances} and {needs.watches} needed",
            hint=inotify_hint(),
        )


def raise_inotify(
    instances: int = INSTANCES, watches: int = WATCHES, folder: Path = _INOTIFY
) -> bool:
    """Raise the inotify limits that are lower than asked for, until the next boot; says so.

    Returns whether they are high enough now (also true where the kernel has no such limits).
    """
    enough = True
    for name, wanted in (("max_user_instances", instances), ("max_user_watches", watches)):
        path = folder / name
        try:
            now = int(path.read_text())
        except (OSError, ValueError):
            continue
        if now >= wanted:
            continue
        try:
            path.write_text(str(wanted))
        except OSError:
            enough = False
        else:
            say(f"raised fs.inotify.{name} from {now} to {wanted} (until the next boot)")
    return enough


def inotify_hint(instances: int = INSTANCES, watches: int = WATCHES) -> str:
    """The command that raises the limits."""
    return (
        f"as root: sysctl fs.inotify.max_user_instances={instances}"
        f" fs.inotify.max_user_watches={watches}"
    )
