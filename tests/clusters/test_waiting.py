"""Waiting for a state: list once, follow the watch, and say on expiry what was last seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import waiting
from clusters.errors import ApiError, WaitTimeout
from clusters.kube import NODES, Object
from oracles.errors import HarnessError
from tests.clusters.api_server import Server, event, listed, node, refused, serving


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(waiting, "RECONNECT", 0.05)
    with serving(tmp_path) as running:
        yield running


def names(items: list[Object]) -> list[str]:
    return sorted(item["metadata"]["name"] for item in items)


def wait(server: Server, *wanted: str, deadline: float = 10.0) -> list[str]:
    """Wait until exactly the nodes *wanted* are there."""

    def until(items: list[Object]) -> list[str] | None:
        return names(items) if names(items) == list(wanted) else None

    return server.kube.wait(NODES, until, deadline=deadline, why="the nodes")


def kinds(server: Server) -> list[str]:
    return ["watch" if "watch" in r.query else "list" for r in server.requests]


def test_true_at_once(server: Server) -> None:
    server.script = [listed(node("a"))]
    assert wait(server, "a") == ["a"]
    assert kinds(server) == ["list"]


def test_true_by_the_watch(server: Server) -> None:
    server.script = [
        listed(node("a"), version=33),
        lambda r: r.stream(
            event("BOOKMARK", node("", 34)), event("ADDED", node("b")), event("DELETED", node("a")),
            hold=5,
        ),
    ]  # fmt: skip
    start = time.monotonic()
    assert wait(server, "b") == ["b"]
    assert time.monotonic() - start < 4  # it does not wait for the watch to end
    assert server.requests[1].query["resourceVersion"] == "33"


def test_modified_objects_replace_what_was_known(server: Server) -> None:
    server.script = [
        listed(node("a", phase="Pending")),
        lambda r: r.stream(event("MODIFIED", node("a", 2, phase="Running"))),
    ]

    def runs(items: list[Object]) -> list[str] | None:
        (phase,) = [item["status"]["phase"] for item in items]
        return [phase] if phase == "Running" else None

    assert server.kube.wait(NODES, runs, deadline=5, why="it") == ["Running"]


def test_falsy_answers_count() -> None:
    """Only None means "not yet"."""

    class Once:
        def list_with_version(self, *_: object, **__: object) -> tuple[list[Object], str]:
            return [], "1"

    answer = waiting.wait_for(Once(), NODES, lambda items: len(items), None, "", "", 5, "zero")  # type: ignore[arg-type]
    assert answer == 0


def test_a_watch_that_ends_or_is_cut_or_too_old_is_opened_anew(server: Server) -> None:
    gone = event("ERROR", {"code": 410, "message": "too old"})
    server.script = [
        listed(node("a")), lambda r: r.stream(),
        listed(node("a")), lambda r: r.stream(event("ADDED", node("x")), b'{"ty', whole=False),
        listed(node("a")), lambda r: r.stream(gone),
        listed(node("a"), node("b")),
    ]  # fmt: skip
    # the x of the broken watch is not there any more: the list after it is what counts
    assert wait(server, "a", "b") == ["a", "b"]
    assert kinds(server) == ["list", "watch"] * 3 + ["list"]


def test_what_the_server_cannot_do_just_now_is_waited_out(server: Server) -> None:
    server.script = [
        refused(429, "too many"), refused(503, "starting"), listed(), refused(500, "etcd"),
        listed(node("a")),
    ]  # fmt: skip
    assert wait(server, "a") == ["a"]


def test_what_the_server_refuses_is_told_at_once(server: Server) -> None:
    server.script = [refused(403, "you may not")]
    start = time.monotonic()
    with pytest.raises(ApiError, match="you may not"):
        wait(server, "a")
    assert time.monotonic() - start < 5


def test_a_server_that_was_away_comes_back(server: Server) -> None:
    server.script = [listed(node("a"))]
    server.stop()
    threading.Timer(0.4, server.start).start()
    assert wait(server, "a") == ["a"]


def test_on_expiry_it_says_what_was_last_seen(server: Server) -> None:
    ready = [{"type": "Ready", "status": "True"}]
    server.script = [
        listed(node("a", conditions=ready)),
        lambda r: r.stream(event("ADDED", node("b", phase="Pending")), hold=1),
    ]
    start = time.monotonic()
    with pytest.raises(WaitTimeout) as caught:
        wait(server, "z", deadline=1.0)
    assert time.monotonic() - start < 4
    assert str(caught.value) == "the nodes: not within 1 s; last seen: a Ready; b Pending"


def test_on_expiry_it_says_what_the_trouble_was(server: Server) -> None:
    server.script = [listed(node("a"))]
    kube = server.kube
    server.stop()
    with pytest.raises(WaitTimeout, match=r"not within 0 s; last seen: nothing; last trouble: GET"):
        kube.wait(NODES, lambda _: None, deadline=0.3, why="x")


def held(server: Server, seconds: float) -> tuple[list[list[str]], list[str]]:
    """The names of the nodes at each look, and at the end."""
    looks: list[list[str]] = []
    left = waiting.hold(
        server.kube, NODES, "", lambda seen, _: looks.append(sorted(seen)), seconds=seconds
    )
    return looks, sorted(left)


def test_every_change_is_looked_at_while_something_is_held(server: Server) -> None:
    """And the watch is opened anew where it ended, as long as the time lasts."""
    server.script = [
        listed(node("a"), version=33),
        lambda r: r.stream(event("ADDED", node("b", 35)), event("BOOKMARK", node("", 36))),
        lambda r: r.stream(event("DELETED", node("a", 37)), hold=0.6),
    ]
    looks, left = held(server, 0.5)
    assert looks == [["a"], ["a", "b"], ["b"]]
    assert left == ["b"]
    assert [r.query.get("resourceVersion") for r in server.requests[1:3]] == ["33", "36"]


def test_nobody_can_say_what_a_broken_watch_would_have_shown(server: Server) -> None:
    server.script = [
        listed(node("a"), version=33),
        lambda r: r.stream(event("ADDED", node("b")), b'{"type":', whole=False),
    ]
    with pytest.raises(HarnessError, match=r"that held the nodes of .* broke after 0"):
        held(server, 5.0)


def test_describe() -> None:
    waits = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pod = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Pending", "containerStatuses": [waits, {"state": {"running": {}}}]},
    }
    reason = {"type": "Ready", "status": "False", "message": "no network"}
    sick = node("s", conditions=[reason, {"type": "DiskPressure", "status": "True"}])
    assert waiting.describe([pod, sick, {"metadata": {"name": "bare"}}]) == (
        "p Pending (ImagePullBackOff) on n; s DiskPressure (not Ready: no network); bare no status"
    )
    assert waiting.describe([]) == "nothing"
    assert waiting.describe([node(str(i)) for i in range(50)]).count(";") == 19
