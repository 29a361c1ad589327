"""How often something may fail, seen from how often it did: exact binomial bounds.

Clopper and Pearson (1934). They hold for the few attempts that a cell has, where approximations
(Wald, and to some degree Wilson) say too little: after 3 passes of 3 a test may still fail in up
to 63 of 100 runs.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

#: one-sided
CONFIDENCE = 0.95


def upper(failed: int, attempts: int, confidence: float = CONFIDENCE) -> float:
    """The largest failure rate with which so few failures are not a surprise (0..1)."""
    _check(failed, attempts)
    if failed == attempts:
        return 1.0
    return _root(lambda rate: _at_most(failed, attempts, rate) - (1 - confidence))


def lower(failed: int, attempts: int, confidence: float = CONFIDENCE) -> float:
    """The smallest failure rate with which so many failures are not a surprise (0..1)."""
    _check(failed, attempts)
    if failed == 0:
        return 0.0
    return _root(lambda rate: _at_most(failed - 1, attempts, rate) - confidence)


def _at_most(failed: int, attempts: int, rate: float) -> float:
    """How likely at most so many failures are."""
    return sum(
        comb(attempts, k) * rate**k * (1 - rate) ** (attempts - k) for k in range(failed + 1)
    )


def _root(falling: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _check(failed: int, attempts: int) -> None:
    if not 0 <= failed <= attempts or attempts == 0:
        raise ValueError(f"{failed} failures of {attempts} attempts")
