"""What proofs are given. How they are judged is in :mod:`tests.proofs.judging`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.plugin.options import Combination
from tests.proofs import elsewhere

# hooks are found by their names in a conftest
from tests.proofs.judging import (
    pytest_configure as pytest_configure,
)
from tests.proofs.judging import (
    pytest_runtest_call as pytest_runtest_call,
)
from tests.proofs.judging import (
    pytest_sessionstart as pytest_sessionstart,
)
from tests.proofs.judging import (
    pytest_terminal_summary as pytest_terminal_summary,
)
from tests.proofs.staging import OnStage, staged


@pytest.fixture(scope="module")
def release(
    request: pytest.FixtureRequest, _muster_system: Combination
) -> Iterator[SystemUnderTest]:
    """A release of training-operator on an embedded cluster; see ``elsewhere.on``."""
    with elsewhere.released(request.config, _muster_system, request.param) as found:
        yield found


@pytest.fixture
def on_stage(system: SystemUnderTest, ns: str, expect: Expecting, measure: Measuring) -> OnStage:
    """``with on_stage(scheduler=instead) as stage:``, see :func:`tests.proofs.staging.staged`."""
    return partial(staged, system, ns, expect, measure)
