"""A storm from its schedule to its verdict, and to a shorter one that still fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.experiments import verdicts
from chaos.experiments.verdicts import Verdict
from chaos.session import open_session
from chaos.standing import Asked, standing
from chaos.storm import blowing, failing, shrinking
from chaos.storm.blowing import Storm
from chaos.storm.schedule import Schedule, Strike
from clusters.progress import say
from oracles.errors import HarnessError
from oracles.outcome import Outcome
from oracles.reading import History

SCHEDULE = "schedule.json"


@dataclass(frozen=True)
class Result:
    """What became of a storm.

    Attributes:
        folder: where its schedule, its log and its history are.
        runs: how many storms it took to find it.
    """

    schedule: Schedule
    storm: Storm
    verdict: Verdict
    folder: Path
    runs: int = 1

    @property
    def signature(self) -> frozenset[str]:
        """What failed, without numbers and names: two storms that share some fail alike.

        What a published fault explains does not count, nor what nobody can say.
        """
        return frozenset(kind(violation) for violation in self.verdict.violations)

    def text(self) -> str:
        """For a terminal."""
        found = self.storm
        lines = [
            f"{self.verdict.outcome.value}  storm of seed {self.schedule.seed}:"
            f" {found.done} of {len(self.schedule.strikes)} strikes hit something",
            *(f"  {reason}" for reason in self.verdict.reasons),
            f"  again: python -m chaos storm --replay {self.folder / SCHEDULE}",
        ]
        return "\n".join(lines)


def kind(reason: str) -> str:
    """A reason without what differs from run to run.

    >>> kind("PyTorchJob s12 succeeds within 300 s of calm: s12 Succeeded: not within 300 s")
    'PyTorchJob succeeds within'
    """
    head = reason.partition(":")[0]
    words = [w for w in head.split() if not any(letter.isdigit() for letter in w)]
    return " ".join(words[:3])


def run(asked: Asked, schedule: Schedule) -> Result:
    """Blow a storm on a cluster that is up, and judge it.

    Raises:
        HarnessError: there is no such cluster, or it is not in order.
    """
    with standing(asked, "storm") as (handover, recorder):
        folder = Path(handover.folder)
        schedule.write(folder / SCHEDULE)
        session = open_session(handover, recorder)
        try:
            storm = blowing.blow(session, schedule, folder)
        finally:
            session.close()
    history = folder / "history.jsonl"
    storm.broken += failing.told(history, storm.failed)
    versions = History(history).header.facts.get("versions", {})
    verdict = of_storm(storm, versions).and_also(verdicts.of_history(history, case=failing.CASE))
    return Result(schedule, storm, verdict, folder)


def of_storm(storm: Storm, versions: Mapping[str, str]) -> Verdict:
    """What the end of a storm means by itself; *versions*: of what was under test."""
    found = {line: failing.published(line, versions) for line in storm.broken}
    known = [f"{entry.id}: {line} {entry.link}" for line, entry in found.items() if entry]
    if broken := [line for line, entry in found.items() if entry is None]:
        reasons = (*broken, *known, *storm.unsure)
        return Verdict(Outcome.FAIL, reasons, violations=tuple(broken), unsure=bool(storm.unsure))
    if known:
        outcome = Outcome.INCONCLUSIVE if storm.unsure else Outcome.KNOWN
        return Verdict(outcome, (*known, *storm.unsure))
    if storm.unsure:
        return Verdict(Outcome.INCONCLUSIVE, tuple(storm.unsure))
    if storm.done == 0:
        return Verdict(Outcome.INCONCLUSIVE, ("no strike hit anything",))
    return Verdict(Outcome.PASS)


def shorter(asked: Asked, schedule: Schedule, failed: Result, *, runs: int) -> Result:
    """The shortest part of *schedule* that was found to fail in the same way.

    Args:
        runs: how many storms may be blown for it.
    """
    best = [failed]

    def fails(strikes: Sequence[Strike]) -> bool:
        say(f"shrinking: a storm of {len(strikes)} strikes")
        try:
            result = run(asked, schedule.only(strikes))
        except HarnessError as error:
            say(f"shrinking: it could not be blown: {error}")
            return False
        same = result.verdict.outcome is Outcome.FAIL and bool(result.signature & failed.signature)
        if same:
            best.append(result)
        return same

    _, used = shrinking.shrink(schedule.strikes, fails, runs=runs)
    return replace(best[-1], runs=used)
