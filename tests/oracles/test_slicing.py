"""A test's part of a history, judged by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from oracles.history import Event, Header, write
from oracles.reading import History
from oracles.slicing import cut, foreign

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "oracles" / "schemas" / "history.v1.json").read_text()
)


class Made:
    """A history, an event a word; ``seq`` is given back."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, source: str, type: str, **more: Any) -> int:
        seq = len(self.events) + 1
        self.events.append(Event(seq, 1000.0 + seq, float(seq), source, type, **more))
        return seq

    def see(self, kind: str, name: str, namespace: str = "", type: str = "MODIFIED") -> int:
        rv = len(self.events) + 100
        about = {"metadata": {"name": name}, "rv": rv}
        uid = f"{kind}-{namespace}-{name}"
        return self.add(
            "watch", type, kind=kind, namespace=namespace, name=name, uid=uid, rv=rv, object=about
        )


@pytest.fixture
def made() -> Made:
    return Made()


def part(tmp_path: Path, made: Made, start: int, end: int | None, *names: str) -> list[Event]:
    whole, into = tmp_path / "history.jsonl", tmp_path / "tests" / "t" / "history.jsonl"
    header = Header(run="r", cluster="c", started=1000.0, facts={"operator": "o:1"})
    write(whole, header, made.events)
    done = cut(whole, into, test="t", namespaces=names, start=start, end=end)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for line in into.read_text().splitlines():
        validator.validate(json.loads(line))
    history = History(into)
    found = list(history.events())
    assert history.damage == []
    assert (done.state + done.events, done.damage) == (len(found), ())
    assert history.header.facts["operator"] == "o:1"
    assert history.part["started"] == float(start)
    assert history.part["namespaces"] == sorted(names)
    return found


def told(events: list[Event]) -> list[tuple[int, str]]:
    return [(event.seq, event.type) for event in events]


def test_the_state_and_then_what_happened(tmp_path: Path, made: Made) -> None:
    made.see("Node", "n", type="ADDED")
    node = made.see("Node", "n")
    made.see("Pod", "old", "op", "ADDED")
    made.see("Pod", "old", "op", "DELETED")
    made.see("Pod", "theirs", "other", "ADDED")
    operator = made.see("Pod", "operator", "op", "ADDED")
    start = made.add("mark", "test-start", name="t")
    pod = made.see("Pod", "p", "mine", "ADDED")
    made.see("Pod", "theirs", "other")
    moved = made.see("Node", "n")
    end = made.add("mark", "test-end", name="t")
    made.see("Pod", "p", "mine", "DELETED")

    found = part(tmp_path, made, start, end, "mine", "op")
    assert told(found) == [
        (node, "ADDED"),
        (operator, "ADDED"),
        (start, "test-start"),
        (pod, "ADDED"),
        (moved, "MODIFIED"),
        (end, "test-end"),
    ]
    # as it was, with the time at which it became so
    assert found[0].object["rv"] == found[0].rv == made.events[node - 1].rv
    assert found[0].mono == float(node)


def test_to_the_end_of_the_history(tmp_path: Path, made: Made) -> None:
    made.add("mark", "test-start", name="t")
    last = made.see("Pod", "p", "mine", "ADDED")
    assert told(part(tmp_path, made, 1, None, "mine"))[-1] == (last, "ADDED")


def test_what_others_say_is_left_out(tmp_path: Path, made: Made) -> None:
    start = made.add("mark", "test-start", name="t")
    made.add("mark", "test-start", name="another")
    everybody = made.add("mark", "upgrade")
    made.add("fault", "inject", kind="agent-kill", namespace="other", name="p")
    node = made.add("fault", "inject", kind="node-stop", name="n")
    made.add("progress", "step", namespace="other", object={"step": 1})
    mine = made.add("progress", "step", namespace="mine", object={"step": 1})
    unknown = made.add("progress", "step", object={"step": 1})
    found = part(tmp_path, made, start, None, "mine")
    assert [e.seq for e in found] == [start, everybody, node, mine, unknown]


def test_namespaces_and_happenings_are_no_state_of_others(tmp_path: Path, made: Made) -> None:
    made.see("Namespace", "other")
    own = made.see("Namespace", "mine")
    made.see("Event", "e.1", "op")
    start = made.add("mark", "test-start", name="t")
    later = made.see("Event", "e.2", "op")
    made.see("Namespace", "other")
    found = part(tmp_path, made, start, None, "mine", "op")
    assert [e.seq for e in found] == [own, start, later]


def test_pods_of_others_that_take_gpus_are_there(tmp_path: Path, made: Made) -> None:
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    spec = {"spec": {"containers": [{"name": "c", "resources": limits}]}}

    def taker(type: str, obj: dict[str, Any] = spec) -> int:
        return made.add(
            "watch", type, kind="Pod", namespace="other", name="p", uid="p", rv=200, object=obj
        )

    made.see("Pod", "no-gpus", "other", "ADDED")
    taker("ADDED")
    before = taker("MODIFIED")
    start = made.add("mark", "test-start", name="t")
    made.see("Pod", "no-gpus", "other")
    made.add(
        "watch", "ADDED", kind="PodGroup", namespace="other", name="g", uid="g", rv=9, object=spec
    )
    # found gone by a list: nothing but its name is known
    gone = taker("DELETED", {"metadata": {"name": "p"}})
    found = part(tmp_path, made, start, None, "mine")
    assert told(found) == [(before, "ADDED"), (start, "test-start"), (gone, "DELETED")]
    history = History(tmp_path / "tests" / "t" / "history.jsonl")
    assert [foreign(event, history.part) for event in found] == [True, False, True]


def test_gaps_that_are_open_or_begin(tmp_path: Path, made: Made) -> None:
    made.add("gap", "begin", kind="Pod")
    made.add("gap", "end", kind="Pod")
    still = made.add("gap", "begin", kind="Node")
    start = made.add("mark", "test-start", name="t")
    ends = made.add("gap", "end", kind="Node")
    resumed = made.add("gap", "resumed", kind="Pod")
    found = part(tmp_path, made, start, None, "mine")
    assert [e.seq for e in found] == [still, start, ends, resumed]


def test_a_state_of_very_old_objects_is_not_taken_for_late(tmp_path: Path, made: Made) -> None:
    for n in range(3000):
        made.see("Node", f"n{n}", type="ADDED")
    for n in range(3000):
        made.see("Pod", f"p{n}", "mine", "ADDED")
    # a list after a gap found an object with an old version
    made.add("watch", "ADDED", kind="Pod", namespace="op", name="x", uid="x", rv=7, object={"x": 1})
    start = made.add("mark", "test-start", name="t")
    assert len(part(tmp_path, made, start, None, "mine", "op")) == 6002


def test_damage_before_and_inside(tmp_path: Path, made: Made) -> None:
    for n in range(6):
        made.see("Pod", f"p{n}", "mine", "ADDED")
    whole, into = tmp_path / "history.jsonl", tmp_path / "part.jsonl"
    write(whole, Header(run="r", cluster="c", started=1000.0), made.events)
    lines = whole.read_bytes().splitlines(keepends=True)
    lines[5] = b"rubbish\n"
    whole.write_bytes(b"".join(lines))
    done = cut(whole, into, test="t", namespaces=["mine"], start=3)
    assert [d.line for d in done.damage] == [6]
    history = History(into)
    assert told(list(history.events())) == [
        (1, "ADDED"),
        (2, "ADDED"),
        (3, "ADDED"),
        (4, "ADDED"),
        (4, "begin"),
        (6, "end"),
        (6, "ADDED"),
    ]
    assert history.damage == []
