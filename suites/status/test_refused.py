"""Children that are refused, and what is said of it."""

from __future__ import annotations

import pytest

from clusters.kube import EVENTS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from suites.cast import ANSWER, KINDS, Cast


@pytest.mark.behaviour("T08")
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("refused", ["pods", "services"])
def test_a_quota_that_refuses_children_is_told(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str, refused: str
) -> None:
    """A quota of none: an event or a condition of the job names it."""
    cast = Cast(system, ns, expect)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "nothing"},
        "spec": {"hard": {refused: "0"}},
    }
    cast.kube.create(quota, namespace=ns)
    made = cast.add(kind, "refused")
    uid = made["metadata"]["uid"]

    def told(events: list[Object]) -> bool | None:
        job = cast.job("refused") or {}
        texts = [e.get("message", "") for e in events if e["involvedObject"].get("uid") == uid]
        texts += [c.get("message", "") for c in job.get("status", {}).get("conditions") or []]
        return True if any("exceeded quota" in text for text in texts) else None

    with expect(f"the job says that a quota refuses its {refused}"):
        cast.kube.wait(EVENTS, told, namespace=ns, deadline=ANSWER, why="quota named")
