"""A warm ``make e2e``: how long, and how much of the machine's work is the harness's own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.figures import Figure


def measure(rounds: int) -> list[Figure]:
    """Runs the behaviours once: a round takes minutes, whatever is asked for.

    Raises:
        RuntimeError: the run was not green, so its figures mean nothing.
    """
    del rounds
    busy, own, start = _machine_seconds(), _children_seconds(), time.monotonic()
    code = subprocess.run(
        [sys.executable, "-m", "pytest", "suites", "-m", "e2e"], check=False
    ).returncode
    wall = time.monotonic() - start
    own, busy = _children_seconds() - own, _machine_seconds() - busy
    if code != 0:
        raise RuntimeError(f"the run ended with {code}: its figures mean nothing")
    return [
        Figure("warm e2e", "s", (wall,), bound=480.0),
        Figure("harness CPU", "s", (own,), note="pytest and all it starts: docker, kind, kubectl"),
        Figure("machine CPU", "s", (busy,)),
        Figure("harness CPU / machine CPU", "x", (own / busy,), bound=0.10),
    ]


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _machine_seconds() -> float:
    """CPU seconds that all processes of this machine have used since it booted."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
