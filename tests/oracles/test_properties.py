"""Random legal histories raise nothing; one random illegal edit is noticed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from oracles.graces import graces
from oracles.invariants import ALL
from oracles.judging import judge
from oracles.ordering import ordered
from oracles.outcome import Outcome
from tests.oracles.illegal import EDITS, Edit
from tests.oracles.legal import Size, history

#: graces are as they are for the systems that we know
FIGURES = graces(["training-operator:1.8.1", "coscheduling:0.28.9"])
SIZES = st.builds(
    Size,
    nodes=st.integers(1, 4),
    gpus=st.integers(4, 8),
    slots=st.integers(1, 4),
    pods=st.integers(2, 4),
    rounds=st.integers(0, 5),
)
SEEDS = st.integers(0, 2**32)
SLOW = settings(
    max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@SLOW
@given(SEEDS, SIZES, st.integers(50, 1500))
def test_legal_histories_break_nothing(seed: int, size: Size, limit: int) -> None:
    judgement = judge(history(seed, limit, size), figures=FIGURES)

    assert judgement.reasons() == []
    assert judgement.outcome is Outcome.PASS


@SLOW
@given(SEEDS, SIZES)
def test_arrival_out_of_order_between_kinds_breaks_nothing(seed: int, size: Size) -> None:
    """Watches overtake each other by up to a second; the order of versions puts it right."""
    events = history(seed, 600, size)
    rng = Random(seed)
    lag = {kind: rng.random() for kind in sorted({e.kind for e in events})}
    arrived = sorted(events, key=lambda e: e.mono + (lag[e.kind] if e.source == "watch" else 0))

    assert judge(ordered(arrived), figures=FIGURES).reasons() == []


@pytest.mark.parametrize(
    ("name", "edit"),
    [(name, one) for name, several in EDITS.items() for one in several],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_one_illegal_edit_is_noticed(name: str, edit: Edit) -> None:
    tried = 0

    @SLOW
    @given(SEEDS, SIZES)
    def noticed(seed: int, size: Size) -> None:
        nonlocal tried
        edited = edit(history(seed, 900, size), Random(seed))
        assume(edited is not None)
        tried += 1
        assert edited is not None
        assert name in {v.invariant for v in judge(edited, figures=FIGURES).violations}

    noticed()
    assert tried >= 3, "the edit found hardly anything to break"


def test_every_invariant_has_an_edit_that_it_notices() -> None:
    assert set(EDITS) == {rule.name for rule in ALL}
