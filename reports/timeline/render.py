"""One self-contained HTML file: the template, with styles, scripts and data put into it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oracles.history import Event, Header
from oracles.invariants.base import Violation
from oracles.known import KnownFault
from reports.templating import read, template
from reports.timeline.build import build
from reports.timeline.model import Group, Lane, Segment, Span, Tick, Timeline

#: in the order in which they are put together; they share one scope
_SCRIPTS = (
    "data.js",
    "looks.js",
    "view.js",
    "paint.js",
    "lanes.js",
    "details.js",
    "input.js",
    "start.js",
)
_STYLES = ("page.css", "lanes.css")
#: facts in the order of the header line; any others follow
_FACTS = ("kubernetes", "operator", "scheduler", "framework", "provider", "topology")


def write(
    events: Iterable[Event],
    target: Path,
    *,
    title: str,
    outcome: str,
    violations: Sequence[Violation] = (),
    excused: Sequence[tuple[Violation, KnownFault]] = (),
    header: Header | None = None,
) -> Path:
    """Write the page of one test's history.

    Args:
        events: the slice, in the order of its lines; read once.
        target: the file to write; replaced in one go.
        outcome: a word of ``Outcome``.
        excused: violations that published faults explain, with those.
        header: of the history, for the versions that the page names.

    Returns:
        *target*.
    """
    timeline = build(
        events, title=title, outcome=outcome, violations=violations, excused=excused, header=header
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}.{os.getpid()}")
    made.write_text(html(timeline), encoding="utf-8")
    made.replace(target)
    return target


def html(timeline: Timeline) -> str:
    """The page as text."""
    order = [*_FACTS, *(key for key in timeline.facts if key not in _FACTS)]
    return template("reports.timeline", "page/page.html.jinja").render(
        page=timeline,
        facts=[(key, timeline.facts[key]) for key in order if key in timeline.facts],
        duration=duration(timeline.end - timeline.start),
        started=_wall(timeline.epoch).strftime("%Y-%m-%d %H:%M:%S UTC"),
        clock=lambda x: _wall(timeline.epoch + x - timeline.zero).strftime("%H:%M:%S.%f")[:-3],
        offset=lambda x: offset(x - timeline.zero),
        styles="\n".join(read("reports.timeline", f"page/{name}") for name in _STYLES),
        scripts="\n".join(read("reports.timeline", f"page/{name}") for name in _SCRIPTS),
        data=_script_json(data(timeline)),
    )


def duration(seconds: float) -> str:
    """Rounded for people: ``4.2 s``, ``1 min 42 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def offset(seconds: float) -> str:
    """A place on the axis: ``+12.345 s``, ``+1:05.200``."""
    sign, ms = ("−" if seconds < -0.0005 else "+"), round(abs(seconds) * 1000)
    if ms < 60_000:
        return f"{sign}{ms / 1000:.3f} s"
    minutes, rest = divmod(ms, 60_000)
    return f"{sign}{minutes}:{rest / 1000:06.3f}"


class _Strings:
    """Each text once; in the data it is a number."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))

    def all(self) -> list[str]:
        return list(self._places)


def data(timeline: Timeline) -> dict[str, Any]:
    """What the scripts draw; see ``page/data.js`` for how it is read back."""
    text, zero = _Strings(), timeline.zero

    def at(x: float) -> float:
        return round(x - zero, 3)

    def segment(each: Segment) -> list[float]:
        return [
            at(each.start), at(each.end), text(each.state), text(each.label), each.began, each.ended
        ]  # fmt: skip

    def tick(each: Tick) -> list[float]:
        return [at(each.x), text(each.kind), text(each.text), each.event]

    def span(each: Span) -> list[Any]:
        end = None if each.end is None else at(each.end)
        return [at(each.start), end, each.kind, each.text, each.event]

    def lane(each: Lane) -> dict[str, Any]:
        made: dict[str, Any] = {
            "id": each.id, "kind": each.kind, "name": each.name, "title": each.title,
        }  # fmt: skip
        if each.note:
            made["note"] = each.note
        if each.rows:
            made["rows"] = [
                [row.look, row.label, [segment(one) for one in row.segments]] for row in each.rows
            ]
        if each.ticks:
            made["ticks"] = [tick(one) for one in each.ticks]
        if each.chart:
            made["chart"] = {
                "series": each.chart.series,
                "points": [[at(x), *map(_number, rest)] for x, *rest in each.chart.points],
                "limits": [[at(x), _number(value)] for x, value in each.chart.limits],
                "limit": each.chart.limit_name,
                "compared": each.chart.compared,
                "floor": each.chart.floor,
            }
        if each.curve:
            made["curve"] = {
                "unit": each.curve.unit,
                "points": [[at(x), _number(value)] for x, value in each.curve.points],
                "bands": [segment(one) for one in each.curve.bands],
            }
        return made

    def group(each: Group) -> dict[str, Any]:
        return {
            "id": each.id, "title": each.title, "note": each.note, "open": each.open,
            "summary": [segment(one) for one in each.summary],
            "lanes": [lane(one) for one in each.lanes],
        }  # fmt: skip

    found = {
        "epoch": timeline.epoch,
        "start": at(timeline.start),
        "end": at(timeline.end),
        "groups": [group(each) for each in timeline.groups],
        "faults": [span(each) for each in timeline.faults],
        "gaps": [span(each) for each in timeline.gaps],
        "flags": [
            {
                "x": at(each.x),
                "lane": each.lane,
                "subject": each.violation.subject,
                "message": each.violation.message,
                "invariant": each.violation.invariant,
                "behaviour": each.violation.behaviour,
                "events": each.violation.events,
                "known": [each.known.id, each.known.link] if each.known else None,
            }
            for each in timeline.flags
        ],
        "notes": [
            [seq, at(note.x), text(note.type), text(note.subject), note.rv, text(note.words)]
            for seq, note in timeline.notes.items()
        ],
    }
    return {**found, "strings": text.all()}


def _number(value: float) -> float:
    return int(value) if value == int(value) else round(value, 3)


def _script_json(found: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    made = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    return made.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _wall(t: float) -> datetime:
    return datetime.fromtimestamp(t, UTC)
