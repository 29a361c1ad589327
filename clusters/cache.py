"""The cache folder: one place, content keys, locks, nothing ever half-written.

Everything that is built or downloaded lies under ``$XDG_CACHE_HOME/muster`` (``~/.cache/muster``),
Go's and uv's own caches included, so that "an emptied cache" means this one folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clusters.progress import say


def root() -> Path:
    """The cache folder, made when it is not there."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "muster"
    path.mkdir(parents=True, exist_ok=True)
    return path


def key(*inputs: object) -> str:
    """A content key (12 hex digits) of everything that decides what a build makes.

    A :class:`Path` counts with its bytes (a folder with all files below it), anything else by its
    JSON form.
    """
    digest = hashlib.sha256()
    for item in inputs:
        if isinstance(item, Path):
            files = sorted(p for p in item.rglob("*") if p.is_file()) if item.is_dir() else [item]
            for file in files:
                digest.update(str(file.relative_to(item) if item.is_dir() else file.name).encode())
                digest.update(file.read_bytes())
        else:
            digest.update(json.dumps(item, sort_keys=True, default=str).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:12]


@contextmanager
def lock(name: str, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock *name* between processes; says whom it waits for.

    The kernel drops a ``flock`` when its holder dies, so a killed run never leaves a stale lock.
    """
    folder = root() / "locks"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.lock"
    with path.open("a+") as handle:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            owner = handle.read().strip() or "another process"
            say(f"waiting for {name}: held by {owner}")
            fcntl.flock(handle, kind)
        if not shared:
            handle.seek(0)
            handle.truncate()
            handle.write(f"pid {os.getpid()} since {time.strftime('%H:%M:%S')}")
            handle.flush()
        yield


def published(path: Path, make: Callable[[Path], None]) -> Path:
    """*path*, made by *make* in a folder beside it and renamed into place when complete.

    Two processes that want the same path wait for each other; a killed build leaves only a
    ``.partial`` folder, which the next build removes.
    """
    if path.exists():
        return path
    with lock(f"{path.parent.name}-{path.name}"):
        if path.exists():
            return path
        partial = path.with_name(f".{path.name}.partial")
        remove(partial)
        partial.mkdir(parents=True)
        make(partial)
        partial.rename(path)
    return path


def remove(folder: Path) -> None:
    """Remove a folder of ours; no error when it is not there.

    A debootstrap that was killed leaves ``/proc`` and ``/sys`` mounted inside: they are unmounted
    first, since removing a folder must never reach into them.
    """
    below = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in sorted((m for m in below if m.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(folder, ignore_errors=True)
