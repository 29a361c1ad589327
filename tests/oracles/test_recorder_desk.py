"""Marks and faults from other processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from oracles.errors import HarnessError
from oracles.recorder import Desk, Remote


class Book:
    """Takes down what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def mark(
        self, type: str, name: str = "", namespace: str = "", about: Mapping[str, Any] = {}
    ) -> int:
        self.said.append(("mark", type, name, namespace, dict(about)))
        return len(self.said)

    def fault(
        self,
        type: str,
        kind: str,
        name: str = "",
        namespace: str = "",
        about: Mapping[str, Any] = {},
    ) -> int:
        self.said.append(("fault", type, kind, name, namespace, dict(about)))
        return len(self.said)

    def settle(self, deadline: float = 10.0) -> list[str]:
        if deadline < 0:
            raise RuntimeError("backwards")
        return [f"Pod: not within {deadline:g}"]


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def desk(book: Book, tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / ("deep" * 30)  # longer than the address of a socket can be
    folder.mkdir()
    made = Desk(book, folder / "desk")
    yield made
    made.close()


def test_what_is_said_arrives(book: Book, desk: Desk) -> None:
    remote = Remote(desk.path)
    assert remote.mark("test-start", "a::b", about={"namespaces": ["n"]}) == 1
    assert remote.fault("inject", "kill", "p", "n", {"pid": 7}) == 2
    assert remote.settle(3) == ["Pod: not within 3"]
    assert book.said == [
        ("mark", "test-start", "a::b", "", {"namespaces": ["n"]}),
        ("fault", "inject", "kill", "p", "n", {"pid": 7}),
    ]


def test_from_another_process_and_from_many_at_once(book: Book, desk: Desk) -> None:
    code = (
        "import sys; from pathlib import Path; from oracles.recorder import Remote\n"
        "print(Remote(Path(sys.argv[1])).mark('from afar'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(desk.path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: Remote(desk.path).mark(f"m{n}"), range(64)))
    assert {type for _, type, *_ in book.said[1:]} == {f"m{n}" for n in range(64)}


def test_trouble_is_said_to_who_asked(desk: Desk) -> None:
    with pytest.raises(HarnessError, match="could not settle: RuntimeError: backwards"):
        Remote(desk.path).settle(-1)


def test_a_recorder_that_is_gone(desk: Desk) -> None:
    remote = Remote(desk.path)
    desk.close()
    with pytest.raises(HarnessError, match="does not answer"):
        remote.mark("test-start")
    assert not desk.path.exists()
