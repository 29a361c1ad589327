"""What becomes of a cluster that could not be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters import ledger, topology
from clusters.cluster import ClusterSpec
from clusters.errors import ClusterError
from clusters.providers import made


def half_made(keep: bool) -> ClusterSpec:
    spec = ClusterSpec("half", topology.load("small"), "1.34.4", "r", keep=keep)
    ledger.write("half", provider="kind", kubernetes="1.34.4", topology="small", run="r")
    return spec


def test_it_is_removed_and_where_its_logs_are_is_told(
    cache_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.give_up(half_made(keep=False), ledger.forget, note="; the logs are here")
    assert ledger.read("half") is None
    told = capsys.readouterr()
    assert "removing what there is of cluster half; the logs are here" in told.out + told.err


def test_the_reason_for_giving_up_is_not_hidden_by_a_removal_that_fails(cache_home: Path) -> None:
    def fails(name: str) -> None:
        raise ClusterError(f"{name} does not end")

    made.give_up(half_made(keep=False), fails)
    assert ledger.read("half") is not None


def test_it_stays_when_that_was_asked_for(
    cache_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.give_up(half_made(keep=True), lambda name: pytest.fail("it was removed"))
    entry = ledger.read("half")
    assert entry is not None
    assert entry.keep
    told = capsys.readouterr()
    assert str(ledger.folder("half")) in told.out + told.err
