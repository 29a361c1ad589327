"""What an experiment means, from chaostoolkit's journal, the activities' own notes, the history.

chaostoolkit's own verdict will not do: an action that fails still ends ``completed``, not deviated;
checks of the hypothesis that failed in between do not count when the last one holds; and rollbacks
that failed do not count at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chaos.activities import FILE, SKIPPED
from chaos.experiments import Extension
from oracles import judging, telling
from oracles.errors import UsageError
from oracles.judgement import Judgement
from oracles.known import known
from oracles.outcome import Outcome, combine
from oracles.reading import History, HistoryError


@dataclass(frozen=True)
class Verdict:
    """What an experiment means.

    Attributes:
        reasons: a line for each thing that is not as it should be.
        measures: what activities found out, by their names: seconds, world sizes.
        violations: what makes it a FAIL, each as the test of an experiment says it.
        unsure: something of it is INCONCLUSIVE, whatever else is.
    """

    outcome: Outcome
    reasons: tuple[str, ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)
    violations: tuple[str, ...] = ()
    unsure: bool = False

    def text(self) -> str:
        """For a terminal."""
        return "\n  ".join([self.outcome.value, *self.reasons])

    def as_json(self) -> dict[str, Any]:
        """For a journal."""
        return {
            "outcome": self.outcome.value,
            "reasons": list(self.reasons),
            "measures": dict(self.measures),
        }

    def and_also(self, other: Verdict) -> Verdict:
        """Both together."""
        return Verdict(
            combine([self.outcome, other.outcome]),
            (*self.reasons, *other.reasons),
            {**self.measures, **other.measures},
            (*self.violations, *other.violations),
            self.in_part_unsure or other.in_part_unsure,
        )

    @property
    def in_part_unsure(self) -> bool:
        """Whether a part of it is INCONCLUSIVE: no published fault may hide that."""
        return self.unsure or self.outcome is Outcome.INCONCLUSIVE

    def unless_published(self, behaviour: str, case: str, versions: Mapping[str, str]) -> Verdict:
        """KNOWN instead of FAIL where one published fault explains all that failed.

        INCONCLUSIVE where nobody can say of the rest: what was left broken, or not seen.

        Args:
            behaviour, case: of the catalogue, as the test of the experiment has them.
            versions: of what was under test.
        """
        if self.outcome is not Outcome.FAIL:
            return self
        entry = known().match(behaviour, case, versions, self.violations)
        if entry is None:
            return self
        reason = f"{entry.id}: {entry.note} {entry.link}"
        outcome = Outcome.INCONCLUSIVE if self.in_part_unsure else Outcome.KNOWN
        return replace(self, outcome=outcome, reasons=(reason, *self.reasons))


def notes_of(folder: Path) -> list[dict[str, Any]]:
    """What the activities wrote down; a last line that was cut off is left out."""
    path = folder / FILE
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def of_journal(journal: Mapping[str, Any], notes: Sequence[Mapping[str, Any]]) -> Verdict:
    """From chaostoolkit's journal and the activities' notes.

    Args:
        notes: lines of ``activities.jsonl``, in their order.
    """
    found = [
        (Outcome(note["outcome"]), str(note["reason"]))
        for note in notes
        if note["outcome"] not in (Outcome.PASS, SKIPPED)
    ]
    if _unmet_before(journal):  # nothing was done to the system yet: it cannot have failed
        found = [
            (Outcome.INCONCLUSIVE if outcome is Outcome.FAIL else outcome, reason)
            for outcome, reason in found
        ]
    found += list(_of_states(journal, noted=bool(found)))
    reasons = tuple(dict.fromkeys(reason for _, reason in found))
    outcomes = {outcome for outcome, _ in found}
    if outcomes == {Outcome.NOT_APPLICABLE}:
        return Verdict(Outcome.NOT_APPLICABLE, reasons)
    outcomes.discard(Outcome.NOT_APPLICABLE)
    failed = dict.fromkeys(f" No: {reason}" for outcome, reason in found if outcome is Outcome.FAIL)
    outcome = combine(outcomes or {Outcome.PASS})
    unsure = Outcome.INCONCLUSIVE in outcomes
    return Verdict(outcome, reasons, _measures(journal), tuple(failed), unsure)


def _of_states(journal: Mapping[str, Any], *, noted: bool) -> Iterator[tuple[Outcome, str]]:
    """*noted*: an activity of ours has said what went wrong, and what that means."""
    states = journal.get("steady_states") or {}
    before, after = states.get("before") or {}, states.get("after") or {}
    runs, rollbacks = journal.get("run") or [], journal.get("rollbacks") or []
    unsure = Outcome.INCONCLUSIVE
    if journal.get("status") == "interrupted":
        yield unsure, "it was interrupted before its end"
    if _unmet_before(journal):
        yield unsure, f"nothing was done: before it, {_unmet(before)} did not hold"
    elif not runs:
        yield unsure, "no activity of its method was run"
    elif not after and not noted and journal.get("status") != "interrupted":
        yield unsure, "its hypothesis was not looked at afterwards"
    for item in runs:
        if not item.get("status"):
            yield unsure, f"{_name(item)!r} did not come to its end"
        elif item["status"] != "succeeded" and not noted:
            yield unsure, f"{_name(item)} {item.get('status')}: {_why(item)}"
    for item in states.get("during") or []:
        if not item.get("steady_state_met"):
            yield Outcome.FAIL, f"while it went on, {_unmet(item)} did not hold"
    if after and not after.get("steady_state_met") and not noted:
        yield Outcome.FAIL, f"after it, {_unmet(after)} does not hold"
    for item in rollbacks:
        if item.get("status") != "succeeded":
            yield unsure, f"rollback {_name(item)} {item.get('status')}: {_why(item)}"
    if not rollbacks:
        yield unsure, "its rollbacks were not done"


def _unmet_before(journal: Mapping[str, Any]) -> bool:
    before = (journal.get("steady_states") or {}).get("before") or {}
    return bool(before) and not before.get("steady_state_met")


def of_history(path: Path, *, case: str = "") -> Verdict:
    """From what all invariants say of a history.

    Args:
        case: whose published faults are expected.
    """
    return _of_history(path, case)[0]


def _of_history(path: Path, case: str) -> tuple[Verdict, Mapping[str, str]]:
    """That, and the versions of what was under test."""
    try:
        history = History(path)
        judgement = judging.judge_history(history, case=case)
    except (HistoryError, UsageError) as error:  # the latter: there is no such file
        return Verdict(Outcome.INCONCLUSIVE, (str(error),)), {}
    return _of_judgement(path, history, judgement), history.header.facts.get("versions") or {}


def _of_judgement(path: Path, history: History, judgement: Judgement) -> Verdict:
    if not judgement.events:
        return Verdict(Outcome.INCONCLUSIVE, (f"{path} is empty: nothing was recorded",))
    outcome = judgement.outcome
    if history.damaged and outcome is not Outcome.FAIL:
        outcome = Outcome.INCONCLUSIVE
    if outcome in (Outcome.PASS, Outcome.NOT_APPLICABLE):  # the latter: nothing to judge in it
        return Verdict(outcome)
    return Verdict(
        outcome,
        (telling.text(path, judgement, history.damage),),
        violations=tuple(violation.text for violation in judgement.violations),
        unsure=bool(history.damaged or judgement.doubtful),
    )


def of_run(verdict: Verdict, about: Extension, case: str, history: Path) -> Verdict:
    """From what its journal means, and its history; published faults are KNOWN.

    Args:
        case: name of the experiment; "" for one that is not ours.
    """
    if verdict.outcome is Outcome.NOT_APPLICABLE:
        return verdict
    shown, versions = _of_history(history, case)
    return verdict.and_also(shown).unless_published(about.behaviour, case, versions)


def _measures(journal: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in journal.get("run") or []:
        output, name = item.get("output"), _name(item)
        if isinstance(output, dict) and isinstance(output.get("after"), int | float):
            found[f"{name}: after"] = float(output["after"])
        if isinstance(output, dict) and isinstance(output.get("world"), int | float):
            found[f"{name}: world"] = float(output["world"])
    return found


def _unmet(state: Mapping[str, Any]) -> str:
    for probe in state.get("probes") or []:
        if not probe.get("tolerance_met") or probe.get("status") != "succeeded":
            return f"{_name(probe)!r} ({_why(probe) or probe.get('output')})"
    return "the hypothesis"


def _name(item: Mapping[str, Any]) -> str:
    return str((item.get("activity") or {}).get("name", "an activity"))


def _why(item: Mapping[str, Any]) -> str:
    lines = item.get("exception") or []
    return str(lines[-1]).strip() if lines else ""
