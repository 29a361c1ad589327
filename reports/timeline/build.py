"""From a history to what its page shows: one pass, then the lanes are put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oracles import history
from oracles.history import Event, Header
from oracles.invariants.base import Violation
from oracles.known import KnownFault
from oracles.slicing import foreign
from reports.timeline import arrange, slim
from reports.timeline.changes import says, words
from reports.timeline.families import subject as named
from reports.timeline.model import Flag, Moment, Span, Tick, Timeline
from reports.timeline.scene import Scene
from reports.timeline.track import Clock
from reports.timeline.training import line_words

#: facts that only judges need
_NOT_SHOWN = frozenset({"slice"})
_FAULT_TONES = {"recover": "info"}


class Builder:
    """Takes the events of a history in the order of its lines. *part*: ``History.part``."""

    def __init__(
        self, cited: frozenset[int] = frozenset(), part: Mapping[str, Any] | None = None
    ) -> None:
        self._part = part or {}
        self.scene = Scene()
        self.clock = Clock()
        self.notes = slim.Notes(cited)
        self.moments: list[Moment] = []
        self.fault_ticks: list[Tick] = []
        self.mark_ticks: list[Tick] = []
        self.events = 0
        self.first: float | None = None
        self.last = 0.0
        self.test: list[float | None] = [None, None]
        self._objects: dict[tuple[str, str, str, str], dict[str, Any]] = {}
        self._faults: list[Span] = []
        self._open_faults: dict[tuple[str, str, str], Span] = {}
        self._gaps: list[Span] = []
        self._open_gaps: dict[str, Span] = {}

    def feed(self, event: Event) -> None:
        """Take the next event."""
        self.events += 1
        self.clock.saw(event)
        x = event.mono
        self.first = x if self.first is None else min(self.first, x)
        self.last = max(self.last, x)
        if foreign(event, self._part):
            self._guest(event, x)
        elif event.source == history.WATCH:
            self._watch(event, x)
        elif event.source == history.PROGRESS:
            self._progress(event)
        elif event.source == history.FAULT:
            self._fault(event, x)
        elif event.source == history.GAP:
            self._gap(event, x)
        else:
            self._mark(event, x)

    def _watch(self, event: Event, x: float) -> None:
        if event.kind == "Event":
            self.scene.told(event, x)
            return
        key = (event.kind, event.namespace, event.name, event.uid)
        old = self._objects.get(key)
        if event.type == history.DELETED:
            self._objects.pop(key, None)
            changed = words(old, None)
        else:
            self._objects[key] = event.object
            changed = words(old, event.object)
        self.scene.watch(event, x, changed)
        if changed or event.seq in self.notes.cited:
            text = changed or "nothing that this page follows changed"
            self.notes.add(event, x, named(event.kind, event.namespace, event.name), text)

    def _guest(self, event: Event, x: float) -> None:
        """Another test's pod: it shows by the GPUs that it takes, and where a violation cites it.

        Then it stands on its node's lane, for it has none of its own.
        """
        self.scene.guest(event, x)
        if event.seq in self.notes.cited:
            node = str((event.object.get("spec") or {}).get("nodeName") or "")
            pod = named(event.kind, event.namespace, event.name)
            lane = named("Node", "", node) if node else pod
            self.notes.add(event, x, lane, f"{pod}, which is another test's; it is on {node}")

    def _progress(self, event: Event) -> None:
        pod = self.scene.progress(event, event.mono)
        if event.type != "step" or event.seq in self.notes.cited:
            self.notes.add(event, event.mono, pod, line_words(event.object))

    def _fault(self, event: Event, x: float) -> None:
        about = named(event.kind, event.namespace, event.name).strip()
        detail = says(event.object)
        text = f"{event.type}: {detail}" if detail else event.type
        key = (event.kind, event.namespace, event.name)
        if event.type == "inject":
            self._open_faults[key] = Span(x, None, event.kind, about, event.seq)
        elif event.type == "recover" and (span := self._open_faults.pop(key, None)):
            self._faults.append(Span(span.start, x, span.kind, span.text, span.event))
        self.fault_ticks.append(Tick(x, event.type, f"{about} {text}", event.seq))
        tone = _FAULT_TONES.get(event.type, "fault")
        self.moments.append(Moment(x, tone, about, text, event.seq, "faults"))
        self.notes.add(event, x, about, text)

    def _gap(self, event: Event, x: float) -> None:
        detail = says(event.object)
        what = f"events of {event.kind} are missing" if event.kind else "events are missing"
        if event.type == history.RESUMED:
            text = f"watch of {event.kind} taken up again, nothing missed"
            self.mark_ticks.append(Tick(x, "mark", text, event.seq))
        elif event.type == history.BEGIN:
            text = f"{what}: {detail}" if detail else what
            self._open_gaps.setdefault(event.kind, Span(x, None, event.kind, text, event.seq))
            self.moments.append(Moment(x, "gap", "recorder", text, event.seq, "gaps"))
        else:
            span = self._open_gaps.pop(event.kind, Span(x, x, event.kind, what, event.seq))
            self._gaps.append(Span(span.start, x, span.kind, span.text, span.event))
            text = f"{event.kind or 'all'} events are seen again"
            self.moments.append(Moment(x, "gap", "recorder", text, event.seq, "gaps"))
        self.notes.add(event, x, "recorder", f"{event.type}: {detail or what}")

    def _mark(self, event: Event, x: float) -> None:
        if event.type == history.TEST_START and self.test[0] is None:
            self.test[0] = x
        elif event.type == history.TEST_END:
            self.test[1] = x
        detail = says(event.object)
        text = " ".join(part for part in (event.type, event.name, detail) if part)
        self.mark_ticks.append(Tick(x, "mark", text, event.seq))
        self.moments.append(Moment(x, "info", "test", text, event.seq, "marks"))
        self.notes.add(event, x, "test", text)

    def faults(self) -> tuple[Span, ...]:
        """All faults, in the order of their injection."""
        return tuple(sorted([*self._faults, *self._open_faults.values()], key=_start))

    def gaps(self) -> tuple[Span, ...]:
        """All gaps, in their order."""
        return tuple(sorted([*self._gaps, *self._open_gaps.values()], key=_start))


def build(
    events: Iterable[Event],
    *,
    title: str,
    outcome: str,
    violations: Sequence[Violation] = (),
    excused: Sequence[tuple[Violation, KnownFault]] = (),
    header: Header | None = None,
) -> Timeline:
    """What the page of a history shows."""
    broken = [*((each, None) for each in violations), *excused]
    part = header.facts.get("slice") if header is not None else None
    builder = Builder(
        frozenset(seq for each, _ in broken for seq in each.events),
        part if isinstance(part, Mapping) else None,
    )
    for event in events:
        builder.feed(event)
    first = builder.first or 0.0
    zero = first if builder.test[0] is None else builder.test[0]
    until = max(builder.last, zero)
    groups, moments, places = arrange.groups(builder.scene, until)
    flags = tuple(
        sorted(
            (_flag(each, known, builder, places, zero) for each, known in broken),
            key=lambda f: f.x,
        )
    )
    faults, gaps = builder.faults(), builder.gaps()
    top = arrange.test_group(flags, faults, gaps, builder.fault_ticks, builder.mark_ticks, until)
    moments += builder.moments
    moments += [_broken(each, number) for number, each in enumerate(flags, start=1)]
    groups = slim.folded(groups, (flag.lane for flag in flags))
    shown, omitted = slim.slim((top, *groups) if top.lanes else groups, builder.notes)
    return Timeline(
        title=title,
        outcome=str(outcome),
        zero=zero,
        epoch=builder.clock.wall(zero),
        start=zero,
        end=until,
        events=builder.events,
        facts=_facts(header),
        groups=shown,
        faults=faults,
        gaps=gaps,
        flags=flags,
        moments=slim.moments(moments),
        notes=builder.notes.kept(shown, moments, faults, gaps),
        omitted=omitted,
    )


def _flag(
    violation: Violation,
    known: KnownFault | None,
    builder: Builder,
    places: Mapping[str, str],
    zero: float,
) -> Flag:
    x = builder.clock.mono(violation.t) if violation.t else None
    if x is None:
        x = next((at for seq in violation.events if (at := builder.notes.x(seq)) is not None), zero)
    about = violation.subject.replace(" /", " ")
    return Flag(violation, x, places.get(about, "violations"), known)


def _broken(flag: Flag, number: int) -> Moment:
    found = flag.violation
    event = next(iter(found.events), 0)
    if flag.known is None:
        return Moment(flag.x, "bad", found.subject, found.message, event, flag.lane, number)
    text = f"{found.message} (known: {flag.known.id})"
    return Moment(flag.x, "known", found.subject, text, event, flag.lane, number)


def _facts(header: Header | None) -> dict[str, str]:
    if header is None:
        return {}
    found = {key: _fact(value) for key, value in header.facts.items() if key not in _NOT_SHOWN}
    found |= {"run": header.run, "cluster": header.cluster}
    return {key: value for key, value in found.items() if value}


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        known = [str(value[key]) for key in ("name", "version") if value.get(key)]
        return " ".join(known) or says(value)
    if isinstance(value, list | tuple):
        return ", ".join(_fact(each) for each in value)
    return "" if value is None else str(value)


def _start(span: Span) -> float:
    return span.start
