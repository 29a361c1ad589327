"""Proofs that need containers which really run, and so a real kubelet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.faults.base import Fault, Proof
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from suites.recovery import test_failed_by_node
from tests.proofs.breaking import kept

pytestmark = pytest.mark.proof

#: the pod whose replacement is prevented
WORKER = "always-worker-0"


@pytest.mark.proves(
    "R03",
    by="somebody's finalizer keeps a pod that its kubelet failed",
    shows="Always: its worker is not replaced: ",
)
@pytest.mark.parametrize("kind", test_failed_by_node.KINDS)
def test_a_pod_that_cannot_go(
    system: SystemUnderTest,
    ns: str,
    expect: Expecting,
    inject: Callable[[Fault], Proof],
    kind: str,
) -> None:
    with kept(system.cluster.kube, ns, WORKER):
        test_failed_by_node.test_a_pod_failed_by_its_kubelet_is_replaced(
            system, ns, expect, inject, kind
        )
