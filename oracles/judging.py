"""What a history means: which promises were kept, which broken, and which nobody can tell.

Everything is judged in one pass. An invariant that found nothing is only good if it saw everything
it depends on: a gap in one of its kinds makes it INCONCLUSIVE. A violation stands in spite of a gap
unless the gap lies between the events that prove it, and what was missed there might excuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from oracles.crowd import Crowd
from oracles.graces import Graces, graces
from oracles.history import BEGIN, END, GAP, RESUMED, WATCH, Event
from oracles.invariants import ALL, make
from oracles.invariants.base import Invariant, Violation
from oracles.invariants.world import ANY, World
from oracles.judgement import Finding, Gap, Judgement, tell
from oracles.reading import History, wanted

__all__ = ["Finding", "Gap", "Judgement", "judge", "judge_history", "kinds", "systems", "tell"]

Feed = Callable[[Event], None]

#: seconds by which a watch may lag before what depends on the order of kinds is doubted
LAG = 2.0


def kinds() -> frozenset[str]:
    """Kinds and sources that the judges look at: nothing else need be decoded.

    For :meth:`oracles.reading.History.events`. The world needs pods, nodes, jobs and faults.
    """
    always = {"Pod", "Node", "source:fault", "source:progress"}
    return frozenset(always).union(*(rule.kinds for rule in ALL))


def systems(facts: Mapping[str, Any]) -> list[str]:
    """The systems under test that a history's header names, for their graces."""
    return [str(facts[key]) for key in ("operator", "scheduler") if facts.get(key)]


def judge_history(
    history: History, events: Sequence[Event] | None = None, *, case: str | None = None
) -> Judgement:
    """Judge a file that was just opened: what its header names counts, published faults too.

    Where its header tells of a crowded host, what was late by less than that explains is unsure.

    Whoever judges a file does it here, so that all agree on what it means.

    Args:
        events: all of the file's, where they were read already.
        case: whose published faults are expected; the one in its header by default.
    """
    look, facts = kinds(), history.header.facts

    def judged(file: History, figures: Graces | None = None) -> Judgement:
        seen = file.events(look) if events is None else (e for e in events if wanted(e, look))
        # the last event may be one that nobody looks at, but the file tells of the time until then
        return judge(seen, facts=facts, now=lambda: file.last, figures=figures)

    judgement = judged(history)
    versions = facts.get("versions")
    if isinstance(versions, dict):
        named = {str(name): str(version) for name, version in versions.items()}
        judgement = judgement.but_known(
            named, case=str(facts.get("case", "")) if case is None else case
        )
    if judgement.violations and (crowd := Crowd.of(facts)) is not None:
        again = history if events is not None else History(history.path)
        patient = judged(again, crowd.patient(graces(systems(facts))))
        judgement = judgement.doubting(patient, str(crowd))
    return judgement


def judge(
    events: Iterable[Event],
    *,
    invariants: Callable[[World, Graces], Sequence[Invariant]] | None = None,
    now: float | Callable[[], float] = 0.0,
    facts: Mapping[str, Any] | None = None,
    figures: Graces | None = None,
    namespaces: Set[str] | None = None,
) -> Judgement:
    """Judge a history.

    Args:
        events: in the order in which things happened (:func:`oracles.ordering.ordered`).
        invariants: makes them; all of ours by default.
        now: monotonic time at which the history ends, asked for after its last event; not before
            that one. Bounds that are not over by then give no verdict.
        facts: of the header; they name the systems whose graces count.
        figures: graces that count instead.
        namespaces: only objects of these, or of none, are judged; a slice's own by default. The
            world has the others too: pods of other tests take GPUs of the same nodes, but what
            goes wrong with them is told elsewhere.
    """
    facts = facts or {}
    part = facts.get("slice") or {}
    figures = figures if figures is not None else graces(systems(facts))
    own = namespaces if namespaces is not None else frozenset(part.get("namespaces") or ()) or None
    world = World(origin=float(part.get("started") or 0.0))
    rules: list[Invariant] = list((invariants or make)(world, figures))
    fed = _Feeds(rules)
    watched, sources = fed.kinds, fed.sources
    pods: dict[int, Sequence[Feed]] = {}  # by what changed; few combinations ever occur
    gaps = _Gaps()
    see = world.feed
    count, start, last = 0, None, None
    nobody: Sequence[Feed] = ()
    feeds: Sequence[Feed] | None
    for event in events:
        count += 1
        if start is None:
            start = event.mono
        last = event
        try:
            see(event)
        except Exception:  # an object that is not formed as its kind is: as if it was not seen
            gaps.unreadable(event)
            continue
        if own is not None and event.namespace and event.namespace not in own:
            continue
        if event.source == WATCH:
            if event.kind == "Pod":
                changed = world.changed
                feeds = pods.get(changed)
                if feeds is None:
                    feeds = pods[changed] = fed.for_pod(changed)
            else:
                feeds = watched.get(event.kind, nobody)
        else:
            if event.source == GAP:
                gaps.feed(event)
            feeds = sources.get(event.source, nobody)
        for feed in feeds:
            try:
                feed(event)
            except Exception as error:
                fed.fail(feed, f"event {event.seq}: {type(error).__name__}: {error}")
                pods.clear()
    end = max(now() if callable(now) else now, world.now)
    offset = last.t - last.mono if last is not None else 0.0
    found = gaps.all(end)
    return Judgement(
        findings=tuple(
            _finding(rule, end, offset, found, fed.failed.get(id(rule), "")) for rule in rules
        ),
        events=count,
        start=start or 0.0,
        end=end,
        gaps=tuple(found),
    )


