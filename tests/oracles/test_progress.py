"""Progress lines: parsed strictly, read tolerantly where a kill can have cut."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from oracles import progress
from oracles.progress import Event, ProgressError, ProgressLine

SCHEMA = json.loads((Path(progress.__file__).parent / "schemas" / "progress.v1.json").read_text())
FULL = {
    "t": 1700000000.25,
    "event": "step",
    "pod": "job-worker-1",
    "pod_uid": "u-1",
    "pid": 17,
    "agent_pid": 1,
    "agent_start": 5000,
    "restart": 0,
    "rank": 1,
    "local_rank": 0,
    "world": 3,
    "generation": "6f",
    "step": 4,
    "epoch": 0,
    "samples": 256,
    "ids": [3, 5],
    "loss": 1.5,
    "accuracy": None,
    "signal": None,
    "code": None,
    "detail": "x",
}


def test_schema_and_class_have_the_same_fields() -> None:
    """The programs are held to the schema, we to the class."""
    assert set(SCHEMA["properties"]) == set(ProgressLine.__dataclass_fields__)
    assert set(SCHEMA["properties"]["event"]["enum"]) == {e.value for e in Event}
    required = {
        name
        for name, field in ProgressLine.__dataclass_fields__.items()
        if field.default is not None and not isinstance(field.default, str)
    }
    assert set(SCHEMA["required"]) == required
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_full_line_keeps_every_field() -> None:
    """Both judges take it, and it comes back as it went in."""
    jsonschema.validate(FULL, SCHEMA)
    line = progress.parse(json.dumps(FULL))
    assert line.event is Event.STEP
    assert line.ids == (3, 5)
    assert json.loads(progress.as_json(line)) == {k: v for k, v in FULL.items() if v is not None}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"event": "stepp"}, "event"),
        ({"rank": "1"}, "rank"),
        ({"rank": True}, "rank"),
        ({"pid": None}, "pid"),
        ({"ids": [1, "2"]}, "ids"),
        ({"losss": 1.0}, "losss"),
    ],
)
def test_a_wrong_line_is_refused_by_both_judges(change: dict[str, object], named: str) -> None:
    """Nothing is repaired on the way in."""
    wrong = {**FULL, **change}
    with pytest.raises(ProgressError, match=named):
        progress.parse(json.dumps(wrong))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


def test_a_missing_field_and_no_json_are_refused() -> None:
    """With the place in the message."""
    without = {key: value for key, value in FULL.items() if key != "pod_uid"}
    with pytest.raises(ProgressError, match=r"here:3: pod_uid"):
        progress.parse(json.dumps(without), where="here:3")
    with pytest.raises(ProgressError, match="JSON"):
        progress.parse("not json")


def _line(t: float, **fields: object) -> str:
    base = {"t": t, "event": "step", "pod": "p", "pod_uid": "u", "pid": 1}
    return json.dumps({**base, **fields}) + "\n"


def test_read_sorts_by_time_and_drops_an_unfinished_line(tmp_path: Path) -> None:
    """A killed process leaves half a line at most, the last of its file."""
    (tmp_path / "a.jsonl").write_text(_line(1.0, step=1) + _line(3.0, step=3) + '{"t": 4.0, "ev')
    (tmp_path / "b.jsonl").write_text(_line(2.0, step=2))
    (tmp_path / "other.txt").write_text("not ours")
    assert [line.step for line in progress.read(tmp_path)] == [1, 2, 3]


def test_read_keeps_a_process_order_when_its_clock_steps_back(tmp_path: Path) -> None:
    """A clock is set; what the process did first stays first."""
    (tmp_path / "a.jsonl").write_text(_line(5.0, step=1) + _line(4.0, step=2))
    assert [line.step for line in progress.read(tmp_path)] == [1, 2]


def test_a_broken_line_within_a_file_is_an_error_with_its_place(tmp_path: Path) -> None:
    """Only the last line may be cut; anything else is not ours to repair."""
    (tmp_path / "a.jsonl").write_text(_line(1.0) + "garbage\n" + _line(2.0))
    with pytest.raises(ProgressError, match=r"a\.jsonl:2"):
        progress.read(tmp_path)


def test_no_folder_has_no_lines(tmp_path: Path) -> None:
    """Before the first pod starts there is none."""
    assert progress.read(tmp_path / "none") == []


def test_lines_are_found_among_other_output() -> None:
    """Whose stdout is shared with torchrun's own messages."""
    text = (
        "W1130 torch: hello\n" + _line(1.0).replace('"t": ', '"t":') + '{"t":2.0,"event"\n{"a":1}\n'
    )
    assert [line.t for line in progress.from_log(text)] == [1.0]
