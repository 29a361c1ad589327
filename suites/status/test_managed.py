"""A job that another controller manages."""

from __future__ import annotations

import pytest

from clusters.kube import PODS, SERVICES, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems.protocols import Feature
from suites import tables
from suites.cast import KINDS, Cast, needs

#: the one other manager that the API allows (its documentation, runPolicy.managedBy)
OTHER = "kueue.x-k8s.io/multikueue"
HOLD = 8.0


@pytest.mark.behaviour("T10")
def test_a_job_of_another_controller_is_left_alone(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """No pods, no services, no group, no status; also not when it is written to."""
    needs(system, Feature.MANAGED_BY)
    cast = Cast(system, ns, expect)
    for kind in KINDS:
        cast.add(kind, kind.lower(), policy={"managedBy": OTHER})
        cast.touch(kind.lower())

    def anything(items: list[Object]) -> str:
        return ", ".join(item["metadata"]["name"] for item in items)

    with tables.judged() as table:
        made = tables.held(cast.kube, PODS, ns, anything, seconds=HOLD)
        table.hold("pods", not made, f"made for a job of another controller: {made}")
        group = system.scheduler.group_resource()
        for what in (SERVICES, *([group] if group is not None else [])):
            found = anything(cast.kube.find(what, ns))
            table.hold(what.plural, not found, f"made for a job of another controller: {found}")
        for name in cast.kinds:
            status = (cast.job(name) or {}).get("status") or {}
            table.hold(name, not status, f"its status was written: {status}")
