"""Whether a process still runs, and whether it is the one that was meant."""

from __future__ import annotations

import os
from pathlib import Path


def start_of(pid: int) -> int | None:
    """When a process began, in clock ticks since boot; None when it does not run.

    A pid is given to another process some time after; the start tells the two apart. A process
    that ended counts as gone even while nobody reaps it, as in containers without an init.
    """
    if not Path("/proc/self/stat").exists():
        return _answers(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def _answers(pid: int) -> int | None:
    """0 for a process that takes a signal; for kernels that do not tell more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # somebody else's
        return 0
    return 0
