"""What this machine is: capabilities, cgroups, limits, memory, disk. Reads, never changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from clusters.engine.shim import NAMES

PROC = Path("/proc")


def lacking_capabilities(status: Path = PROC / "self" / "status") -> list[str]:
    """Capabilities that the kernel knows and this process's bounding set lacks, ``CAP_X`` each.

    A container that Docker runs with ``--privileged`` asks for all of them, so each one that is
    missing makes runc fail. Empty where there is no ``/proc`` (Docker then runs in a machine of
    its own).
    """
    try:
        mask = next(
            int(line.split()[1], 16)
            for line in status.read_text().splitlines()
            if line.startswith("CapBnd:")
        )
        last = int((PROC / "sys/kernel/cap_last_cap").read_text())
    except (OSError, StopIteration, ValueError):
        return []
    return [_name(number) for number in range(last + 1) if not mask >> number & 1]


def _name(number: int) -> str:
    return f"CAP_{NAMES[number]}" if number < len(NAMES) else f"CAP_{number}"


def is_root() -> bool:
    """Whether this process may install packages and start an engine."""
    return os.geteuid() == 0


def is_debian() -> bool:
    """Whether packages come from apt here."""
    return Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None
