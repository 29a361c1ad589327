"""Histories that are as they should be, and all the ways in which they are not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oracles import reading
from oracles.errors import UsageError
from oracles.history import Event, Header, write
from oracles.judging import judge
from oracles.outcome import Outcome
from oracles.reading import Damage, History, HistoryError

HEADER = Header(run="r", cluster="c", started=1000.0, facts={"operator": "training-operator:1.8.1"})


def event(seq: int, **more: Any) -> Event:
    values: dict[str, Any] = {
        "t": 1000.0 + seq,
        "mono": float(seq),
        "source": "watch",
        "type": "MODIFIED",
        "kind": "Node",
        "name": "n",
        "uid": "u",
        "rv": seq * 10,
        "object": {"metadata": {"name": "n"}},
    }
    return Event(seq, **{**values, **more})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def lines(path: Path, count: int = 5) -> list[bytes]:
    write(path, HEADER, [event(n) for n in range(1, count + 1)])
    return path.read_bytes().splitlines(keepends=True)


def read(path: Path) -> tuple[list[Event], list[Damage]]:
    history = History(path)
    return list(history.events()), history.damage


def told(events: list[Event]) -> list[object]:
    """Numbers of events; gaps in words."""
    return [e.seq if e.source != "gap" else (e.type, e.kind, e.seq) for e in events]


def test_what_was_written_is_read(path: Path) -> None:
    made = [
        event(1, object={"a": [1, {"b": None}], "ü": "\u2028\n"}),
        Event(2, 1002.0, 2.0, "mark", "test-start", name="a::b"),
    ]
    write(path, HEADER, made)
    history = History(path)
    assert history.header == HEADER
    assert list(history.events()) == made
    assert history.damage == []
    assert history.last == 2.0


def test_events_come_in_the_order_in_which_they_happened(path: Path) -> None:
    write(path, HEADER, [event(1), event(2, rv=40), event(3, rv=30)])
    assert told(read(path)[0]) == [1, 3, 2]
    assert told(list(History(path).arrived())) == [1, 2, 3]


def test_only_what_is_asked_for_is_decoded(path: Path) -> None:
    write(
        path,
        HEADER,
        [
            event(1),
            event(2, kind="Pod"),
            event(3, source="progress", type="step", kind="", rv=0),
            event(4, source="fault", type="inject", rv=0),
            event(5, source="gap", type="begin", rv=0),
        ],
    )
    assert [e.seq for e in History(path).events({"Pod", "source:progress"})] == [2, 3, 5]


def test_a_last_line_that_was_cut_off(path: Path) -> None:
    *good, last = lines(path)
    path.write_bytes(b"".join(good) + last[:50])
    events, damage = read(path)
    assert told(events) == [1, 2, 3, 4, ("begin", "", 4)]
    assert damage == [Damage(6, "the file ends in the middle of a line, after 50 bytes of it")]


def test_a_last_line_without_its_end_is_whole(path: Path) -> None:
    path.write_bytes(b"".join(lines(path)).rstrip(b"\n"))
    assert read(path) == ([event(n) for n in range(1, 6)], [])


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (b"not json\n", "no event: JSON is malformed"),
        (b"{}\n", "no event: Object missing required field"),
        (b"[1]\n", "no event: Expected `object`, got `array`"),
        (b'{"seq":3,"t":1,"mono":3,"source":"rumour","type":"x"}\n', "Invalid enum value 'rumour'"),
        (b'{"seq":3,"t":1,"mono":3,"source":"mark","type":"x","new":1}\n', "unknown field `new`"),
        (b'{"seq":"3","t":1,"mono":3,"source":"mark","type":"x"}\n', "Expected `int`, got `str`"),
        (b'{"seq":3,"t":1,"mono":3,"source":"mark","type":"\xff"}\n', "no event: "),
        (b"\x00" * 300 + b"\n", "no event: JSON is malformed"),
    ],
    ids=["text", "fields", "list", "source", "unknown", "strict", "utf8", "zeros"],
)
def test_a_line_that_is_no_event(path: Path, bad: bytes, what: str) -> None:
    made = lines(path)
    made[3] = bad
    path.write_bytes(b"".join(made))
    events, damage = read(path)
    assert told(events) == [1, 2, ("begin", "", 2), ("end", "", 4), 4, 5]
    ((line, text),) = damage
    assert line == 4
    assert what in text


def test_an_object_that_is_none(path: Path) -> None:
    made = lines(path)
    made[3] = made[3].replace(b'{"metadata":{"name":"n"}}', b'["metadata"]')
    path.write_bytes(b"".join(made))
    events, damage = read(path)
    assert told(events) == [1, 2, ("begin", "Node", 3), ("end", "Node", 3), 4, 5]
    assert [d.line for d in damage] == [4]


def test_lines_that_are_missing(path: Path) -> None:
    made = lines(path, 7)
    path.write_bytes(b"".join(made[:3] + made[4:5]))
    events, damage = read(path)
    assert told(events) == [1, 2, ("begin", "", 2), ("end", "", 4), 4]
    assert damage == [Damage(4, "event 3 is missing")]

    path.write_bytes(b"".join(made[:3] + made[6:]))
    events, damage = read(path)
    assert told(events) == [1, 2, ("begin", "", 2), ("end", "", 6), 6, 7]
    assert damage == [Damage(4, "events 3 to 5 are missing")]


def test_lines_that_are_not_in_order(path: Path) -> None:
    made = lines(path)
    path.write_bytes(b"".join([*made[:2], made[4], made[3], made[2], made[5]]))
    events, damage = read(path)
    # the events are all there and are put in order, but somebody was at the file
    assert [e.seq for e in events if e.source != "gap"] == [1, 2, 3, 4, 5]
    assert [e.type for e in events if e.source == "gap"]
    assert [d.line for d in damage] == [3, 4, 5, 6]
    assert damage[1] == Damage(4, "event 3 where 5 was to come: not in order")


def test_empty_lines_say_nothing(path: Path) -> None:
    made = lines(path)
    path.write_bytes(b"".join([*made[:3], b"\n", *made[3:], b"\n\n"]))
    assert read(path) == ([event(n) for n in range(1, 6)], [])


def test_without_a_header_the_events_are_still_there(path: Path) -> None:
    made = lines(path)
    path.write_bytes(b"".join(made[1:]))
    events, damage = read(path)
    assert told(events) == [1, 2, 3, 4, 5]
    assert damage == [Damage(1, "no header: run, cluster and facts are not known")]

    path.write_bytes(b"rubbish\n" + b"".join(made[1:]))
    events, damage = read(path)
    assert told(events) == [1, 2, 3, 4, 5]
    assert [d.line for d in damage] == [1]
    assert History(path).header.cluster == ""


def test_an_empty_file(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(HistoryError, match=r"history.jsonl:1: an empty file, but the first line"):
        History(path)


def test_an_unknown_version(path: Path) -> None:
    path.write_text(json.dumps({"schema": "muster.history.v9", "run": "r"}) + "\n")
    with pytest.raises(HistoryError, match=r"jsonl:1: a history of version 'muster.history.v9'"):
        History(path)


def test_no_file(path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        History(path)


def test_a_line_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST", 1 << 12)
    made = lines(path)
    path.write_bytes(b"".join([*made[:3], b"x" * 10_000 + b"\n", *made[4:]]))
    events, damage = read(path)
    assert told(events) == [1, 2, ("begin", "", 2), ("end", "", 4), 4, 5]
    assert damage == [Damage(4, "a line of 10001 bytes; 4096 are read at most")]

    path.write_bytes(b"".join([*made[:3], b"x" * 10_000]))
    events, damage = read(path)
    assert told(events) == [1, 2, ("begin", "", 2)]
    assert damage == [Damage(4, "the file ends in the middle of a line, after 10000 bytes of it")]


def test_an_event_that_came_too_late_to_be_put_in_order(path: Path) -> None:
    count = 4000  # more than is looked at together
    made = [event(n, mono=n / 100, rv=10 * n) for n in range(1, count + 1)]
    write(path, HEADER, [*made, event(count + 1, mono=40.5, rv=55, kind="Pod")])
    events, damage = read(path)
    assert damage == [
        Damage(
            count + 2,
            "event 4001 (Pod /n) came more than 10 s after a later one: the order around it is not"
            " certain",
        )
    ]
    at = next(index for index, e in enumerate(events) if e.seq == count + 1)
    assert told(events[at : at + 3]) == [("begin", "Pod", 4001), 4001, ("end", "Pod", 4001)]


def test_much_damage_is_counted_not_kept(path: Path) -> None:
    path.write_bytes(lines(path)[0] + b"rubbish\n" * 5000)
    history = History(path)
    assert told(list(history.events())) == [("begin", "", 0)]
    assert history.damaged == 5000
    assert len(history.damage) == reading.KEPT


@pytest.mark.parametrize("where", ["middle", "end"])
def test_damage_makes_the_outcome_inconclusive(path: Path, where: str) -> None:
    made = lines(path)
    assert judge(History(path).events()).outcome is not Outcome.INCONCLUSIVE
    if where == "middle":
        made[3] = b"rubbish\n"
    else:
        made[-1] = made[-1][:20]
    path.write_bytes(b"".join(made))
    assert judge(History(path).events()).outcome is Outcome.INCONCLUSIVE


def test_memory_does_not_grow_with_the_file(path: Path) -> None:
    def peak(count: int) -> int:
        write(path, HEADER, (event(n, mono=n / 100) for n in range(1, count + 1)))
        code = (
            "import sys, resource; from pathlib import Path; from oracles.reading import History\n"
            f"assert sum(1 for _ in History(Path(sys.argv[1])).events()) == {count}\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    small, large = peak(10_000), peak(80_000)
    assert large < 1.2 * small
