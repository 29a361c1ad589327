"""Progress lines, as programs write them to files below a shared folder.

The folders are looked at POLL times a second rather than with inotify: a line says itself when it
was written, so nothing is gained by seeing it earlier, and a look costs two microseconds a file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

#: seconds between two looks at the known folders
POLL = 0.25
#: looks between two searches for new folders
_SEARCH = 4
#: how deep below the shared folder the folders ``progress`` are: VOLUME/progress
_DEPTH = 3


class _File:
    """A file that grows. What it held before is nobody's business."""

    def __init__(self, path: str, *, skip: bool) -> None:
        self.path = path
        self.size = 0
        self._rest = b""
        if skip:
            list(self.lines())

    def lines(self) -> Iterator[bytes]:
        """The lines that were finished since the last call."""
        with open(self.path, "rb") as file:
            file.seek(self.size)
            data = file.read()
        self.size += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from (line for line in lines if line.strip())


class Tail(threading.Thread):
    """Hands in new lines of all ``progress/*.jsonl`` below a folder until it is stopped."""

    def __init__(self, folder: Path, take: Callable[[list[bytes]], None]) -> None:
        super().__init__(name="recorder-progress", daemon=True)
        self._folder = folder
        self._take = take
        self._files: dict[str, _File] = {}
        self._folders: list[str] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._look(search=True, skip=True)  # lines of earlier runs

    def run(self) -> None:
        """Follow."""
        count = 0
        while not self._stopping.wait(POLL):
            count += 1
            self._look(search=count % _SEARCH == 0)

    def stop(self) -> None:
        """End; returns at once."""
        self._stopping.set()

    def catch_up(self) -> None:
        """Hand in everything that was written before this call."""
        self._look(search=True)

    def _look(self, *, search: bool, skip: bool = False) -> None:
        with self._lock:
            if search:
                self._folders = list(_progress_folders(str(self._folder), _DEPTH))
            for folder in self._folders:
                lines: list[bytes] = []
                for path, size in _sizes(folder):
                    file = self._files.get(path)
                    if file is None:
                        file = self._files[path] = _File(path, skip=skip)
                    if size > file.size:
                        try:
                            lines += file.lines()
                        except OSError:
                            continue  # removed just now, as volumes are when their test is over
                if lines:
                    self._take(lines)


def _progress_folders(folder: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for path in below:
        if os.path.basename(path) == "progress":
            yield path
        elif depth > 1:
            yield from _progress_folders(path, depth - 1)


def _sizes(folder: str) -> list[tuple[str, int]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((e.path, e.stat().st_size) for e in entries if e.name.endswith(".jsonl"))
    except OSError:
        return []
