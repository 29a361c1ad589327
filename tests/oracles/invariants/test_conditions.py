"""The order of a job's conditions."""

from __future__ import annotations

import pytest

from tests.oracles.build import History, broken, exercised, names

RULE = "condition-transitions"


@pytest.mark.parametrize(
    ("versions", "signature", "behaviour"),
    [
        (["Created", "Created Running Restarting"], "Running and Restarting are both true", "T01"),
        (["Created Running", "Created Running Suspended"], None, "T01"),
        (["Created Running", "Created Running Succeeded"], None, "T02"),
        (["Created Running", "Created Succeeded Failed"], None, "T02"),
        (["Created Succeeded", "Created"], "Succeeded was taken back", "T02"),
        (["Created Failed", "Created -Failed"], "Failed was taken back", "T02"),
        (["Created Failed", "Created Failed Restarting"], "Restarting after Failed", "T02"),
        (["Created Running", "Running"], "Created was taken back", "T01"),
        (["Running"], "Running without Created", "T01"),
        (["Created", "Created Restarting Succeeded"], "Restarting and Succeeded at once", "T02"),
    ],
)
def test_illegal_transitions(versions: list[str], signature: str | None, behaviour: str) -> None:
    h = History()
    job = h.job(Worker=1)
    seqs = [0]
    for version in versions:
        h.after(1)
        seqs.append(job.says(*version.split(), start=1, end=2))
    if signature is None:
        pair = versions[-1].split()[-2:]
        signature = f"{pair[0]} and {pair[1]} are both true"

    found = [v for v in h.judge().violations if v.invariant == RULE]

    assert [(v.signature, v.behaviour) for v in found] == [(signature, behaviour)]
    # the version that broke it, and the one before
    assert found[0].events == tuple(s for s in (seqs[-2] or job.added, seqs[-1]) if s)


def test_a_condition_that_is_flipped_back_breaks_two_promises() -> None:
    h = History()
    job = h.job(Worker=1)
    job.says("Created", "Running", start=0)
    ended = job.says("Created", "-Running", "Succeeded", end=0)
    back = job.says("Created", "Running", "-Succeeded")

    signatures = {(s, e) for rule, s, e in broken(h) if rule == RULE}

    assert signatures == {
        ("Succeeded was taken back", (ended, back)),
        ("Running after Succeeded", (ended, back)),
    }


@pytest.mark.parametrize(
    "versions",
    [
        # as training-operator 1.8.1 wrote them
        ["", "Created", "Created Running", "Created -Running Succeeded"],
        ["Created", "Created Running", "Created Restarting", "Created Running", "Created Failed"],
        [
            "Created",
            "Created Running",
            "Created -Running Suspended",
            "Created -Running -Suspended",
            "Created -Suspended Running",
        ],
        # too quick to be seen running
        ["Created", "Created Succeeded"],
        ["Created", "Created Restarting", "Created Restarting Failed"],
        # conditions that we do not know
        ["Created", "Created Running Queued", "Created -Running Succeeded Queued Archived"],
    ],
)
def test_legal_transitions(versions: list[str]) -> None:
    h = History()
    job = h.job(Worker=1)
    for version in versions:
        h.after(1)
        job.says(*version.split(), start=1)

    assert RULE not in names(h)
    assert exercised(h, RULE) > 0


def test_a_gap_does_not_excuse_what_must_never_change() -> None:
    h = History()
    job = h.job(Worker=1)
    job.says("Created", "Failed", start=0, end=0)
    h.gap("PyTorchJob", 10)
    job.says("Created", "Running")

    assert RULE in names(h)


def test_another_job_of_the_same_name_starts_anew() -> None:
    h = History()
    first = h.job(Worker=1)
    first.says("Created", "-Running", "Succeeded", start=0, end=0)
    first.gone()
    h.job(Worker=1).says("Created", "Running", start=0)

    assert names(h) == set()
