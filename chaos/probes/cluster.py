"""Probes of the cluster itself, and of what stands between it and a system."""

from __future__ import annotations

import time

from chaos import looking, session
from chaos.activities import activity, mending
from chaos.errors import NotProven
from chaos.faults.api import ApiTrouble
from clusters.progress import say

#: seconds between two looks at nodes, whose insides have no watch
LOOK = 0.25


@mending
def cluster_in_order(within: float = 30) -> bool:
    """Nodes Ready, nothing broken, operator and scheduler Ready; says what is not.

    Args:
        within: seconds for what is on its way, a container that starts again for instance.
    """
    site = session.current().site
    end = time.monotonic() + within
    while found := looking.troubles(site):
        if time.monotonic() > end:
            for line in found:
                say(f"not in order: {line}")
            return False
        time.sleep(LOOK)
    return True


@activity
def rule_acted(label: str, times: int = 1) -> int:
    """A rule of a proxy has done something to so many requests.

    Raises:
        NotProven: it has not, so whatever was seen says nothing about it.
    """
    fault = session.current().labels.get(label)
    if not isinstance(fault, ApiTrouble):
        raise NotProven(f"{label!r} names no trouble of a proxy")
    acted = fault.counts().acted
    if acted < times:
        raise NotProven(f"{fault.name} ({fault.about}) acted on {acted} requests")
    return acted
