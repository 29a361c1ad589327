"""Actions that mend what was broken."""

from __future__ import annotations

import time

from chaos import session
from chaos.actions.jobs import give
from chaos.activities import activity, mending
from chaos.errors import FaultError


@activity
def recover(label: str) -> str:
    """Mend what was broken under a label."""
    it = session.current()
    fault = it.labels.pop(label, None)
    if fault is None:
        raise FaultError(f"nothing is broken under the label {label!r}")
    it.injector.recover(fault)
    it.mended = time.time()
    return fault.name


@mending
def recover_all() -> list[str]:
    """Mend everything that is left, the last first; what it was."""
    it = session.current()
    names = [fault.name for fault in it.injector.open]
    it.injector.close()
    it.labels.clear()
    it.routes.clear()
    return names


@mending
def finish_jobs() -> int:
    """Tell all jobs of the namespace to come to an end, so that nothing is killed at the end."""
    it = session.current()
    count = 0
    for what in it.operator.jobs.values():
        for job in it.kube.find(what, it.namespace):
            give(it, job["metadata"]["name"], "finish")
            count += 1
    return count
