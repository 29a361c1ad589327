"""What an engine of ours leaves when it was killed: containers that go on, and mounts."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from clusters.command import run
from clusters.errors import CommandError


def kill_containers(containerd_socket: Path, proc: Path = Path("/proc")) -> int:
    """Kill the containers whose keepers (containerd's shims) serve *containerd_socket*.

    A container outlives a dockerd that was killed. With its first process, all in its pid
    namespace die. Returns how many keepers there were.
    """
    keepers = 0
    for process in proc.glob("[0-9]*"):
        try:
            args = (process / "cmdline").read_bytes().split(b"\0")
            if not args[0].rpartition(b"/")[2].startswith(b"containerd-shim"):
                continue
            if str(containerd_socket).encode() not in args:
                continue
            first = " ".join(path.read_text() for path in process.glob("task/*/children"))
        except OSError:
            continue  # it ended meanwhile
        keepers += 1
        for number in [*map(int, first.split()), int(process.name)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
    return keepers


def unmount(roots: list[Path]) -> None:
    """Unmount everything below *roots*, deepest first."""
    below = [p for p in mounts() if any(p.is_relative_to(root) for root in roots)]
    for path in sorted(below, key=lambda p: len(p.parts), reverse=True):
        with contextlib.suppress(CommandError):  # gone with its parent
            run(["umount", "--lazy", str(path)], timeout=20)


def mounts(table: Path = Path("/proc/self/mountinfo")) -> list[Path]:
    """Mount points of this process's namespace; a removed one by its former path."""
    try:
        lines = table.read_text().splitlines()
    except OSError:
        return []
    points = [line.split(" ")[4] for line in lines]
    return [Path(p.encode().decode("unicode_escape").removesuffix("//deleted")) for p in points]
