"""Progress lines: what a training program says about itself (format ``progress.v1``).

Programs write them to a folder that outlives their pods *and* to stdout, because log streams die
in exactly the faults under study. The programs cannot import this module (they run on old Pythons
in pods), so ``schemas/progress.v1.json`` is what both sides are held to by tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from oracles.errors import HarnessError


class ProgressError(HarnessError):
    """A line that is not a progress line."""


class Event(StrEnum):
    """What a line is about; see the schema for each."""

    START = "start"
    STEP = "step"
    CHECKPOINT = "checkpoint"
    RESUME = "resume"
    SIGNAL = "signal"
    END = "end"
    ERROR = "error"


# strict: no line is repaired on the way in (a "3" for a 3, a true for a 1)
@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))
class ProgressLine:
    """One line. The fields are described in ``schemas/progress.v1.json``."""

    t: float
    event: Event
    pod: str
    pod_uid: str
    pid: int
    agent_pid: int | None = None
    agent_start: int | None = None
    restart: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    world: int | None = None
    generation: str | None = None
    step: int | None = None
    epoch: int | None = None
    samples: int | None = None
    ids: tuple[int, ...] | None = None
    loss: float | None = None
    accuracy: float | None = None
    signal: str | None = None
    code: int | None = None
    detail: str | None = None


_adapter: TypeAdapter[ProgressLine] = TypeAdapter(ProgressLine)


def parse(line: str, *, where: str = "progress line") -> ProgressLine:
    """A line as an object.

    Args:
        where: said in the error, e.g. file and line number.

    Raises:
        ProgressError: not JSON, an unknown field, a missing or wrong one.
    """
    try:
        return _adapter.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ProgressError(
            f"{where}: {field + ': ' if field else ''}{first['msg']}: {line.strip()[:200]}"
        ) from error


def read_file(path: Path) -> list[ProgressLine]:
    """All lines of one process's file, in the order it wrote them.

    A last line without its newline is left out: the process was killed while it wrote.

    Raises:
        ProgressError: with file and line number.
    """
    *lines, _unfinished = path.read_bytes().decode(errors="replace").split("\n")
    return [
        parse(line, where=f"{path}:{number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def read(folder: Path) -> list[ProgressLine]:
    """All lines of all ``*.jsonl`` files of *folder*, by time; [] when there is no such folder.

    Lines of one process keep their order even where its clock stepped back.

    Raises:
        ProgressError: with file and line number.
    """
    keyed: list[tuple[float, str, int, ProgressLine]] = []
    for path in sorted(folder.glob("*.jsonl")):
        latest = float("-inf")
        for number, line in enumerate(read_file(path)):
            latest = max(latest, line.t)
            keyed.append((latest, path.name, number, line))
    return [item[-1] for item in sorted(keyed, key=lambda item: item[:3])]


def from_log(text: str) -> list[ProgressLine]:
    """The progress lines among other output, e.g. in a pod's log.

    Anything that does not begin as one of ours is passed over, as is a broken last line.
    """
    found = []
    for line in text.splitlines():
        if line.startswith('{"t":'):
            try:
                found.append(parse(line))
            except ProgressError:
                # two processes share a pod's stdout, so lines can be cut into each other there;
                # the files are what is judged
                continue
    return found


def steps(lines: Iterable[ProgressLine]) -> list[ProgressLine]:
    """Only the ``step`` lines."""
    return [line for line in lines if line.event is Event.STEP]


def as_json(line: ProgressLine) -> str:
    """The line as it is written: fields that are null are left out."""
    raw = _adapter.dump_python(line, mode="json", exclude_none=True)
    return json.dumps(raw, separators=(",", ":"))
