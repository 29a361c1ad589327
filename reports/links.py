"""Where an attempt's evidence lies, seen from the page that links to it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from oracles.errors import UsageError
from oracles.merging import load

#: what a test's folder may hold that explains it, the most telling first
FILES = {
    "timeline.html": "timeline",
    "history.jsonl": "history",
    "invariants.txt": "invariants",
    "failure.txt": "failure",
    "faults.json": "faults",
    "steps.txt": "steps",
    "logs": "logs",
    "events.txt": "events",
    "objects": "objects",
}


@dataclass(frozen=True)
class Link:
    """A word, and where it leads; *href* is "" when nobody knows where the run's folder is."""

    word: str
    href: str


class Links:
    """Links from a page in *page* to the evidence.

    Args:
        places: run -> its folder, for those that are on this machine.
        base: a folder or an address that holds the runs' folders, instead; ``none``: they are
            nowhere that a link could lead to.
    """

    def __init__(self, page: Path, places: Mapping[str, Path], base: str | None = None) -> None:
        self._page = page.resolve()
        self._places = places
        self._base = base

    def of(self, run: str, evidence: Iterable[str]) -> list[Link]:
        """The links of one attempt."""
        found = []
        for path in evidence:
            folder = self._folder(run)
            if isinstance(folder, Path):
                found += self._local(folder / path)
            elif folder is not None:
                address = f"{folder}/{quote(path)}"
                found += [
                    Link("timeline", f"{address}/timeline.html"),
                    Link("files", f"{address}/"),
                ]
            else:
                found.append(Link(f"{run}/{path}", ""))
        return found

    def _folder(self, run: str) -> Path | str | None:
        if self._base is None:
            return self._places.get(run)
        if self._base == "none":
            return None
        if "://" in self._base:
            return f"{self._base.rstrip('/')}/{quote(run)}"
        return Path(self._base) / run

    def _local(self, folder: Path) -> list[Link]:
        there = [
            Link(word, self._href(folder / name))
            for name, word in FILES.items()
            if (folder / name).exists()
        ]
        return there or ([Link("files", self._href(folder))] if folder.exists() else [])

    def _href(self, path: Path) -> str:
        # relative: the page and the runs can be moved together
        return quote(os.path.relpath(path.resolve(), self._page))


def places(results: Iterable[Path]) -> dict[str, Path]:
    """Run -> folder, of those *results* that are a run's folder or a file in one."""
    found: dict[str, Path] = {}
    for path in results:
        try:
            runs = load(path).runs
        except UsageError:
            continue
        folder = path if path.is_dir() else path.parent
        if len(runs) == 1 and (folder / "tests").is_dir():
            found[runs[0].id] = folder
    return found
