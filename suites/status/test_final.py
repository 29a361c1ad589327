"""Succeeded and Failed: one of them, for ever."""

from __future__ import annotations

import pytest

from clusters.kube import Object, conditions
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import order
from suites import tables
from suites.cast import LEADERS, Cast

#: jobs of one shape at once: the operator then sees both pods of some of them end in one look
JOBS = 6


@pytest.mark.behaviour("T02")
@pytest.mark.parametrize("shape", ["elastic PyTorchJob", "PyTorchJob", "TFJob"])
def test_one_pod_succeeds_as_another_fails(
    system: SystemUnderTest, ns: str, expect: Expecting, shape: str
) -> None:
    """Which of the two counts is another matter (T06); both it cannot be."""
    cast = Cast(system, ns, expect)
    names = [f"both-{index}" for index in range(JOBS)]
    for name in names:
        if shape == "elastic PyTorchJob":
            cast.elastic(name, 2, restart_policy="Never")
        else:
            cast.add(shape, name, restart="Never")
    cast.run()
    for name in names:
        if shape == "elastic PyTorchJob":
            cast.tell(name, order("finish", rank=0), order("exit", 1, rank=1))
        else:
            cast.tell(name, order("finish", role=LEADERS[shape]), order("exit", 1, role="worker"))
    with tables.judged() as table:
        late = cast.reach(dict.fromkeys(names, ended))
        for name, seen in late.items():
            table.broke(name, f"both of its pods ended, and the job is {seen}")
        for name in names:
            job = cast.job(name)
            both = job is not None and tables.true("Succeeded", "Failed")(job)
            table.hold(name, not both, "Succeeded and Failed are both true")


def ended(job: Object | None) -> bool:
    """Whether a job is Succeeded or Failed."""
    if job is None:
        return False
    now = conditions(job)
    return "True" in (now.get("Succeeded"), now.get("Failed"))
