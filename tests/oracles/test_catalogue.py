from pathlib import Path

import pytest
import yaml

import suites
from oracles.catalogue import Catalogue, catalogue, marks_below
from oracles.errors import UsageError
from oracles.strict import load

SUITES = Path(suites.__file__).parent


def entry(name: str) -> dict[str, object]:
    return {
        "id": name,
        "level": "MUST",
        "title": "Something is kept",
        "promise": "Whatever happens, something is kept as it was.",
        "applies_to": ["any job"],
        "source": "catalogue",
    }


def made(*names: str, planned: tuple[str, ...] = ()) -> Catalogue:
    return Catalogue.model_validate(
        {"behaviours": [entry(name) for name in names], "planned": list(planned)}
    )


def test_our_tests_and_our_catalogue_agree() -> None:
    assert catalogue().check(marks_below(SUITES)) == []


def test_each_group_is_there() -> None:
    groups = [behaviour.group for behaviour in catalogue().behaviours]
    assert {g: groups.count(g) for g in dict.fromkeys(groups)} == {
        "gang": 16,
        "sched": 12,
        "elastic": 14,
        "recovery": 8,
        "status": 10,
        "cleanup": 4,
        "api": 3,
    }


def test_check_names_every_disagreement() -> None:
    lines = made("G01", "G02", "G03", planned=("G02", "G03")).check(
        {"G02": ["gang/test_a.py:3"], "G77": ["gang/test_a.py:9"]}
    )
    assert lines == [
        "gang/test_a.py:9: names the behaviour 'G77', which is not in the catalogue",
        "G01 (Something is kept) has no test, and is not in planned",
        "G02 has a test (gang/test_a.py:3): take it out of planned",
    ]


def test_marks_are_found_in_any_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "gang").mkdir()
    (tmp_path / "gang" / "test_x.py").write_text(
        "import pytest\n"
        "@pytest.mark.behaviour('G01')\n"
        "def test_a(): ...\n"
        "@pytest.mark.parametrize('x', [\n"
        "    pytest.param(1, marks=pytest.mark.behaviour('E05', case='killed')),\n"
        "])\n"
        "def test_b(x): ...\n"
        "# pytest.mark.behaviour('G99') in a comment is no mark\n"
    )
    assert marks_below(tmp_path) == {"G01": ["gang/test_x.py:2"], "E05": ["gang/test_x.py:5"]}


def test_unknown_id_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no behaviour 'G99'"):
        catalogue().get("G99")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": "WILL"}, "behaviours.0.level"),
        ({"id": "X01"}, "behaviours.0.id"),
        ({"applies_to": ["everything"]}, "behaviours.0.applies_to.0"),
        ({"state": "tested"}, "behaviours.0.state: Extra inputs"),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "behaviours.yaml"
    path.write_text(yaml.safe_dump({"behaviours": [entry("G01") | change], "planned": []}))
    with pytest.raises(UsageError) as caught:
        load(Catalogue, path, "catalogue of behaviours")
    assert message in str(caught.value)


def test_ids_come_once_and_planned_ones_exist() -> None:
    with pytest.raises(ValueError, match="twice in behaviours: G01"):
        made("G01", "G01")
    with pytest.raises(ValueError, match="not in the catalogue: G02"):
        made("G01", planned=("G02",))
