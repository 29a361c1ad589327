"""What happened while a kind could not be watched, from the versions that the server's store keeps.

A server that made its cache of a kind anew, because the kind's definition changed or it was itself
started again, refuses a watch from before (410, "too old resource version"). Its store still has
every version, until they are compacted some minutes later. So the kind is listed at exactly each
version in between (``resourceVersionMatch=Exact``): every change is found, in its order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from oracles import pruning
from oracles.errors import HarnessError
from oracles.recorder.api import Api
from oracles.recorder.records import Known, Records
from oracles.recorder.writer import Record

#: versions, of all kinds together, that are asked for at most: a busy cluster has ten a second, and
#: a kind of which nothing changes is a minute behind, the time from bookmark to bookmark
MOST = 3000
#: seconds for all of it, and between two attempts at a server that just starts to serve the kind
WITHIN, AGAIN = 30.0, 0.2
#: statuses of a server that may answer soon; 0: it did not answer
_SOON = frozenset({0, 429, 500, 503})


class Filled(NamedTuple):
    """What happened, and the objects that there are after it at *version*."""

    records: list[Record]
    known: dict[str, Known]
    version: int


def fill(
    api: Api,
    what: Any,
    records: Records,
    known: Mapping[str, Known],
    since: int,
    stopping: threading.Event,
) -> Filled | None:
    """Everything that happened after version *since* up to now; None: it cannot be known."""
    end = time.monotonic() + WITHIN
    found: list[Record] = []
    there = dict(known)
    try:
        _, latest = pruning.items(_listed(api, what, "", end, stopping))
        if int(latest) - since > MOST:
            return None
        for version in range(since + 1, int(latest) + 1):
            raw, _ = pruning.items(_listed(api, what, str(version), end, stopping))
            news, there = records.news(raw, there, version, each=True)
            found += news
    except (HarnessError, msgspec.DecodeError):
        return None
    return Filled(found, there, int(latest))


def _listed(api: Api, what: Any, at: str, end: float, stopping: threading.Event) -> bytes:
    while True:
        left = max(0.1, end - time.monotonic())
        try:
            return api.list_raw(what, at=at, timeout=left)
        except HarnessError as error:
            soon = getattr(error, "status", 0) in _SOON
            if not soon or time.monotonic() + AGAIN > end or stopping.wait(AGAIN):
                raise
