"""Proofs: systems that were broken on purpose, and what the harness said of them.

A judge that was never seen to condemn proves nothing by acquitting. ``make prove`` breaks real
systems from outside, and keeps a row for each in ``proofs.json``: what was broken, which outcome
that has to have, which it had, and in which words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from oracles.catalogue import catalogue
from oracles.errors import UsageError
from oracles.outcome import Outcome
from oracles.strict import Strict, problems

FILE = "proofs.json"


class Proof(Strict):
    """One broken system.

    Attributes:
        proves: the behaviour that was broken, or the part of the harness that it is about
            (``recorder``).
        rule: the invariant that has to say so; "" where it is a test's own assertion.
        by: how the system was broken, in a few words.
        shown: what the harness said.
        held: whether that is the right outcome, for the right reason.
        seconds: of the test's body.
        versions: of all that took part.
        date: UTC, ISO 8601.
    """

    proves: str = Field(min_length=1)
    rule: str = ""
    by: str = Field(min_length=5)
    expected: Outcome
    outcome: Outcome
    shown: str
    held: bool
    test: str
    seconds: float = Field(ge=0)
    versions: dict[str, str]
    date: str


class Unproven(Strict):
    """What no proof covers."""

    behaviours: list[str]
    invariants: list[str]


class Proofs(Strict):
    """The whole file."""

    format: Literal["proofs.v1"] = "proofs.v1"
    proofs: list[Proof]
    unproven: Unproven


def collected(proofs: Iterable[Proof]) -> Proofs:
    """All proofs, of one run or of several, and what they leave unproven.

    Of the same system broken in the same way on the same versions, the last counts.
    """
    latest: dict[tuple[str, ...], Proof] = {}
    for proof in sorted(proofs, key=lambda each: each.date):
        versions = (f"{name} {version}" for name, version in sorted(proof.versions.items()))
        latest[proof.proves, proof.rule, proof.by, *versions] = proof
    found = sorted(latest.values(), key=lambda each: (each.proves, each.rule, each.by, each.date))
    return Proofs(proofs=found, unproven=unproven(found))


def unproven(proofs: Iterable[Proof]) -> Unproven:
    """Behaviours with a test, and invariants, that were never seen to condemn anything."""
    from oracles.invariants import ALL

    good = [proof for proof in proofs if proof.held and proof.expected is Outcome.FAIL]
    behaviours = {proof.proves for proof in good}
    rules = {proof.rule for proof in good}
    known = catalogue()
    tested = [each.id for each in known.behaviours if each.id not in known.planned]
    return Unproven(
        behaviours=[id for id in tested if id not in behaviours],
        invariants=[rule.name for rule in ALL if rule.name not in rules],
    )


def read(path: Path) -> Proofs:
    """A file of proofs.

    Raises:
        UsageError: not readable, or not of that form.
    """
    try:
        return Proofs.model_validate(json.loads(path.read_text()))
    except OSError as error:
        raise UsageError(f"{path}: no readable proofs: {error.strerror}") from error
    except ValueError as error:
        text = problems(error) if isinstance(error, ValidationError) else str(error)
        raise UsageError(f"{path}: no proofs:\n{text}") from error


def write(path: Path, proofs: Iterable[Proof]) -> Proofs:
    """Write proofs, with those that the file has already; what it holds then."""
    before = read(path).proofs if path.exists() else []
    found = collected([*before, *proofs])
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(found.model_dump(mode="json"), indent=1) + "\n")
    partial.replace(path)
    return found


def now() -> str:
    """The time, as proofs have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
