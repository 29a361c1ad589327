"""The autoscaler of an elastic job, and the scale subresource that it reads."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.kube import Object, Resource
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems.protocols import Feature
from suites.cast import Cast, needs

AUTOSCALERS = Resource("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
#: seconds until the autoscaler has looked at its target: it does every 15 s
LOOKED = 60.0
METRICS: list[Any] = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
]


@pytest.mark.behaviour("T05", case="autoscaler")
def test_the_autoscaler_is_made_and_can_read_the_scale(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Whether it then scales needs metrics; that it can see its target does not."""
    needs(system, Feature.AUTOSCALER)
    cast = Cast(system, ns, expect)
    cast.elastic("scaled", 2, policy={"metrics": METRICS})
    cast.run()

    def able(found: list[Object]) -> bool | None:
        return True if any(_condition(item, "AbleToScale") == "True" for item in found) else None

    with expect("an autoscaler is made, and can read the job's scale"):
        cast.kube.wait(AUTOSCALERS, able, namespace=ns, deadline=LOOKED, why="able to scale")
    (found,) = cast.kube.find(AUTOSCALERS, ns)
    assert (found["spec"]["minReplicas"], found["spec"]["maxReplicas"]) == (1, 4)
    reasons = [c.get("reason", "") for c in found["status"]["conditions"]]
    assert "InvalidSelector" not in reasons, (
        "the autoscaler can read the job's scale, but not its selector:"
        f" {found['status']['conditions']}"
    )


def _condition(item: Object, kind: str) -> str:
    for condition in item.get("status", {}).get("conditions") or []:
        if condition["type"] == kind:
            return str(condition["status"])
    return ""
