"""What this machine is: limits, memory, disk, cgroups. Reads only; changes nothing."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from clusters.engine.capabilities import lacking as lacking_capabilities
from clusters.engine.install import is_debian, is_root

__all__ = [
    "Inotify",
    "cgroup_version",
    "disk_free",
    "freezer",
    "inotify",
    "is_debian",
    "is_root",
    "lacking_capabilities",
    "memory_available",
]

GB = 1e9
_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Inotify:
    """The kernel's limits per user; None where the kernel does not say.

    Attributes:
        instances: ``fs.inotify.max_user_instances``.
        watches: ``fs.inotify.max_user_watches``.
    """

    instances: int | None
    watches: int | None


def inotify(folder: Path = _PROC / "sys/fs/inotify") -> Inotify:
    """The inotify limits: all nodes of all clusters share them, for their root is our root."""
    return Inotify(_number(folder / "max_user_instances"), _number(folder / "max_user_watches"))


def inotify_instances_used(proc: Path = _PROC) -> int:
    """How many inotify instances root's processes hold now (those that may be looked at)."""
    count = 0
    for process in proc.glob("[0-9]*"):
        try:
            if process.stat().st_uid != 0:
                continue
            for descriptor in os.scandir(process / "fd"):
                count += os.readlink(descriptor.path) == "anon_inode:inotify"
        except OSError:
            continue  # it ended meanwhile, or belongs to somebody else
    return count


def disk_free(path: Path) -> float:
    """Free bytes, in GB, for this user in the filesystem of *path* (its nearest folder there)."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free / GB


def memory_available(meminfo: Path = _PROC / "meminfo") -> float | None:
    """Memory in GB that new programs can have without swapping; None where unknown."""
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024 / GB
    except (OSError, ValueError):
        pass
    return None


def cgroup_version(root: Path = _CGROUP) -> str:
    """``2`` (the unified hierarchy alone), ``1`` (the older ones) or "" (none is mounted)."""
    if (root / "cgroup.controllers").exists():
        return "2"
    return "1" if (root / "memory").is_dir() or (root / "freezer").is_dir() else ""


def freezer(root: Path = _CGROUP) -> bool:
    """Whether processes can be frozen by cgroup, as ``docker pause`` does."""
    if (root / "freezer").is_dir():
        return True
    # of the unified hierarchy each folder but the root has the file, since Linux 5.2
    return next(root.glob("*/cgroup.freeze"), None) is not None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
