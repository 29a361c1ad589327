"""What this host has and lacks for real clusters, and how to get what is missing.

:func:`report` looks at everything and changes nothing; :func:`preflight` is the short form that
``clusters up`` begins with: it stops on the first thing without which nothing can work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clusters.doctor import faults, machine, pods, tools
from clusters.doctor.check import Check, State, exit_code, render
from clusters.doctor.needs import ELSEWHERE, Needs, NotFit, preflight, raise_inotify
from oracles.errors import HarnessError

__all__ = [
    "ELSEWHERE",
    "Check",
    "Needs",
    "NotFit",
    "State",
    "exit_code",
    "preflight",
    "raise_inotify",
    "render",
    "report",
]


def report(leftovers: Callable[[], Sequence[str]] | None = None) -> list[Check]:
    """All checks, in the order in which they are worth reading.

    Args:
        leftovers: answers with the names of what former runs left behind.
    """
    checks = machine.engine_checks()
    checks += [machine.inotify(), machine.disk(), machine.memory(), machine.loopback()]
    checks += [tools.go(), tools.debootstrap(), tools.uv(), tools.report_page()]
    checks += [*pods.interpreters(), *faults.checks()]
    if leftovers is not None:
        checks.append(_leftovers(leftovers))
    return checks


def _leftovers(ask: Callable[[], Sequence[str]]) -> Check:
    name, why = "leftovers", "what a crashed run left takes memory, and fake GPUs, from the next"
    try:
        found = ask()
    except HarnessError as error:
        return Check(name, State.WARN, "cannot be told", why, hint=str(error).splitlines()[0])
    if not found:
        return Check(name, State.OK, "none", why)
    return Check(
        name, State.WARN, ", ".join(found), why, hint="the next `clusters up` removes them"
    )
