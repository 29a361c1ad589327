"""What an attempt, a cell or a run means, and the exit code that says so."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Outcome(StrEnum):
    """The meaning of what was seen.

    PASS: the promise was kept. FAIL: the system under test broke it. INCONCLUSIVE: the harness
    cannot say (infrastructure, a fault that is not proven, a test that did not run).
    NOT_APPLICABLE: the system, or the provider, does not promise it. KNOWN: it broke as a
    published upstream fault of these versions says.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    KNOWN = "KNOWN"

    @property
    def judged(self) -> bool:
        """Whether the system under test was really put to the test."""
        return self in (Outcome.PASS, Outcome.FAIL, Outcome.KNOWN)


class ExitCode(IntEnum):
    """Exit codes of every ``python -m ...`` of ours, and of pytest through the plugin."""

    OK = 0
    BEHAVIOURS = 1
    USAGE = 2
    INFRASTRUCTURE = 3

    @property
    def word(self) -> str:
        """As in the line that ends a make target: ``result: ok``."""
        return self.name.lower()


#: strongest first: a broken promise is not hidden by what else went wrong, and a part that nobody
#: could judge is not hidden by the parts that went well
_ORDER = (
    Outcome.FAIL,
    Outcome.INCONCLUSIVE,
    Outcome.KNOWN,
    Outcome.PASS,
    Outcome.NOT_APPLICABLE,
)


def combine(outcomes: Iterable[Outcome]) -> Outcome:
    """One outcome for several: of the phases of an attempt, or of the attempts of a cell.

    FAIL outranks INCONCLUSIVE, which outranks all others. Of nothing it is INCONCLUSIVE: what did
    not run was not shown.
    """
    seen = set(outcomes)
    return next((outcome for outcome in _ORDER if outcome in seen), Outcome.INCONCLUSIVE)


def exit_code(outcomes: Iterable[Outcome]) -> ExitCode:
    """The exit code of a run with these attempts.

    A run in which nothing was judged (no attempt, or all of them NOT_APPLICABLE) shows nothing,
    and is never green.
    """
    seen = set(outcomes)
    if Outcome.FAIL in seen:
        return ExitCode.BEHAVIOURS
    if Outcome.INCONCLUSIVE in seen or not any(outcome.judged for outcome in seen):
        return ExitCode.INFRASTRUCTURE
    return ExitCode.OK
