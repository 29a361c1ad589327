"""``python -m oracles``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from oracles import history as histories
from oracles.cli import _run
from oracles.history import Header
from tests.oracles.build import BEGIN, SCHEDULER, History

FACTS = {"operator": "training-operator:1.8.1", "scheduler": "coscheduling:0.28.9"}
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str]:
        code = _run([str(argument) for argument in arguments])
        found = capsys.readouterr()
        return code, re.sub(r"\x1b\[[0-9;]*m", "", found.out + found.err)

    return call


def save(h: History, path: Path, cluster: str = "c") -> Path:
    histories.write(path, Header(run="r", cluster=cluster, started=BEGIN, facts=FACTS), h.events)
    return path


def gang(bound: int, *, name: str = "train", late: float = 0.0) -> History:
    """Two pods, of which some are bound; and a minute more."""
    h = History()
    h.node("n1", gpus=8)
    h.group(name, 2)
    labels = {"scheduling.x-k8s.io/pod-group": name}
    pods = [h.pod(f"w{i}", labels=labels, schedulerName=SCHEDULER) for i in range(2)]
    h.after(1 + late)
    for pod in pods[:bound]:
        pod.bind("n1")
    h.after(60)
    h.node("n1", gpus=8)
    return h


def test_check_of_a_good_history(run: Run, tmp_path: Path) -> None:
    path = save(gang(2), tmp_path / "a.jsonl")
    code, out = run("check", path)
    assert code == 0
    assert out.startswith(f"PASS  {path}: 7 events, 61.0 s; not exercised: ")


def test_check_of_a_bad_one_shows_where_it_broke(run: Run, tmp_path: Path) -> None:
    path = save(gang(1), tmp_path / "a.jsonl")
    code, out = run("check", path, save(gang(2), tmp_path / "b.jsonl"))
    assert code == 1
    lines = out.splitlines()
    assert lines[0].startswith(f"FAIL  {path}")
    assert lines[1].startswith("G16 gang-atomicity: PodGroup t/train: 1 of its pods were bound for")
    # the cited events, and some around them
    assert "    >     +0.00 s  #2  PodGroup t/train: created" in lines
    assert "    >     +1.00 s  #5  Pod t/w0: bound to n1" in lines
    assert "          +0.00 s  #4  Pod t/w1: created" in lines
    assert lines[-1].startswith("PASS  ")


def test_check_of_a_gap(run: Run, tmp_path: Path) -> None:
    h = gang(2)
    h.gap("Pod", 3)
    code, out = run("check", save(h, tmp_path / "a.jsonl"))
    assert code == 3
    assert out.startswith("INCONCLUSIVE")
    assert "gap: Pod not seen, or not for certain, from event 8 (+61.00 s) to event 9" in out


def test_check_of_damage(run: Run, tmp_path: Path) -> None:
    path = save(gang(2), tmp_path / "a.jsonl")
    path.write_bytes(path.read_bytes()[:-10])
    code, out = run("check", path)
    assert code == 3
    assert re.search(r"damage: line 8: the file ends in the middle of a line", out)


def test_what_damage_might_excuse_is_no_violation(run: Run, tmp_path: Path) -> None:
    path = save(gang(1), tmp_path / "a.jsonl")
    with path.open("a") as file:
        file.write("rubbish\n")
    code, out = run("check", path)
    # that the gang stayed so until the end is part of the proof, and the end was not seen
    assert (code, out.partition(" ")[0]) == (3, "INCONCLUSIVE")
    assert "(something was missed meanwhile)" in out


def test_a_violation_outranks_damage(run: Run, tmp_path: Path) -> None:
    h = History()
    h.node("n1", gpus=1)
    for name in ("a", "b"):
        h.pod(name, gpus=1).bind("n1")
    path = save(h, tmp_path / "a.jsonl")
    with path.open("a") as file:
        file.write("rubbish\n")
    code, out = run("check", path)
    assert (code, out.partition(" ")[0]) == (1, "FAIL")
    assert "damage: line 7: no event" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1: an empty file"),
        (b'{"schema":"muster.history.v9"}\n', ":1: a history of version 'muster.history.v9'"),
    ],
)
def test_check_goes_on_after_a_file_that_says_nothing(
    run: Run, tmp_path: Path, content: bytes, message: str
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content)
    code, out = run("check", bad, save(gang(2), tmp_path / "a.jsonl"))
    assert code == 3
    assert message in out.splitlines()[0]
    assert out.splitlines()[1].startswith("PASS")


def test_check_of_a_history_without_events(run: Run, tmp_path: Path) -> None:
    code, out = run("check", save(History(), tmp_path / "a.jsonl"))
    assert code == 3
    assert "there is nothing to judge" in out


@pytest.mark.parametrize(
    "arguments", [("check", "no-such-file"), ("check",), ("frobnicate",), ("show", "no-such-file")]
)
def test_usage(run: Run, arguments: tuple[str, ...]) -> None:
    code, out = run(*arguments)
    assert code == 2
    assert out.startswith("error: ")


def test_show(run: Run, tmp_path: Path) -> None:
    path = save(gang(1), tmp_path / "a.jsonl")
    code, out = run("show", path, "--kind", "Pod")
    assert code == 0
    assert out.splitlines()[1:] == [
        "    +0.00 #3      Pod t/w0  created",
        "    +0.00 #3      Pod t/w0  phase Pending",
        "    +0.00 #4      Pod t/w1  created",
        "    +0.00 #4      Pod t/w1  phase Pending",
        "    +1.00 #5      Pod t/w0  bound to n1",
    ]
    assert "w1" not in run("show", path, "--name", "w0")[1]
    assert run("show", path, "--namespace", "other")[1].count("\n") == 1


def test_show_says_what_is_damaged(run: Run, tmp_path: Path) -> None:
    path = save(gang(1), tmp_path / "a.jsonl")
    with path.open("a") as file:
        file.write("rubbish\n")
    code, out = run("show", path)
    assert code == 3
    assert "damage: line 8: no event" in out


def test_diff_of_the_same_under_other_names(run: Run, tmp_path: Path) -> None:
    a = save(gang(2), tmp_path / "a.jsonl", "run-ab12")
    b = save(gang(2, late=1), tmp_path / "b.jsonl", "run-cd34")
    code, out = run("diff", a, b)
    assert (code, out) == (0, "14 changes in both\n")
    code, out = run("diff", a, b, "--threshold", "0.5")
    assert code == 1
    assert "~ Pod t/w0: bound to n1  +1.00 s (#5), +2.00 s (#5): +1.00 s" in out


def test_diff_of_a_damaged_file_is_no_verdict(run: Run, tmp_path: Path) -> None:
    a, b = (save(gang(2), tmp_path / f"{name}.jsonl") for name in "ab")
    lines = b.read_bytes().splitlines(keepends=True)
    b.write_bytes(b"".join([*lines[:3], b"rubbish\n", *lines[3:]]))
    code, out = run("diff", a, b)
    assert code == 3
    assert out.splitlines()[0] == "14 changes in both"
    assert re.search(rf"damage: {b}: line 4: no event", out)


def test_an_object_of_no_known_form_stops_nobody(run: Run, tmp_path: Path) -> None:
    h = gang(2)
    h.add("watch", "ADDED", "Pod", "t", "odd", "odd", {"metadata": {"name": "odd"}, "spec": 7})
    path = save(h, tmp_path / "a.jsonl")
    code, out = run("check", path)
    assert (code, out.partition(" ")[0]) == (3, "INCONCLUSIVE")
    code, out = run("show", path, "--name", "odd")
    assert code == 0
    assert out.splitlines()[-1].endswith("Pod t/odd  of no known form")
    assert run("diff", path, path)[0] == 0


def test_a_slice_of_no_known_form_is_read_as_a_whole(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    facts = {**FACTS, "slice": {"namespaces": 5}}
    histories.write(path, Header(run="r", cluster="c", started=BEGIN, facts=facts), gang(2).events)
    code, out = run("check", path)
    assert code == 3
    assert "damage: line 1: facts.slice: " in out


def test_a_history_in_which_nothing_was_judged_is_not_green(run: Run, tmp_path: Path) -> None:
    h = History()
    h.node("n1")
    empty, full = save(h, tmp_path / "a.jsonl"), save(gang(2), tmp_path / "b.jsonl")
    assert run("check", empty)[0] == 3
    assert run("check", empty, full)[0] == 0


def test_diff_says_what_only_one_has(run: Run, tmp_path: Path) -> None:
    a = save(gang(1), tmp_path / "a.jsonl")
    b = save(gang(2), tmp_path / "b.jsonl")
    code, out = run("diff", a, b)
    assert code == 1
    assert out.splitlines() == [
        f"only in {b}:",
        "+     +1.00 s  #6  Pod t/w1: bound to n1",
        "13 changes in both",
    ]
