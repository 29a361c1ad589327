"""This machine, as benches tell of it."""

from __future__ import annotations

import os
from pathlib import Path


def machine_seconds() -> float:
    """CPU seconds that all processes of this machine have used since it booted."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def machine() -> str:
    """Cores, their model, memory and system, in a line; no name of it."""
    info = Path("/proc/cpuinfo").read_text()
    models = [line.partition(":")[2].strip() for line in info.splitlines() if "model name" in line]
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    release = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    system = release.get("PRETTY_NAME", "").strip('"')
    return f"{os.cpu_count()} cores ({models[0] if models else '?'}), {gib:.0f} GiB, {system}"
