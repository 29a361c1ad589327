"""Histories: everything that was seen of a cluster, one JSON line an event.

The first line of a file is its :class:`Header`; every other line is an :class:`Event`. Lines are
written in the order of arrival and flushed, so a killed run leaves a file that can be read up to
its last line. See ``schemas/history.v1.json``; :mod:`oracles.reading` reads them,
:mod:`oracles.ordering` puts them into the order in which things happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

#: value of ``schema`` in the first line
SCHEMA = "muster.history.v1"

#: sources of events
WATCH: Final = "watch"
FAULT: Final = "fault"
PROGRESS: Final = "progress"
MARK: Final = "mark"
GAP: Final = "gap"

#: types of WATCH events
ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

#: types of GAP events. Only what lies between BEGIN and END of a kind was, or may have been,
#: missed. RESUMED: a connection broke and was taken up again where it ended; nothing was missed,
#: but events of the kind came late (``object.since``: mono of the last sign of life before).
BEGIN, END, RESUMED = "begin", "end", "resumed"

#: types of MARK events that delimit a test; their name is the test's
TEST_START, TEST_END = "test-start", "test-end"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line.

    Attributes:
        started: seconds since 1970; ``mono`` of all events counts from the same moment.
        facts: what judges need and no event says: provider, Kubernetes, topology name, operator
            and scheduler with versions, the framework. A slice has ``slice`` in it, see
            :mod:`oracles.slicing`.
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
        t: wall time of arrival, seconds since 1970; of PROGRESS: the line's own time, unless that
            is later than its arrival.
        mono: seconds since the recorder started, of a clock that never jumps: the same moment as
            *t*. Put in order (:mod:`oracles.ordering`), it never decreases.
        source: WATCH, FAULT, PROGRESS, MARK or GAP.
        type: WATCH: ADDED, MODIFIED, DELETED (an object found by a list after a gap or at the
            start is ADDED; one found gone is DELETED, with nothing but its metadata); FAULT:
            inject, proven, unproven, recover; PROGRESS: the line's event; MARK: test-start,
            test-end, or a test's own word; GAP: begin, end, resumed.
        kind: kind of the object (``Pod``), of the fault, or that a gap is about ("" for all kinds).
        rv: resource version; 0 where there is none. Versions of all kinds of one cluster count
            the same store's writes, so they order events across kinds. Of a gap: the last version
            that was seen before it, and the one at which seeing began again.
        object: the object, pruned (see :mod:`oracles.kept`), or what the source has to say.
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


def write(path: Path, header: Header, events: Iterable[Event]) -> None:
    """Write a whole history, e.g. a hand-made one. The recorder has its own, appending writer."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.write(encode(header) + b"\n")
        file.writelines(encode(event) + b"\n" for event in events)
