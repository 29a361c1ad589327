"""What a history means: which promises were kept, which broken, and which nobody can tell.

Everything is judged in one pass. An invariant that found nothing is only good if it saw everything
it depends on: a gap in one of its kinds makes it INCONCLUSIVE. A violation stands in spite of a gap
unless the gap lies between the events that prove it, and what was missed there might excuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from oracles.graces import Graces, graces
from oracles.history import BEGIN, END, GAP, RESUMED, WATCH, Event
from oracles.invariants import ALL, make
from oracles.invariants.base import Invariant, Violation
from oracles.invariants.world import ANY, World
from oracles.known import KnownFault, KnownFaults, known
from oracles.outcome import Outcome, combine

Feed = Callable[[Event], None]

#: seconds by which a watch may lag before what depends on the order of kinds is doubted
LAG = 2.0


@dataclass(frozen=True)
class Gap:
    """A time in which events of a kind were, or may have been, missed, or came late.

    Attributes:
        kind: "" for all kinds.
        first, last: numbers of the events that frame it; *last* is 0 while it is open.
        start, end: monotonic seconds.
        late: nothing was missed, but it came late.
    """

    kind: str
    first: int
    last: int
    start: float
    end: float
    late: bool = False

    def touches(self, kinds: frozenset[str]) -> bool:
        """Whether one of *kinds* fell into it."""
        return not self.kind or self.kind in kinds


@dataclass(frozen=True)
class Finding:
    """What one invariant found.

    Attributes:
        judged: how many times it had something to judge; 0: *not exercised*.
        violations: those that stand.
        unsure: those that what fell into a gap might excuse.
        gaps: gaps in what it depends on.
        untold: violations beyond those that are told in full.
    """

    invariant: str
    behaviour: str
    judged: int
    violations: tuple[Violation, ...] = ()
    unsure: tuple[Violation, ...] = ()
    gaps: tuple[Gap, ...] = ()
    untold: int = 0

    @property
    def exercised(self) -> bool:
        """Whether it had anything to judge."""
        return self.judged > 0

    @property
    def outcome(self) -> Outcome:
        """FAIL, INCONCLUSIVE, PASS; NOT_APPLICABLE when nothing was there to judge."""
        if self.violations:
            return Outcome.FAIL
        if self.unsure or any(not gap.late for gap in self.gaps):
            return Outcome.INCONCLUSIVE
        return Outcome.PASS if self.exercised else Outcome.NOT_APPLICABLE


@dataclass(frozen=True)
class Judgement:
    """What a history means.

    Attributes:
        findings: of each invariant.
        events: how many events were judged.
        start, end: monotonic seconds of the first and the last one.
        gaps: all of them.
        excused: violations that published faults explain, with those.
    """

    findings: tuple[Finding, ...]
    events: int
    start: float
    end: float
    gaps: tuple[Gap, ...] = ()
    excused: tuple[tuple[Violation, KnownFault], ...] = field(default=())

    @property
    def violations(self) -> list[Violation]:
        """All that stand and that no published fault explains, by time."""
        excused = {id(violation) for violation, _ in self.excused}
        found = [v for f in self.findings for v in f.violations if id(v) not in excused]
        return sorted(found, key=lambda v: v.t)

    @property
    def unsure(self) -> list[Violation]:
        """All that what fell into a gap might excuse."""
        return sorted((v for f in self.findings for v in f.unsure), key=lambda v: v.t)

    @property
    def not_exercised(self) -> list[str]:
        """Names of the invariants that had nothing to judge."""
        return [f.invariant for f in self.findings if not f.exercised]

    @property
    def outcome(self) -> Outcome:
        """Of all invariants together.

        A history with a gap is INCONCLUSIVE even where no invariant had anything to judge.
        """
        if self.violations:
            return Outcome.FAIL
        outcomes = [
            Outcome.KNOWN if f.outcome is Outcome.FAIL else f.outcome for f in self.findings
        ]
        return combine(outcomes)

    def reasons(self) -> list[str]:
        """Why it is not PASS, a line each."""
        lines = [tell(v) for v in self.violations]
        lines += [f"{tell(v)} (known: {k.id}, {k.link})" for v, k in self.excused]
        lines += [f"{tell(v)} (something was missed meanwhile)" for v in self.unsure]
        for gap in self.gaps:
            if not gap.late:
                what = gap.kind or "all kinds"
                lines.append(
                    f"events of {what} were missed for {gap.end - gap.start:.1f} s "
                    f"(events {gap.first} to {gap.last or 'the end'})"
                )
        return lines

    def but_known(
        self,
        versions: Mapping[str, str],
        *,
        case: str = "",
        faults: KnownFaults | None = None,
    ) -> Judgement:
        """The same, with what published faults of these *versions* explain taken off.

        A fault explains violations of its own behaviour only, and of one behaviour all or none.
        """
        faults = faults if faults is not None else known()
        by_behaviour: dict[str, list[Violation]] = {}
        for finding in self.findings:
            for violation in finding.violations:
                by_behaviour.setdefault(violation.behaviour, []).append(violation)
        excused = []
        for behaviour, own in by_behaviour.items():
            texts = [f"{v.signature}: {v.message}" for v in own]
            entry = faults.match(behaviour, case, versions, texts)
            if entry is not None:
                excused += [(violation, entry) for violation in own]
        return replace(self, excused=tuple(excused))


def tell(violation: Violation) -> str:
    """A violation in a line: who, what, which promise, which events."""
    events = ", ".join(map(str, violation.events))
    return (
        f"{violation.subject}: {violation.message} "
        f"[{violation.behaviour} {violation.invariant}; events {events or 'none'}]"
    )


def kinds() -> frozenset[str]:
    """Kinds and sources that the judges look at: nothing else need be decoded.

    For :meth:`oracles.reading.History.events`. The world needs pods, nodes, jobs and faults.
    """
    always = {"Pod", "Node", "source:fault", "source:progress"}
    return frozenset(always).union(*(rule.kinds for rule in ALL))


def systems(facts: Mapping[str, Any]) -> list[str]:
    """The systems under test that a history's header names, for their graces."""
    return [str(facts[key]) for key in ("operator", "scheduler") if facts.get(key)]


