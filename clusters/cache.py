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
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from clusters.processes import start_of
from clusters.progress import say


def root() -> Path:
    """The cache folder, made when it is not there."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if not base.is_absolute():  # unset, or what the XDG specification says to ignore
        base = Path.home() / ".cache"
    path = base / "muster"
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


#: name of the lock of those whose timings, or whose breaking, nobody else's tests may be beside
HOST_LOCK = "host"
#: set to 1, a run goes on beside others that say so too; it still waits for one that does not
SHARE_HOST = "MUSTER_SHARE_HOST"


def host() -> AbstractContextManager[None]:
    """Hold the host, alone or beside others, as the environment says; see :data:`SHARE_HOST`."""
    return lock(HOST_LOCK, shared=os.environ.get(SHARE_HOST) == "1")


@contextmanager
def lock(name: str, *, shared: bool = False, passing: bool = False) -> Iterator[None]:
    """Hold the lock *name* between processes; says whom it waits for.

    The kernel drops a ``flock`` when its holder dies, so a killed run never leaves a stale lock.

    Args:
        passing: what the name stands for comes and goes, so its file goes with the lock.
    """
    path = _lock_file(name)
    with ExitStack() as stack:
        while True:
            handle = stack.enter_context(path.open("a+"))
            _acquire(handle, name, shared)
            if _is_at(handle, path):
                break
            handle.close()  # removed by its last holder while we waited for it
        if not shared:
            handle.seek(0)
            handle.truncate()
            handle.write(f"pid {os.getpid()} ({_command()}) since {time.strftime('%H:%M:%S')}")
            handle.flush()
        try:
            yield
        finally:
            if not shared:
                handle.truncate(0)  # those who share it say nothing of themselves
            if passing:
                path.unlink(missing_ok=True)


def _is_at(handle: TextIO, path: Path) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:  # one look, not two: it may go in between
        return False


def _acquire(handle: TextIO, name: str, shared: bool) -> None:
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"waiting for {name}: held by {_owner(handle)}")
        fcntl.flock(handle, kind)


def held() -> dict[str, str]:
    """The locks that are held now, by this process or another: name -> holder, in words."""
    found = {}
    for path in sorted((root() / "locks").glob("*.lock")):
        with path.open("r") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found[path.stem] = _owner(handle)
    return found


def _lock_file(name: str) -> Path:
    folder = root() / "locks"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.lock"


def _owner(handle: TextIO) -> str:
    handle.seek(0)
    return handle.read().strip() or "another process"


def _command() -> str:
    """This process in few words, for the one who waits for it."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return " ".join([name, *sys.argv[1:3]])[:60]


def published(path: Path, make: Callable[[Path], None]) -> Path:
    """*path*, made by *make* in a folder beside it and renamed into place when complete.

    Two processes that want the same path wait for each other. A killed build leaves only a
    ``.partial`` folder, which the next build of the same path removes.
    """
    if path.exists():
        return path
    with lock(f"{path.parent.name}-{path.name}"):
        if path.exists():
            return path
        for old in path.parent.glob(f".{path.name}.*.partial"):
            remove(old)
        # a name of its own: what a killed build started may still be writing to the old one
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        partial.mkdir(parents=True)
        try:
            make(partial)
            partial.rename(path)
        except BaseException:
            remove(partial)
            raise
    return path


@contextmanager
def workspace(purpose: str) -> Iterator[Path]:
    """A folder for intermediate files, removed at the end; those of killed processes go, too."""
    folder = root() / "work"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        owner = old.name.split(".")[0]
        if owner.isdigit() and start_of(int(owner)) is None:
            remove(old)
    path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}.{purpose}.", dir=folder))
    try:
        yield path
    finally:
        remove(path)


def remove(folder: Path) -> None:
    """Remove a folder of ours; no error when it is not there.

    A debootstrap that was killed leaves ``/proc`` and ``/sys`` mounted inside: they are unmounted
    first, since removing a folder must never reach into them.
    """
    try:
        table = Path("/proc/self/mounts").read_text()
    except OSError:  # a host without Linux' /proc; none of our builds mounts anything there
        table = ""
    mounts = (line.split()[1] for line in table.splitlines())
    for mount in sorted((m for m in mounts if m.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(folder, ignore_errors=True)
