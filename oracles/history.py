"""Histories: everything that was seen of a cluster, one JSON line an event.

The first line of a file is its :class:`Header`; every other line is an :class:`Event`. Lines are
written in the order of arrival and flushed, so a killed run leaves a file that can be read up to
its last line. See ``schemas/history.v1.json``.
"""

from __future__ import annotations

from typing import Any

import msgspec

#: value of ``schema`` in the first line
SCHEMA = "muster.history.v1"

#: sources of events
WATCH, FAULT, PROGRESS, MARK, GAP = "watch", "fault", "progress", "mark", "gap"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line.

    Attributes:
        started: seconds since 1970; ``mono`` of all events counts from the same moment.
        facts: what judges need and no event says: provider, Kubernetes, topology name, operator
            and scheduler with versions, the framework.
    """

    schema: str = SCHEMA
    run: str
    cluster: str
    started: float
    facts: dict[str, Any] = {}


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing that was seen. Not a dataclass: a million of them are read in seconds.

    Attributes:
        seq: number of the line by arrival, from 1; violations cite it.
        t: wall time of arrival, seconds since 1970.
        mono: seconds since the recorder started, of a clock that never jumps.
        source: WATCH, FAULT, PROGRESS, MARK or GAP.
        type: WATCH: ADDED, MODIFIED, DELETED (an object found by a list after a gap or at the
            start is ADDED); FAULT: inject, proven, unproven, recover; PROGRESS: the line's event;
            MARK: test-start, test-end, or a test's own word; GAP: begin, end.
        kind: kind of the object (``Pod``), of the fault, or that a gap is about ("" for all kinds).
        rv: resource version; 0 where there is none. Versions of all kinds of one cluster count
            the same store's writes, so they order events across kinds.
        object: the object, pruned (see :mod:`oracles.pruning`), or what the source has to say.
    """

    seq: int
    t: float
    mono: float
    source: str
    type: str
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    rv: int = 0
    object: dict[str, Any] = {}
