"""What can go wrong with faults."""

from __future__ import annotations

from oracles.errors import HarnessError, NotApplicable


class FaultError(HarnessError):
    """A fault could not be injected or undone."""


class NotProven(FaultError):
    """Nothing shows that the fault happened: whatever came after says nothing about it."""


class NotReached(FaultError):
    """The moment that a fault was aimed at did not come before its deadline."""


class NotMended(FaultError):
    """Something that was broken on purpose is still broken."""


class NotOurs(NotApplicable):
    """The fault would touch what the harness did not make, and nobody allowed it."""
