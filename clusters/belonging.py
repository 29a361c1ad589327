"""Processes of this host that were started for a cluster: started, found again, killed.

They are found by a variable in their environment that names the cluster's folder, never by their
name: a pid alone may belong to somebody else by now.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusters.processes import start_of

#: variable of each of them: the folder of the cluster that it belongs to
TAG = "MUSTER_CLUSTER_FOLDER"
#: seconds for which the end of a process that was killed is waited for
GONE = 5.0

#: those that this process started, held so that they can be reaped
_children: list[subprocess.Popen[bytes]] = []


def start(
    folder: Path, words: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
) -> int:
    """Start a program for the cluster in *folder*, as the leader of a group; its pid.

    Args:
        env: variables on top of this process's own; its children get them, too.
        log: what it writes is added there.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            list(words), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            cwd=cwd, env={**os.environ, **env, TAG: str(folder)}, start_new_session=True,
        )  # fmt: skip
    _children.append(child)
    return child.pid


def alive(folder: Path) -> list[int]:
    """Pids of all processes that belong to the cluster in *folder*."""
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return [pid for pid in pids if belongs(pid, folder)]


def belongs(pid: int, folder: Path) -> bool:
    """Whether a process runs that was started for the cluster in *folder*."""
    if start_of(pid) is None:
        return False
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # somebody else's, or it ended
        return False
    return f"{TAG}={folder}".encode() in variables


def kill(pid: int, *, group: bool = False) -> None:
    """Kill a process, or the *group* that it leads, and wait until it is gone."""
    try:
        (os.killpg if group else os.kill)(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
    _children[:] = [child for child in _children if child.poll() is None]
    end = time.monotonic() + GONE
    while start_of(pid) is not None and time.monotonic() < end:
        time.sleep(0.01)
