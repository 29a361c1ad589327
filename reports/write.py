"""All forms of a report, written beside each other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from reports import markdown, page, sheet, table
from reports.links import Links
from reports.table import Report

NAME = "report"


def all_forms(
    report: Report, folder: Path, *, places: Mapping[str, Path], evidence: str | None = None
) -> list[Path]:
    """Write ``report.html``, ``.md``, ``.json`` and ``.csv`` into *folder*; returns them.

    Args:
        places: run -> its folder, for links to the evidence.
        evidence: folder or address that holds the runs' folders, instead.
    """
    folder.mkdir(parents=True, exist_ok=True)
    links = Links(folder, places, evidence)
    forms = {
        "html": page.html(report, links),
        "md": markdown.text(report),
        "json": table.text(report),
        "csv": sheet.text(report.entries),
    }
    return [_write(folder / f"{NAME}.{end}", text) for end, text in forms.items()]


def _write(path: Path, text: str) -> Path:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return path
