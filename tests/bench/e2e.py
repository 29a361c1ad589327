"""A warm ``make e2e``: how long, and how much of the machine's work is the harness's own."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from tests.bench.figures import Figure
from tests.bench.host import machine_seconds


def measure(rounds: int) -> list[Figure]:
    """Runs the behaviours once: a round takes minutes, whatever is asked for.

    Raises:
        RuntimeError: the run was not green, so its figures mean nothing.
    """
    del rounds
    busy, own, start = machine_seconds(), _children_seconds(), time.monotonic()
    code = subprocess.run(
        [sys.executable, "-m", "pytest", "suites", "-m", "e2e"], check=False
    ).returncode
    wall = time.monotonic() - start
    own, busy = _children_seconds() - own, machine_seconds() - busy
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
