"""Which pods stay when a job has ended."""

from __future__ import annotations

import pytest

from clusters.kube import PODS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from suites import endings, jobs, tables
from suites.cast import ANSWER, KINDS, LEADERS, Cast

POLICIES = ("All", "Running", "None")


def expected(kind: str, policy: str, ending: str) -> set[str]:
    """Roles whose pod stays; each job has a leader and one worker."""
    both = {LEADERS[kind], "worker"}
    over = {
        "success": {LEADERS[kind]},
        "failure": {"worker"},
        "permanent exit": {"worker"},
        # a limit ends a job whose pods all run
        "backoff limit": set(),
        "deadline": set(),
    }[ending]
    return {"All": set(), "Running": over, "None": both}[policy]


@pytest.mark.behaviour("C01")
@pytest.mark.parametrize("ending", list(endings.ENDINGS))
def test_the_policy_decides_which_pods_stay(
    system: SystemUnderTest, ns: str, expect: Expecting, ending: str
) -> None:
    """Every policy on both kinds of jobs, for one way of ending."""
    cast = Cast(system, ns, expect)
    cells = {f"{kind.lower()}-{p.lower()}": (kind, p) for kind in KINDS for p in POLICIES}
    for name, (kind, policy) in cells.items():
        endings.add(cast, kind, name, ending, cleanPodPolicy=policy)
    before = {pod["metadata"]["uid"] for pod in cast.run().values()}
    endings.bring(cast, cells, ending)
    late = cast.reach(dict.fromkeys(cells, tables.true(endings.end(ending))))
    wanted = {
        name: {f"{name}-{role}-0" for role in expected(kind, policy, ending)}
        for name, (kind, policy) in cells.items()
    }

    def left(pods: list[Object]) -> dict[str, set[str]]:
        # a pod that is made again under the name of one that was deleted did not stay
        there: dict[str, set[str]] = {name: set() for name in cells}
        for pod in pods:
            if pod["metadata"]["uid"] in before and "deletionTimestamp" not in pod["metadata"]:
                there[pod["metadata"]["labels"][jobs.JOB_LABEL]].add(pod["metadata"]["name"])
        return there

    def settled(pods: list[Object]) -> str:
        # nothing is there that has to go; what is missing will not come back
        there = left(pods)
        stays = any(there[name] - wanted[name] for name in cells if name not in late)
        return "" if stays else "settled"

    def wrong(pods: list[Object]) -> dict[str, str]:
        there = left(pods)
        return {
            name: ", ".join(sorted(there[name])) or "none"
            for name in cells
            if there[name] != wanted[name]
        }

    tables.held(cast.kube, PODS, ns, settled, seconds=ANSWER)
    found: dict[str, str] = {}

    def changed(pods: list[Object]) -> str:
        found.update(wrong(pods))
        return ""

    tables.held(cast.kube, PODS, ns, changed, seconds=endings.WATCHED)
    with tables.judged() as table:
        for name, (kind, policy) in cells.items():
            cell = f"{kind}, cleanPodPolicy {policy}, after {ending}"
            if name in late:
                table.broke(cell, f"the job is {late[name]}")
            elif name in found:
                should = ", ".join(sorted(wanted[name])) or "none"
                table.broke(cell, f"pods left: {found[name]}; should be: {should}")
