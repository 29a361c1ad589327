"""When a job started and ended, for each way of ending."""

from __future__ import annotations

import pytest

from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from suites import endings, tables
from suites.cast import Cast, at


@pytest.mark.behaviour("T04")
@pytest.mark.parametrize("ending", list(endings.ENDINGS))
def test_start_and_completion_are_set_in_order(
    system: SystemUnderTest, ns: str, expect: Expecting, ending: str
) -> None:
    """Both are there at the end, the start has not changed, and the order is right."""
    cast = Cast(system, ns, expect)
    names = endings.run(cast, ending)
    started = {name: at(cast.job(name) or {}, "startTime") for name in names}
    endings.bring(cast, names, ending)
    with tables.judged() as table:
        late = cast.reach(dict.fromkeys(names, tables.true(endings.end(ending))))
        for name, seen in late.items():
            table.broke(name, f"after {ending} the job is {seen}")
        complete = {name: lambda job: job is not None and at(job, "completionTime") > 0
                    for name in names if name not in late}  # fmt: skip
        for name in cast.reach(complete, deadline=10):
            table.broke(name, f"after {ending} it has no completionTime")
        for name in names:
            job = cast.job(name) or {}
            begin, end = at(job, "startTime"), at(job, "completionTime")
            table.hold(name, begin > 0, "it has no startTime")
            table.hold(name, begin == started[name], "its startTime changed")
            table.hold(name, not end or begin <= end, "its completionTime is before its startTime")
