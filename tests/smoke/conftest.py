"""One small real cluster for all smoke tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import engine, ledger
from clusters.cluster import Cluster, ClusterSpec
from clusters.kube import Kube
from clusters.parts import pins
from clusters.providers.containers import LABEL, PREFIX
from clusters.providers.kind import KindProvider
from clusters.topology import load

#: name of a cluster that is up and is used instead of a new one
REUSE = "MUSTER_SMOKE_CLUSTER"
#: beginning of the names of smoke clusters
NAME = "smoke-"


@pytest.fixture(scope="session")
def small() -> Iterator[Cluster]:
    """A kind cluster of the topology ``small``; when it is deleted, nothing of it is left."""
    kind = KindProvider()
    if name := os.environ.get(REUSE):
        yield kind.get(name)
        return
    for name in kind.left_over():
        if name.startswith(NAME):
            kind.delete(name)
    name = f"{NAME}{os.getpid()}"
    networks = _left("network", "ls", "-q")
    spec = ClusterSpec(name, load("small"), pins.pins().kubernetes.default, "smoke")
    try:
        yield kind.create(spec)
    finally:
        volumes = _volumes(name)
        kind.delete(name)
    assert name not in kind.names()
    assert _left("ps", "-aq", "--filter", f"label={LABEL}={PREFIX}{name}") == set()
    assert volumes, "a node has a volume, which must go with it"
    assert volumes & _left("volume", "ls", "-q") == set()
    # kind's network is there for all clusters, and for the next one
    new = _left("network", "ls", "-q") - networks
    assert {_name(network) for network in new} <= {"kind"}
    assert not ledger.folder(name).exists()


def _left(*args: str) -> set[str]:
    return set(engine.ensure().docker(*args).split())


def _volumes(name: str) -> set[str]:
    nodes = _left("ps", "-aq", "--filter", f"label={LABEL}={PREFIX}{name}")
    form = '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}'
    return _left("inspect", "--format", form, *sorted(nodes)) if nodes else set()


def _name(network: str) -> str:
    return engine.ensure().docker("network", "inspect", "--format", "{{.Name}}", network).strip()


@pytest.fixture(scope="session")
def kubeconfig(small: Cluster) -> Path:
    """How to reach it."""
    return small.kubeconfig


@pytest.fixture(scope="session")
def kube(small: Cluster) -> Kube:
    """A client of it."""
    return small.kube
