"""The two trees of errors that every room uses.

A fault of ours and a fault of the system under test must never be mixed up: the first makes an
attempt INCONCLUSIVE, the second makes it FAIL. pytest and Allure tell them apart by type
(Allure marks an ``AssertionError`` *failed* and anything else *broken*), so they do not share a
parent of our own.
"""

from __future__ import annotations


class HarnessError(Exception):
    """The harness could not do, or could not say, something. Outcome: INCONCLUSIVE.

    The message says what happened, to which object; ``hint`` says what to do next.
    """

    #: exit code of a command that ends with this error (CONVENTIONS: 3 is infrastructure)
    exit_code: int = 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\n  next: {self.hint}" if self.hint else text


class UsageError(HarnessError):
    """What was asked for does not exist or makes no sense: an option, a version, a file."""

    exit_code = 2


class NotApplicable(HarnessError):
    """The system under test or the provider does not have what a behaviour needs.

    Outcome: NOT_APPLICABLE, with the message as the reason; never a silent pass.
    """

    exit_code = 0


class InvariantViolation(AssertionError):
    """The system under test broke a promise. Outcome: FAIL."""
