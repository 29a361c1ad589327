"""The steps of the gang tables, on an API that is told what to show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from oracles.errors import InvariantViolation, NotApplicable
from suites import promises
from suites.gang import test_bare_pods
from suites.gangs import Gang, gang
from suites.promises import Promise
from suites.rows import Row
from suites.sched import test_nodes, test_priority
from suites.stage import Stage
from suites.steps import Held, Untouched, WholeOrNone

Object = dict[str, Any]
TABLES = [*test_bare_pods.TABLE, *test_nodes.TABLE, *test_priority.TABLE]


def _pod(name: str, node: str = "", *, uid: str = "", phase: str = "Pending") -> Object:
    return {
        "metadata": {
            "name": name,
            "uid": uid or name,
            "resourceVersion": "2",
            "labels": {"app": name.partition("-")[0]},
        },
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


class Api:
    """Shows some pods, and then what happens to them."""

    def __init__(self, pods: list[Object], *events: tuple[str, Object]) -> None:
        self._pods = pods
        self._events = [{"type": kind, "object": pod} for kind, pod in events]

    def list_with_version(self, *_: object, **__: object) -> tuple[list[Object], str]:
        return self._pods, "1"

    def find(self, *_: object, **__: object) -> list[Object]:
        return self._pods

    def watch(self, *_: object, **__: object) -> Iterator[Object]:
        events, self._events = self._events, []
        return iter(events)


def _stage(api: Api, *gangs: Gang) -> Stage:
    system = cast("Any", SimpleNamespace(cluster=SimpleNamespace(kube=api)))
    stage = Stage(system, "ns", lambda _: nullcontext(), lambda *_: None, ExitStack())
    stage.gangs = {each.name: each for each in gangs}
    return stage


def test_what_is_held_may_not_be_bound_meanwhile() -> None:
    api = Api([_pod("a-0"), _pod("a-1")], ("MODIFIED", _pod("a-0", "node")))
    with pytest.raises(InvariantViolation, match="gang a: 1 pods were bound"):
        Held(0.05, a=0)(_stage(api, gang("a", 2)))


def test_what_is_held_bound_may_not_be_lost_meanwhile() -> None:
    api = Api([_pod("a-0", "node")], ("DELETED", _pod("a-0", "node")))
    with pytest.raises(InvariantViolation, match="gang a: 0 pods were bound"):
        Held(0.05, a=1)(_stage(api, gang("a", 1)))


def test_what_is_held_bound_may_not_be_made_again_meanwhile() -> None:
    api = Api([_pod("a-0", "node")], ("MODIFIED", _pod("a-0", "node", uid="another")))
    with pytest.raises(InvariantViolation, match="other pods than before"):
        Held(0.05, a=1)(_stage(api, gang("a", 1)))


def test_other_gangs_may_do_as_they_like_while_one_is_held() -> None:
    api = Api([_pod("a-0"), _pod("b-0")], ("MODIFIED", _pod("b-0", "node")))
    Held(0.05, a=0)(_stage(api, gang("a", 1), gang("b", 1)))


def test_a_pod_that_has_ended_holds_no_room() -> None:
    api = Api([_pod("a-0", "node", phase="Succeeded")])
    Held(0.05, a=0)(_stage(api, gang("a", 1)))


@pytest.mark.parametrize(("bound", "whole"), [(0, True), (1, False), (2, True), (3, True)])
def test_a_gang_is_left_whole_or_not_at_all(bound: int, whole: bool) -> None:
    pods = [_pod(f"a-{n}", "node" if n < bound else "") for n in range(3)]
    step, stage = WholeOrNone(0.05, "a"), _stage(Api(pods), gang("a", 3, minimum=2))
    if whole:
        step(stage)
    else:
        with pytest.raises(AssertionError, match="1 of its pods are left bound"):
            step(stage)


def test_others_that_are_lost_with_a_pod_are_named() -> None:
    stage = _stage(Api([_pod("a-0", "node"), _pod("a-1", "node", uid="new")]), gang("a", 3))
    stage.kept = {"a-0": "a-0", "a-1": "a-1"}
    with pytest.raises(AssertionError, match="others with it: a-1"):
        Untouched()(stage)


def test_a_row_leases_what_it_asks_for_or_all() -> None:
    small = Row((Gang("a", (1, 1, 99)),), ())
    assert small.lease(8) == 2  # what nobody has, nobody can hold
    assert Row(small.gangs, (), room=6).lease(8) == 8
    assert Row(small.gangs, (), spare=2).lease(8) == 8


def test_every_row_is_named_once_and_by_its_behaviour() -> None:
    names = [cast("Any", each).id for each in TABLES]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[GS][0-9]{2} .+", name) for name in names)


def test_the_core_is_small() -> None:
    """At most 12 behaviours on kind: what a real kubelet can change."""
    suites = Path(__file__).parents[2] / "suites"
    files = [*suites.glob("gang/*.py"), *suites.glob("sched/*.py")]
    marks = sum(path.read_text().count("pytest.mark.core") for path in files)
    assert 0 < marks <= 12


def test_what_is_not_promised_is_not_applicable_with_the_reason() -> None:
    volcano = cast("Any", SimpleNamespace(name="volcano"))
    with pytest.raises(NotApplicable, match=r"volcano does not promise .*: its webhook refuses"):
        promises.require(volcano, Promise.LATE_GROUP)


def test_a_scheduler_that_nobody_listed_promises_everything() -> None:
    promises.require(cast("Any", SimpleNamespace(name="another")), *Promise)