class _Feeds:
    """Who is fed with what."""

    def __init__(self, rules: Sequence[Invariant]) -> None:
        self.kinds: dict[str, list[Feed]] = {}
        self.sources: dict[str, list[Feed]] = {}
        self._pods: list[tuple[int, Feed]] = []
        #: why an invariant is not fed any more, by its id
        self.failed: dict[int, str] = {}
        self._rules: dict[int, Invariant] = {}
        for rule in rules:
            self._put(rule)

    def _put(self, rule: Invariant) -> None:
        feed = rule.feed
        self._rules[id(feed)] = rule
        for kind in rule.kinds:
            source, sign, name = kind.partition(":")
            if sign and source == "source":
                self.sources.setdefault(name, []).append(feed)
            elif kind == "Pod":
                self._pods.append((getattr(rule, "wants", ANY), feed))
            else:
                self.kinds.setdefault(kind, []).append(feed)

    def fail(self, feed: Feed, why: str) -> None:
        """Feed it no more. Others go on; of this one nobody can tell."""
        self.failed[id(self._rules[id(feed)])] = why
        self._pods = [pair for pair in self._pods if pair[1] is not feed]
        for place in (self.kinds, self.sources):
            for name, feeds in place.items():
                place[name] = [one for one in feeds if one is not feed]

    def for_pod(self, changed: int) -> list[Feed]:
        """Those that want to know of such changes of a pod."""
        return [feed for wants, feed in self._pods if changed & wants]


class _Gaps:
    """Gaps as their frames come by."""

    def __init__(self) -> None:
        self._open: dict[str, list[Event]] = {}
        self._found: list[Gap] = []

    def feed(self, event: Event) -> None:
        if event.type == BEGIN:
            self._open.setdefault(event.kind, []).append(event)
        elif event.type == END:
            begun = self._open.get(event.kind) or [event]
            begin = begun.pop()
            self._found.append(Gap(event.kind, begin.seq, event.seq, begin.mono, event.mono))
        elif event.type == RESUMED:
            since = float(event.object.get("since", event.mono))
            if event.mono - since > LAG:
                self._found.append(
                    Gap(event.kind, event.seq, event.seq, since, event.mono, late=True)
                )

    def unreadable(self, event: Event) -> None:
        """An event that cannot be understood."""
        self._found.append(Gap(event.kind, event.seq, event.seq, event.mono, event.mono))

    def all(self, end: float) -> list[Gap]:
        for kind, begun in self._open.items():
            for begin in begun:
                self._found.append(Gap(kind, begin.seq, 0, begin.mono, max(end, begin.mono)))
        self._open = {}
        return sorted(self._found, key=lambda gap: gap.start)


def _finding(
    rule: Invariant,
    end: float,
    offset: float,
    gaps: Sequence[Gap],
    failed: str,
) -> Finding:
    own = tuple(gap for gap in gaps if gap.touches(_depends(rule)))
    stand: list[Violation] = []
    unsure: list[Violation] = []
    found: list[Violation] = []
    if not failed:
        try:
            found = rule.finish(end)
        except Exception as error:
            failed = f"at the end: {type(error).__name__}: {error}"
    for violation in found:
        doubted = not getattr(rule, "within_one", False) and any(
            _between(gap, violation) for gap in own
        )
        wall = replace(violation, t=violation.t + offset)
        (unsure if doubted else stand).append(wall)
    judged = getattr(rule, "judged", None)
    return Finding(
        invariant=rule.name,
        behaviour=rule.behaviour,
        # an invariant that does not count itself is taken to have judged
        judged=1 if judged is None else judged,
        violations=tuple(stand),
        unsure=tuple(unsure),
        gaps=own,
        untold=getattr(rule, "untold", 0),
        failed=failed,
    )


def _depends(rule: Invariant) -> frozenset[str]:
    # a gap of a source that is not watched (progress lines, faults) carries the source as its kind
    return rule.kinds | {kind.partition(":")[2] for kind in rule.kinds if ":" in kind}


def _between(gap: Gap, violation: Violation) -> bool:
    """Whether the gap lies, even in part, between the first and the last thing that prove it."""
    if not violation.events:
        return True
    first, last = violation.events[0], violation.events[-1]
    if gap.last and gap.last < first:
        return False
    return violation.lasting or gap.first < last
