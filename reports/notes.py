"""What people have to say about cells: the notes of a report, a YAML file.

::

    notes:
      - behaviour: E05
        case: pod deleted            # each of these may hold * and ?, and may be left out
        framework: torch:1.13.*
        text: The survivors train on within 8 s, because ...
        evidence: [https://github.com/..., tests/E05-pod_deleted/timeline.html]
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import Field

from oracles.strict import Strict, load

_PARTS = ("behaviour", "case", "provider", "kubernetes", "operator", "scheduler", "framework")


class Pattern(Strict):
    """Which cells are meant: in each field a name, which may hold ``*`` and ``?``."""

    behaviour: str = "*"
    case: str = "*"
    provider: str = "*"
    kubernetes: str = "*"
    operator: str = "*"
    scheduler: str = "*"
    framework: str = "*"

    def meets(self, cell: Mapping[str, str | None]) -> bool:
        """Whether a cell, as field -> value, is meant."""
        return all(fnmatchcase(cell.get(part) or "", getattr(self, part)) for part in _PARTS)

    @property
    def words(self) -> str:
        """The fields that say something."""
        found = [getattr(self, part) for part in _PARTS if getattr(self, part) != "*"]
        return " ".join(found) or "all cells"


class Note(Pattern):
    """A note. *evidence*: links, or paths below the run's folder."""

    text: str = Field(min_length=10)
    evidence: list[str] = Field(default_factory=list)


class Notes(Strict):
    """The whole file."""

    notes: list[Note]


def read(path: Path) -> list[Note]:
    """The notes of a file. Raises UsageError."""
    return load(Notes, path, "file of notes").notes
