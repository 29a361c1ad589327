"""What is proven, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles.catalogue import catalogue
from oracles.errors import UsageError
from oracles.invariants import ALL
from oracles.outcome import Outcome
from oracles.proofs import Proof, collected, read, write


def proof(**changes: object) -> Proof:
    said = {
        "proves": "T03",
        "rule": "replica-counts",
        "by": "the counts were blanked",
        "expected": Outcome.FAIL,
        "outcome": Outcome.FAIL,
        "shown": "T03 replica-counts: went blank",
        "held": True,
        "test": "t",
        "seconds": 1.0,
        "versions": {"kubernetes": "1.34.4"},
        "date": "2026-01-01T00:00:00Z",
    }
    return Proof.model_validate({**said, **changes})


def test_what_no_proof_covers() -> None:
    known = catalogue()
    tested = [each.id for each in known.behaviours if each.id not in known.planned]
    rules = [rule.name for rule in ALL]
    nothing = collected([]).unproven
    assert (nothing.behaviours, nothing.invariants) == (tested, rules)

    some = collected([proof(), proof(proves=tested[0], rule="")]).unproven
    assert some.behaviours == [id for id in tested[1:] if id != "T03"]
    assert some.invariants == [name for name in rules if name != "replica-counts"]


@pytest.mark.parametrize("changes", [{"held": False}, {"expected": "PASS", "outcome": "PASS"}])
def test_only_what_was_condemned_rightly_is_proven(changes: dict[str, object]) -> None:
    assert collected([proof(**changes)]).unproven == collected([]).unproven


def test_the_latest_of_the_same_counts_and_files_merge(tmp_path: Path) -> None:
    path = tmp_path / "proofs.json"
    write(path, [proof(seconds=1), proof(by="another way")])
    later = proof(seconds=2, date="2026-01-02T00:00:00Z")
    elsewhere = proof(versions={"kubernetes": "1.28.9"})
    made = write(path, [later, elsewhere])
    assert made == read(path)
    assert [(p.by, p.seconds) for p in made.proofs] == [
        ("another way", 1),
        ("the counts were blanked", 1),
        ("the counts were blanked", 2),
    ]


@pytest.mark.parametrize(
    ("text", "says"), [("", "no proofs"), ("[]", "no proofs"), ('{"proofs": 1}', "proofs: ")]
)
def test_a_file_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "proofs.json"
    with pytest.raises(UsageError, match="no readable proofs"):
        read(path)
    path.write_text(text)
    with pytest.raises(UsageError, match=says):
        read(path)
