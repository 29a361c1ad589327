"""What can go wrong with faults."""

from __future__ import annotations

from oracles.errors import HarnessError


class FaultError(HarnessError):
    """A fault could not be injected or undone."""


class NotProven(FaultError):
    """Nothing shows that the fault happened: whatever came after says nothing about it."""
