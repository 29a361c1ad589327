"""What a judged history means: findings, gaps, reasons, the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from oracles.invariants.base import Violation
from oracles.known import KnownFault, KnownFaults, known
from oracles.outcome import Outcome, combine


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
        unsure: those that what fell into a gap, or a crowded host, might excuse.
        gaps: gaps in what it depends on.
        untold: violations beyond those that are told in full.
        failed: why it could not judge to the end: a fault of ours, or an object of no known form.
    """

    invariant: str
    behaviour: str
    judged: int
    violations: tuple[Violation, ...] = ()
    unsure: tuple[Violation, ...] = ()
    gaps: tuple[Gap, ...] = ()
    untold: int = 0
    failed: str = ""

    @property
    def exercised(self) -> bool:
        """Whether it had anything to judge."""
        return self.judged > 0

    @property
    def doubtful(self) -> bool:
        """Whether something was missed that might be a violation, or might excuse one."""
        return bool(self.unsure or self.failed) or any(not gap.late for gap in self.gaps)

    @property
    def outcome(self) -> Outcome:
        """FAIL, INCONCLUSIVE, PASS; NOT_APPLICABLE when nothing was there to judge."""
        if self.violations:
            return Outcome.FAIL
        if self.doubtful:
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
        """All that what fell into a gap, or a crowded host, might excuse."""
        return sorted((v for f in self.findings for v in f.unsure), key=lambda v: v.t)

    @property
    def not_exercised(self) -> list[str]:
        """Names of the invariants that had nothing to judge."""
        return [f.invariant for f in self.findings if not f.exercised]

    @property
    def doubtful(self) -> bool:
        """Whether nobody can say of some invariant, whatever others found."""
        return any(f.doubtful for f in self.findings)

    @property
    def outcome(self) -> Outcome:
        """Of all invariants together.

        A history with a gap is INCONCLUSIVE even where no invariant had anything to judge.
        """
        if self.violations:
            return Outcome.FAIL
        outcomes: set[Outcome] = {f.outcome for f in self.findings}
        if self.excused:
            # what a published fault explains must not hide what was missed beside it
            outcomes.discard(Outcome.FAIL)
            outcomes.add(Outcome.KNOWN)
            if self.doubtful:
                outcomes.add(Outcome.INCONCLUSIVE)
        return combine(outcomes)

    def reasons(self) -> list[str]:
        """Why it is not PASS, a line each."""
        lines = [tell(v) for v in self.violations]
        lines += [f"{tell(v)} (known: {k.id}, {k.link})" for v, k in self.excused]
        lines += [f"{tell(v)} ({why_unsure(v)})" for v in self.unsure]
        lines += [f"{f.invariant} could not judge: {f.failed}" for f in self.findings if f.failed]
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
            texts = [violation.text for violation in own]
            entry = faults.match(behaviour, case, versions, texts)
            if entry is not None:
                excused += [(violation, entry) for violation in own]
        return replace(self, excused=tuple(excused))

    def doubting(self, patient: Judgement, why: str) -> Judgement:
        """The same, with what a more patient judge does not find, and no published fault explains,
        taken for unsure.

        Args:
            patient: what that judge found in the same history.
            why: the reason for more patience.
        """
        stands = {(v.invariant, v.subject) for f in patient.findings for v in f.violations}
        excused = {id(violation) for violation, _ in self.excused}
        findings = []
        for finding in self.findings:
            moved = [
                v for v in finding.violations
                if id(v) not in excused and (v.invariant, v.subject) not in stands
            ]  # fmt: skip
            left = tuple(v for v in finding.violations if v not in moved)
            unsure = (*finding.unsure, *(replace(v, doubt=why) for v in moved))
            findings.append(replace(finding, violations=left, unsure=unsure))
        return replace(self, findings=tuple(findings))


def why_unsure(violation: Violation) -> str:
    """Why nobody can say whether it stands, in words."""
    if violation.doubt:
        return f"{violation.doubt}, so that nobody can say"
    return "something was missed meanwhile"


def tell(violation: Violation) -> str:
    """A violation in a line: who, what, which promise, which events."""
    events = ", ".join(map(str, violation.events))
    return (
        f"{violation.subject}: {violation.message} "
        f"[{violation.behaviour} {violation.invariant}; events {events or 'none'}]"
    )