def judge(
    events: Iterable[Event],
    *,
    invariants: Callable[[World, Graces], Sequence[Invariant]] | None = None,
    now: float | None = None,
    facts: Mapping[str, Any] | None = None,
    figures: Graces | None = None,
    namespaces: Set[str] | None = None,
) -> Judgement:
    """Judge a history.

    Args:
        events: in the order in which things happened (:func:`oracles.ordering.ordered`).
        invariants: makes them; all of ours by default.
        now: monotonic time at which the history ends; the last event's by default. Bounds that are
            not over by then give no verdict.
        facts: of the header; they name the systems whose graces count.
        figures: graces that count instead.
        namespaces: only what objects of these, or of none, broke is told; all is looked at. Other
            tests' pods hold GPUs too, but what goes wrong with them is told elsewhere.
    """
    facts = facts or {}
    figures = figures if figures is not None else graces(systems(facts))
    world = World(origin=float((facts.get("slice") or {}).get("started") or 0.0))
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
        see(event)
        if event.source == WATCH:
            if event.kind == "Pod":
                changed = world.changed
                feeds = pods.get(changed)
                if feeds is None:
                    feeds = pods[changed] = fed.for_pod(changed)
            else:
                feeds = watched.get(event.kind, nobody)
            for feed in feeds:
                feed(event)
        else:
            if event.source == GAP:
                gaps.feed(event)
            for feed in sources.get(event.source, nobody):
                feed(event)
    end = max(now if now is not None else 0.0, world.now)
    offset = last.t - last.mono if last is not None else 0.0
    found = gaps.all(end)
    return Judgement(
        findings=tuple(_finding(rule, end, offset, found, namespaces) for rule in rules),
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
        for rule in rules:
            for kind in rule.kinds:
                source, sign, name = kind.partition(":")
                if sign and source == "source":
                    self.sources.setdefault(name, []).append(rule.feed)
                elif kind == "Pod":
                    self._pods.append((getattr(rule, "wants", ANY), rule.feed))
                else:
                    self.kinds.setdefault(kind, []).append(rule.feed)

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

    def all(self, end: float) -> list[Gap]:
        for kind, begun in self._open.items():
            for begin in begun:
                self._found.append(Gap(kind, begin.seq, 0, begin.mono, max(end, begin.mono)))
        self._open = {}
        return sorted(self._found, key=lambda gap: gap.start)


def _finding(
    rule: Invariant, end: float, offset: float, gaps: Sequence[Gap], namespaces: Set[str] | None
) -> Finding:
    own = tuple(gap for gap in gaps if gap.touches(_depends(rule)))
    stand: list[Violation] = []
    unsure: list[Violation] = []
    for violation in rule.finish(end):
        namespace, sign, _ = violation.subject.partition(" ")[2].partition("/")
        if namespaces is not None and sign and namespace not in namespaces:
            continue
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
