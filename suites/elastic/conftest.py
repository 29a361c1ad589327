"""Fixtures of the elastic suite."""

from __future__ import annotations

import pytest

from clusters.cluster import ClusterProvider
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.runtimes import Runtime
from suites.elastic.stage import Injecting, Stage


@pytest.fixture
def stage(
    system: SystemUnderTest,
    provider: ClusterProvider,
    torch: Runtime,
    ns: str,
    inject: Injecting,
    expect: Expecting,
    measure: Measuring,
) -> Stage:
    """What a test of an elastic job needs. It runs once per ``--torch``."""
    return Stage(system.cluster, provider, torch, ns, inject, expect, measure)
