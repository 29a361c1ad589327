"""The ways in which a job can end, each brought about on command.

Every job has a leader and one worker, so that at its end one pod has terminated and, unless a
limit ended the job, another one still runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from clusters.kube import Object
from fixtures.workloads import order
from suites import tables
from suites.cast import KINDS, LEADERS, Cast, at

#: way of ending -> restart policy, further run policy, condition at the end
ENDINGS: dict[str, tuple[str, Object, str]] = {
    "success": ("OnFailure", {}, "Succeeded"),
    "failure": ("Never", {}, "Failed"),
    "permanent exit": ("ExitCode", {}, "Failed"),
    "backoff limit": ("OnFailure", {"backoffLimit": 1}, "Failed"),
    "deadline": ("OnFailure", {}, "Failed"),
}
#: seconds that a deadline is set ahead
AHEAD = 2
#: seconds for which a job that has ended is watched. With what tests do before, it is there for 6
#: to 8: longer than the grace of its completion time, 5, shorter than that of its counts, 10. Else
#: what it never says would be found in some runs and not in others, as these last
WATCHED = 5.0


def add(cast: Cast, kind: str, name: str, ending: str, **policy: object) -> None:
    """Submit a job that is to end in this way; *policy* are further fields of its runPolicy."""
    restart, more, _ = ENDINGS[ending]
    cast.add(kind, name, restart=restart, policy={**more, **policy})


def run(cast: Cast, ending: str, **policy: object) -> list[str]:
    """A running job of each kind that is to end in this way; their names."""
    for kind in KINDS:
        add(cast, kind, kind.lower(), ending, **policy)
    cast.run()
    return list(cast.kinds)


def ended(cast: Cast, ending: str, **policy: object) -> list[str]:
    """A job of each kind that has ended in this way; their names.

    Raises:
        AssertionError: one of them did not end so.
    """
    names = run(cast, ending, **policy)
    bring(cast, names, ending)
    late = cast.reach(dict.fromkeys(names, tables.true(end(ending))))
    assert not late, f"after {ending} jobs are {late}"
    return names


def bring(cast: Cast, names: Iterable[str], ending: str) -> None:
    """Bring running jobs to their end; returns when the cause is there, not when they ended."""
    chosen = list(names)
    if ending == "deadline":
        _past(cast, chosen)
        return
    for name in chosen:
        kind = cast.kinds[name].kind
        if ending == "success":
            told = order("finish", role=LEADERS[kind])
        elif ending == "backoff limit":
            told = order("exit", 1, role="worker", times=1, id="once")
        else:
            told = order("exit", 1, role="worker")
        cast.tell(name, told)


def end(ending: str) -> str:
    """The condition that is true at the end."""
    return ENDINGS[ending][2]


def _past(cast: Cast, names: list[str]) -> None:
    """Give running jobs a deadline, let it pass, and wake the operator after it.

    Whether a deadline wakes the operator by itself is another behaviour's business (C02).
    """
    last = 0.0
    for name in names:
        job = cast.job(name)
        assert job is not None
        started = at(job, "startTime")
        assert started, f"{name} runs, but has no startTime to count its deadline from"
        seconds = int(time.time() - started) + AHEAD
        cast.patch(name, {"spec": {"runPolicy": {"activeDeadlineSeconds": seconds}}})
        last = max(last, started + seconds)
    # nothing is waited for but the time itself; whole seconds, so one more
    time.sleep(max(0.0, last + 1.0 - time.time()))
    for name in names:
        cast.touch(name)
