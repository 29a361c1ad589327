"""The way of a system under test to its API server, so that a test can break it."""

from __future__ import annotations

from chaos.faults.api import ThroughProxy
from chaos.site import Site
from chaos.target import Target
from fixtures.plugin.clusters import SystemUnderTest


def through_proxy(system: SystemUnderTest, target: Target) -> ThroughProxy:
    """The fault that leads its operator, or its scheduler, through a proxy."""
    which = system.combination
    return ThroughProxy(
        Site.of(system.cluster), target,
        operator=which.operator_label, scheduler=which.scheduler_label,
    )  # fmt: skip
