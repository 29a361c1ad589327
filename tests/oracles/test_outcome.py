import pytest

from oracles.outcome import ExitCode, Outcome, combine, exit_code

P, F, X, N, K = (
    Outcome.PASS,
    Outcome.FAIL,
    Outcome.INCONCLUSIVE,
    Outcome.NOT_APPLICABLE,
    Outcome.KNOWN,
)


@pytest.mark.parametrize(
    ("outcomes", "together"),
    [
        ([P, F, X], F),
        ([P, X, K], X),
        ([P, K], K),
        ([P, N], P),
        ([N, N], N),
        ([], X),
    ],
)
def test_strongest_outcome_wins(outcomes: list[Outcome], together: Outcome) -> None:
    assert combine(outcomes) is together
    assert combine(reversed(outcomes)) is together


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([P, K, N], ExitCode.OK),
        ([P, F, X], ExitCode.BEHAVIOURS),
        ([P, X], ExitCode.INFRASTRUCTURE),
        ([N], ExitCode.INFRASTRUCTURE),
        ([], ExitCode.INFRASTRUCTURE),
    ],
)
def test_exit_code(outcomes: list[Outcome], code: ExitCode) -> None:
    assert exit_code(outcomes) is code


def test_words_of_exit_codes() -> None:
    assert [code.word for code in ExitCode] == ["ok", "behaviours", "usage", "infrastructure"]
