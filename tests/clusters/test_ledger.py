"""The ledger: who made a cluster, whether he lives, and what is left over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from clusters import ledger
from clusters.kube import until_true
from clusters.ledger import Entry

_WRITE = """
from clusters import ledger
ledger.write("theirs", provider="kind", kubernetes="1", topology="small", run="r")
{more}
print("written", flush=True)
input()
"""


def written(name: str = "mine") -> Entry:
    return ledger.write(name, provider="kind", kubernetes="1.34.4", topology="small", run="r")


def test_what_is_written_is_read() -> None:
    entry = written()
    assert ledger.read("mine") == entry
    assert (entry.pid, entry.keep, entry.ready) == (os.getpid(), False, False)
    assert ledger.entries() == [entry]
    ledger.update("mine", ready=True)
    assert ledger.read("mine") == replace(entry, ready=True)
    ledger.update("mine", keep=True)
    assert ledger.read("mine") == replace(entry, ready=True, keep=True)
    ledger.forget("mine")
    assert ledger.read("mine") is None
    assert not ledger.folder("mine").exists()


def test_what_is_not_there() -> None:
    assert ledger.read("nope") is None
    assert ledger.entries() == []
    ledger.update("nope", keep=True)
    assert ledger.read("nope") is None
    ledger.forget("nope")


def test_entries_by_name_and_without_what_cannot_be_read() -> None:
    for name in ("b", "a", "c"):
        written(name)
    (ledger.folder("c") / "ledger.json").write_text("{half")
    (ledger.folder("d") / "x").parent.mkdir()
    assert [entry.name for entry in ledger.entries()] == ["a", "b"]
    (ledger.folder("b") / "ledger.json").write_text(json.dumps({"name": "b", "colour": 1}))
    assert [entry.name for entry in ledger.entries()] == ["a"]


def test_an_owner_that_lives() -> None:
    entry = written()
    assert entry.owner_alive
    assert not entry.left_over
    assert not replace(entry, ready=True).left_over


def test_a_pid_that_another_process_has_by_now() -> None:
    entry = written()
    reused = replace(entry, pid_start=entry.pid_start - 1)
    assert not reused.owner_alive
    assert reused.left_over


@pytest.mark.parametrize(
    ("more", "left_over"),
    [
        ("", True),  # killed while it made the cluster
        ('ledger.update("theirs", ready=True)', True),  # killed while it used it
        ('ledger.update("theirs", ready=True, keep=True)', False),
        ('ledger.update("theirs", keep=True)', False),  # it failed, and somebody looks into it
    ],
)
def test_left_over(more: str, left_over: bool) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITE.format(more=more)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        entry = ledger.read("theirs")
        assert entry is not None
        assert entry.owner_alive
        assert not entry.left_over
        process.kill()  # and not yet reaped, which may be for ever
        until_true(lambda: not entry.owner_alive, deadline=5, why="the owner's end", every=0.02)
        assert entry.left_over is left_over
    finally:
        process.kill()
        process.communicate()
