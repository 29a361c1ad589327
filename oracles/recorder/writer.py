"""The file: lines appended one after the other by many threads, whole or not at all."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from oracles.errors import HarnessError
from oracles.history import BEGIN, END, GAP, Header


class Record(msgspec.Struct, omit_defaults=True, gc=False):
    """An :class:`~oracles.history.Event` before it is written.

    ``seq``, and ``t`` and ``mono`` where they are 0, are given to it when it is.
    """

    seq: int = 0
    t: float = 0.0
    mono: float = 0.0
    source: str = ""
    type: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    rv: int = 0
    object: Any = msgspec.UNSET


class HistoryFile:
    """Appends events to a history.

    Every append is one ``write`` of whole lines, so what a killed process leaves is readable. When
    the disk is full, what could not be written is counted, and a gap is written as soon as there
    is room again.

    Attributes:
        written: events in the file, by source.
        lost: events that could not be written.
    """

    def __init__(self, path: Path, header: Header, *, zero: float) -> None:
        """*zero*: the monotonic clock's reading at ``header.started``."""
        self.path = path
        self.written: Counter[str] = Counter()
        self.lost = 0
        self.bytes = 0
        self._zero = zero
        self._seq = 0
        self._lock = threading.Lock()
        self._encoder = msgspec.json.Encoder()
        self._why_lost = ""
        self._lost_since = 0.0
        self._torn = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            self._write(self._encoder.encode(header) + b"\n")
        except OSError as error:
            raise HarnessError(f"{path}: no history can be written: {error.strerror}") from error

    def append(self, records: Iterable[Record]) -> int:
        """Write events, in this order, with nothing in between; the last one's ``seq``."""
        encode = self._encoder.encode
        with self._lock:
            now, mono = time.time(), self.mono()
            lines = []
            new = list(records)
            sources = []
            seq = self._seq
            for record in [*self._sorry(), *new]:
                seq += 1
                record.seq = seq
                if not record.mono:
                    record.t = now
                    record.mono = mono
                line = encode(record)
                # parts that were copied as they came could have been sent with line breaks
                lines.append(line.replace(b"\n", b" ") if b"\n" in line else line)
                sources.append(record.source)
            if not lines:
                return seq
            lines.append(b"")
            data = b"\n".join(lines)
            try:
                self._write(b"\n" + data if self._torn else data)
            except OSError as error:
                self.lost += len(new)
                self._lost_since = self._lost_since or mono
                self._why_lost = str(error.strerror)
                return self._seq
            self._torn = False
            self._why_lost, self._lost_since = "", 0.0
            self._seq = seq
            self.written.update(sources)
            return seq

    def mono(self) -> float:
        """Seconds since the recorder started."""
        return time.monotonic() - self._zero

    @property
    def seq(self) -> int:
        """Number of the last line."""
        return self._seq

    def close(self) -> None:
        """No more can be written."""
        with self._lock:
            os.close(self._file)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            done = os.write(self._file, view)
            self.bytes += done
            view = view[done:]
            self._torn = bool(view)  # a part of a line, should the next write fail

    def _sorry(self) -> list[Record]:
        if not self._why_lost:
            return []
        why = {
            "since": self._lost_since,
            "why": f"{self.lost} events so far could not be written: {self._why_lost}",
        }
        return [
            Record(source=GAP, type=BEGIN, object=why),
            Record(source=GAP, type=END, object=why),
        ]
