"""TrainJobs in the test's namespace."""

from __future__ import annotations

import pytest

from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from suites.trainjob.stage import TrainJobs


@pytest.fixture
def trainjobs(system: SystemUnderTest, ns: str, expect: Expecting) -> TrainJobs:
    """See :class:`TrainJobs`."""
    return TrainJobs(system, ns, expect)
