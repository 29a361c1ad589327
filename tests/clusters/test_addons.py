"""What rooms above contribute to a new cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from clusters import addons
from clusters.cluster import Mount
from oracles.errors import UsageError

Offer = Callable[..., None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Gives an entry point: its group, and the functions of its module, the first of them named."""
    points: dict[str, list[EntryPoint]] = {addons.INSTALLERS: [], addons.MOUNTS: []}
    monkeypatch.setattr(addons, "entry_points", lambda group: points[group])

    def add(group: str, **functions: Any) -> None:
        name = f"offered_{sum(map(len, points.values()))}"
        module = ModuleType(name)
        for key, value in functions.items():
            setattr(module, key, value)
        monkeypatch.setitem(sys.modules, name, module)
        points[group].append(EntryPoint(name, f"{name}:{next(iter(functions))}", group))

    return add


def test_nothing_offered(offer: Offer) -> None:
    addons.check(operator="x", scheduler="y")
    addons.install(None, operator="x", scheduler="y")  # type: ignore[arg-type]
    assert addons.mounts() == ()


def test_install(offer: Offer) -> None:
    done: list[object] = []
    for _ in range(2):
        offer(addons.INSTALLERS, install=lambda cluster, **words: done.append((cluster, words)))
    addons.install("c", operator="x", scheduler="y")  # type: ignore[arg-type]
    assert done == [("c", {"operator": "x", "scheduler": "y"})] * 2


def test_check(offer: Offer) -> None:
    def refuse(*, operator: str, scheduler: str) -> None:
        raise UsageError(f"no {operator} with {scheduler}")

    offer(addons.INSTALLERS, install=lambda *_, **__: None)  # one that checks nothing
    addons.check(operator="x", scheduler="y")
    offer(addons.INSTALLERS, install=lambda *_, **__: None, check=refuse)
    with pytest.raises(UsageError, match="no x with y"):
        addons.check(operator="x", scheduler="y")


def test_mounts(offer: Offer) -> None:
    one, two = (Mount(Path(f"/{name}"), f"/{name}") for name in ("a", "b"))
    offer(addons.MOUNTS, mounts=lambda: [one])
    offer(addons.MOUNTS, mounts=lambda: (two,))
    assert addons.mounts() == (one, two)
