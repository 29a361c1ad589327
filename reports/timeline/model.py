"""What a timeline page shows, as plain data: groups of lanes over one axis of time.

All times are seconds of the history's monotonic clock (``Event.mono``); the page counts them from
``Timeline.zero``. Numbers called *event* are sequence numbers of the history (0: none).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oracles.invariants.base import Violation
from oracles.known import KnownFault


@dataclass(frozen=True, slots=True)
class Segment:
    """Something that was so from *start* to *end*.

    Attributes:
        state: what decides the look: ``ready``, ``Restarting``, ``training``.
        label: written on it.
        began, ended: the events that began and ended it; *ended* is 0 when the history ends first.
    """

    start: float
    end: float
    state: str
    label: str = ""
    began: int = 0
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Tick:
    """Something that happened at one moment; *kind* decides the look: ``agent``, ``signal``."""

    x: float
    kind: str
    text: str
    event: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of bars in a lane. *look*: ``bar`` (tall), ``thin`` (a condition), ``strip``."""

    look: str
    segments: tuple[Segment, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """How many of each state there were, stacked in the order of *series*.

    Attributes:
        points: from each point's time on, so many of each.
        limits: a line that the stack is compared with (minimum of a gang, GPUs of a node): from
            each time on, that value.
        compared: how many series, from the bottom, are compared with the limit.
        floor: the limit is to be reached (True) or not to be passed (False).
    """

    series: tuple[str, ...]
    points: tuple[tuple[float, ...], ...]
    limits: tuple[tuple[float, float], ...] = ()
    limit_name: str = ""
    compared: int = 0
    floor: bool = True


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over time (global steps), above bands that say under which conditions."""

    unit: str
    points: tuple[tuple[float, float], ...]
    bands: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the page.

    Attributes:
        id: ``Kind namespace/name`` where it is about an object, as violations name it.
        kind: of the object, or ``pods``, ``training``, ``faults``, ``violations``, ``marks``.
        name: short name beside it; *title* is the full one.
        note: small text under the name, e.g. the node of a pod.
    """

    id: str
    kind: str
    name: str
    title: str
    note: str = ""
    rows: tuple[Row, ...] = ()
    ticks: tuple[Tick, ...] = ()
    chart: Chart | None = None
    curve: Curve | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Lanes that belong together: a job and what it owns, the nodes.

    Attributes:
        summary: what its own line shows, so that a closed group still says something.
    """

    id: str
    title: str
    note: str
    lanes: tuple[Lane, ...]
    summary: tuple[Segment, ...] = ()
    open: bool = True


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch that is shown across lanes: a fault from injection to recovery, a gap.

    Attributes:
        kind: of a gap, the kind of object whose events are missing ("" for all).
        end: None when it never ended.
    """

    start: float
    end: float | None
    kind: str
    text: str
    event: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """A line of the list of what happened. *tone*: good, bad, known, fault, gap, info.

    *flag* is the number of the violation that it is about, from 1; 0 for none.
    """

    x: float
    tone: str
    subject: str
    text: str
    event: int = 0
    lane: str = ""
    flag: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """An event in words."""

    x: float
    type: str
    subject: str
    rv: int
    words: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A violation, and where it is on the page. *known*: the published fault that explains it."""

    violation: Violation
    x: float
    lane: str
    known: KnownFault | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A page.

    Attributes:
        zero: the moment that is 0 on the axis: the start of the test.
        epoch: wall time of *zero*, seconds since 1970.
        start, end: what is shown at first.
        omitted: how many small changes are not on the page, to keep it small.
    """

    title: str
    outcome: str
    zero: float
    epoch: float
    start: float
    end: float
    events: int
    facts: Mapping[str, str]
    groups: tuple[Group, ...]
    faults: tuple[Span, ...] = ()
    gaps: tuple[Span, ...] = ()
    flags: tuple[Flag, ...] = ()
    moments: tuple[Moment, ...] = ()
    notes: Mapping[int, Note] = field(default_factory=dict)
    omitted: int = 0
