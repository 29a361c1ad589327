"""Capabilities that this host does not have."""

from __future__ import annotations

from pathlib import Path

from clusters.engine.shim import NAMES

_STATUS = Path("/proc/self/status")
_LAST = Path("/proc/sys/kernel/cap_last_cap")


def lacking(status: Path = _STATUS, last_cap: Path = _LAST) -> list[str]:
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
        last = int(last_cap.read_text())
    except (OSError, StopIteration, ValueError):
        return []
    return [_name(number) for number in range(last + 1) if not mask >> number & 1]


def _name(number: int) -> str:
    return f"CAP_{NAMES[number]}" if number < len(NAMES) else f"CAP_{number}"
