"""One small real cluster for all smoke tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.cluster import Cluster, ClusterSpec
from clusters.kube import Kube
from clusters.parts import pins
from clusters.providers import provider
from clusters.topology import load

#: name of a cluster that is up and is used instead of a new one
REUSE = "MUSTER_SMOKE_CLUSTER"


@pytest.fixture(scope="session")
def small() -> Iterator[Cluster]:
    """A kind cluster of the topology ``small``."""
    kind = provider("kind")
    if name := os.environ.get(REUSE):
        yield kind.get(name)
        return
    spec = ClusterSpec("smoke", load("small"), pins.pins().kubernetes.default, "smoke")
    try:
        yield kind.create(spec)
    finally:
        kind.delete(spec.name)


@pytest.fixture(scope="session")
def kubeconfig(small: Cluster) -> Path:
    """How to reach it."""
    return small.kubeconfig


@pytest.fixture(scope="session")
def kube(small: Cluster) -> Kube:
    """A client of it."""
    return small.kube
