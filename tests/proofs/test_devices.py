"""Device plugins that lie to their kubelets, on a kind cluster of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest

from chaos.faults.base import Proof
from chaos.faults.gpus import SickenGpus
from chaos.injecting import Injector
from clusters import deviceplugin, fakegpus
from clusters.deviceplugin import Offer
from clusters.topology import load
from fixtures.plugin import context
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.plugin.options import DEFAULT_SCHEDULER, Combination
from oracles.errors import NotApplicable
from suites.sched import test_kubelet
from tests.proofs import elsewhere
from tests.proofs.staging import Doubling, OnStage

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def plugged(request: pytest.FixtureRequest) -> Iterator[SystemUnderTest]:
    """Real kubelets with device plugins, on a kind cluster of their own."""
    if context.of(request.config).options.provider != "kind":
        raise NotApplicable("only a real kubelet asks a device plugin: use --provider kind")
    with elsewhere.system(
        request.config, provider="kind", topology=load("small").in_mode("device-plugin"),
        scheduler=DEFAULT_SCHEDULER,
    ) as found:  # fmt: skip
        yield found


class Denying:
    """Who injects what makes GPUs ill; but their plugin says that they are well."""

    def __init__(self, real: Injector) -> None:
        self._real = real

    def __call__(self, fault: SickenGpus) -> Proof:
        """They are ill for a moment."""
        proof, site = self._real(fault), self._real.site
        have = int(proof.evidence["capacity"])
        deviceplugin.change(site.cluster, fault.node, Offer(have))
        fakegpus.wait(site.kube, fault.node, have)
        return proof

    def recover(self, fault: SickenGpus) -> None:
        """They are well in truth."""
        self._real.recover(fault)


@pytest.fixture(name="_found")
def _instead(
    request: pytest.FixtureRequest, _muster_system: Combination, plugged: SystemUnderTest
) -> SystemUnderTest:
    return elsewhere.stands_in(request, plugged)


@pytest.mark.exclusive
@pytest.mark.proves(
    "S11", by="a device plugin that gives its devices out twice", shows="had to refuse pod late"
)
def test_devices_are_given_twice(
    on_stage: OnStage, gpus: Callable[[int], int], expect: Expecting
) -> None:
    with on_stage(kind=Doubling) as stage:
        test_kubelet.test_a_pod_bound_by_hand_gets_no_gpu_that_is_taken(stage, gpus, expect)


@pytest.mark.exclusive
@pytest.mark.proves(
    "S12", by="a device plugin that says of a sick device that it is well", shows="had to"
)
def test_a_sick_device_is_said_to_be_well(
    on_stage: OnStage, inject: Injector, expect: Expecting
) -> None:
    """Its next pod gets it: the one that no scheduler saw, or the one that was to wait."""
    denying = cast("Injector", Denying(inject))
    with on_stage() as stage:
        test_kubelet.test_a_gpu_that_falls_ill_under_a_pod_is_given_to_nobody_else(
            stage, denying, expect
        )
