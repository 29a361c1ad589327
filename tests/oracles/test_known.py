import pytest
from pydantic import ValidationError

from oracles.known import KnownFaults, known

ENTRY = {
    "id": "rejoin-closed",
    "behaviour": "E05",
    "versions": {"torch": ">=1.10,<1.11"},
    "signature": "RendezvousClosedError",
    "link": "https://example.org/1",
    "note": "A closed rendezvous stays closed.",
}
VERSIONS = {"torch": "1.10.2", "training-operator": "1.8.1"}
TEXT = ["worker 1: RendezvousClosedError"]


def faults(**changes: object) -> KnownFaults:
    return KnownFaults.model_validate({"entries": [ENTRY | changes]})


def test_all_three_match() -> None:
    entry = faults().match("E05", "", VERSIONS, TEXT)
    assert entry is not None
    assert entry.id == "rejoin-closed"


@pytest.mark.parametrize(
    ("behaviour", "case", "versions", "texts"),
    [
        ("E06", "", VERSIONS, TEXT),
        ("E05", "", VERSIONS | {"torch": "1.11.0"}, TEXT),
        ("E05", "", {"training-operator": "1.8.1"}, TEXT),
        ("E05", "", VERSIONS | {"torch": "image:mine"}, TEXT),
        ("E05", "", VERSIONS, ["world size is 2, not 3"]),
        ("E05", "", VERSIONS, [*TEXT, "and something new"]),
        ("E05", "", VERSIONS, []),
    ],
    ids=["behaviour", "version", "no version", "own build", "signature", "one more", "none"],
)
def test_one_that_does_not_match_is_enough(
    behaviour: str, case: str, versions: dict[str, str], texts: list[str]
) -> None:
    assert faults().match(behaviour, case, versions, texts) is None


def test_an_entry_for_one_case_says_nothing_of_others() -> None:
    some = faults(case="agent killed")
    assert some.match("E05", "pod deleted", VERSIONS, TEXT) is None
    assert some.match("E05", "agent killed", VERSIONS, TEXT) is not None


def test_every_product_of_an_entry_must_be_in_range() -> None:
    both = faults(versions={"torch": "==1.10.*", "training-operator": "<1.8"})
    assert both.expected("E05", "", VERSIONS) == []
    assert len(both.expected("E05", "", VERSIONS | {"training-operator": "1.7.0"})) == 1


def test_a_race_is_explained_but_not_expected() -> None:
    some = faults(race=True)
    assert some.match("E05", "", VERSIONS, TEXT) is not None
    assert some.expected("E05", "", VERSIONS) == []
    assert faults().expected("E05", "", VERSIONS) != []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"versions": {}}, "at least 1 item"),
        ({"versions": {"torch": ""}}, "match every version"),
        ({"versions": {"torch": "1.x"}}, "torch"),
        ({"signature": "(((((("}, "not a regular expression"),
        ({"signature": "(abc)*"}, "match anything"),
        ({"link": "none"}, "link"),
    ],
)
def test_an_entry_that_matches_too_much_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        faults(**change)


def test_our_file_loads() -> None:
    assert isinstance(known(), KnownFaults)
