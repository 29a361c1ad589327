"""Moments that a fault can be aimed at, seen in the history while it is written.

A :class:`Stream` remembers where the history was when it was made, so what is aimed at may have
come and gone before anybody waits for it: whoever waits sees it all the same, only later. A moment
that lasts, by contrast, has to be made to last: see ``held`` in :mod:`chaos.faults.api`, which
stops a system right before its n-th write of a kind.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from chaos.errors import NotReached
from clusters.errors import ApiError, Unreachable
from clusters.kube import Kube
from oracles import relations
from oracles.changes import changes
from oracles.history import DELETED, PROGRESS, WATCH, Event

#: seconds between two looks at the file: nobody says when it grows. The recorder itself writes an
#: event up to 0.05 s late (``oracles.recorder.following``)
LOOK = 0.02
#: seconds between two looks at a log
LOG_LOOK = 0.25


class Moment(Protocol):
    """Something that happens once. ``feed`` is given all events in turn, and says when it has."""

    def feed(self, event: Event) -> bool:
        """Whether the moment has come with this event."""


class Stream:
    """A history that is being written, from where it was when this was made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start = self._whole_lines()

    def _whole_lines(self) -> int:
        data = b""
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            while size > 0 and b"\n" not in data:
                step = min(size, 1 << 16)
                size -= step
                file.seek(size)
                data = file.read(step) + data
        return size + data.rfind(b"\n") + 1

    def events(self, until: Callable[[], bool]) -> Iterator[Event]:
        """All events since, and those to come, until *until* says that it is enough."""
        decode = msgspec.json.Decoder(Event).decode
        with self.path.open("rb") as file:
            file.seek(self._start)
            rest = b""
            while True:
                data = file.read(1 << 20)
                if not data:
                    if until():
                        return
                    time.sleep(LOOK)
                    continue
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line and not line.startswith(b'{"schema"'):
                        yield decode(line)

    def wait(self, moment: Moment, *, deadline: float, what: str = "") -> Event:
        """Wait for a moment; the event that brought it.

        Raises:
            NotReached: not within *deadline* seconds; says what was seen last.
        """
        end = time.monotonic() + deadline
        last: deque[Event] = deque(maxlen=200)
        for event in self.events(lambda: time.monotonic() > end):
            last.append(event)
            if moment.feed(event):
                return event
            if time.monotonic() > end:
                break
        told = [f"{each.subject}: {each}" for each in changes(last)][-4:]
        raise NotReached(
            f"{what or moment} did not come within {deadline:.0f} s; last seen:"
            f" {'; '.join(told) or 'nothing'}"
        )


class _Moment:
    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def __str__(self) -> str:
        words = {
            k: v for k, v in vars(self).items() if not k.startswith("_") and v not in ("", None)
        }
        name = re.sub(r"(?<!^)([A-Z])", r" \1", type(self).__name__).lower()
        return f"{name} ({', '.join(f'{k} {v}' for k, v in words.items())})"

    def _pod(self, event: Event) -> bool:
        return event.source == WATCH and event.kind == "Pod" and event.namespace == self.namespace

    def _of(self, event: Event, job: str) -> bool:
        labels = (event.object.get("metadata") or {}).get("labels") or {}
        return not job or job in (labels.get(relations.JOB_NAME), labels.get("app"))


class PodsBound(_Moment):
    """The n-th pod (of a job) is bound."""

    def __init__(self, namespace: str, count: int, job: str = "") -> None:
        super().__init__(namespace)
        self.count = count
        self.job = job
        self._bound: set[str] = set()

    def feed(self, event: Event) -> bool:
        """See :class:`Moment`."""
        if self._pod(event) and self._of(event, self.job):
            if (event.object.get("spec") or {}).get("nodeName"):
                self._bound.add(event.uid)
            return len(self._bound) >= self.count
        return False


class PodsMade(_Moment):
    """The n-th pod (of a job, of a name) exists."""

    def __init__(self, namespace: str, count: int, job: str = "", pod: str = "") -> None:
        super().__init__(namespace)
        self.count = count
        self.job = job
        self.pod = pod
        self._made: set[str] = set()

    def feed(self, event: Event) -> bool:
        """See :class:`Moment`."""
        if self._pod(event) and event.type != DELETED and self._of(event, self.job):
            if self.pod in ("", event.name):
                self._made.add(event.uid)
            return len(self._made) >= self.count
        return False


class GroupWithoutPods(_Moment):
    """A group object is there (in one of *phases*, if any are named), and no pod yet."""

    def __init__(self, namespace: str, phases: tuple[str, ...] = ()) -> None:
        super().__init__(namespace)
        self.phases = phases
        self._pods: set[str] = set()

    def feed(self, event: Event) -> bool:
        """See :class:`Moment`."""
        if event.source != WATCH or event.namespace != self.namespace:
            return False
        if event.kind == "Pod":
            self._pods.add(event.uid)
        if event.kind not in relations.GROUP_KINDS or event.type == DELETED or self._pods:
            return False
        phase = (event.object.get("status") or {}).get("phase", "")
        return not self.phases or phase in self.phases


class JobCondition(_Moment):
    """A job has a condition for the first time."""

    def __init__(self, namespace: str, job: str, condition: str = "Running") -> None:
        super().__init__(namespace)
        self.job = job
        self.condition = condition

    def feed(self, event: Event) -> bool:
        """See :class:`Moment`."""
        if event.source != WATCH or event.kind not in relations.JOB_KINDS:
            return False
        if event.namespace != self.namespace or event.name != self.job:
            return False
        found = (event.object.get("status") or {}).get("conditions") or []
        return any(c["type"] == self.condition and c["status"] == "True" for c in found)


class Told(_Moment):
    """A training program tells of something: its start, a step, a checkpoint.

    Args:
        event: as in progress lines.
        step: not before this one.
    """

    def __init__(
        self, namespace: str, event: str = "step", *,
        pod: str = "", rank: int | None = None, step: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(namespace)
        self.event = event
        self.pod = pod
        self.rank = rank
        self.step = step

    def feed(self, event: Event) -> bool:
        """See :class:`Moment`."""
        if event.source != PROGRESS or event.namespace != self.namespace:
            return False
        line: dict[str, Any] = event.object
        return (
            event.type == self.event
            and self.pod in ("", event.name)
            and self.rank in (None, line.get("rank"))
            and (self.step is None or int(line.get("step") or 0) >= self.step)
        )


class Joining(_Moment):
    """A pod's container runs, and its processes have told of nothing yet.

    Its agent starts, or is in rendezvous.
    """

    def __init__(self, namespace: str, pod: str) -> None:
        super().__init__(namespace)
        self.pod = pod
        self._told: set[str] = set()

    def feed(self, event: Event) -> bool:
        """See :class:`Moment`."""
        if event.name != self.pod or event.namespace != self.namespace:
            return False
        if event.source == PROGRESS:
            self._told.add(event.uid)
        if not self._pod(event) or event.type == DELETED or event.uid in self._told:
            return False
        states = (event.object.get("status") or {}).get("containerStatuses") or []
        return bool(states) and all("running" in (s.get("state") or {}) for s in states)


def log_says(
    kube: Kube, namespace: str, pod: str, container: str, pattern: str, *, deadline: float
) -> str:
    """Wait until a container's log has a line that matches *pattern*; the line.

    What an agent does in a rendezvous is said nowhere else.

    Raises:
        NotReached: with the last line.
    """
    end = time.monotonic() + deadline
    wanted = re.compile(pattern)
    last = "no log"
    while time.monotonic() < end:
        try:
            text = kube.logs(namespace, pod, container)
        except (ApiError, Unreachable) as error:  # it has not begun
            last = str(error)
        else:
            for line in text.splitlines():
                if wanted.search(line):
                    return line
                last = line
        time.sleep(LOG_LOOK)
    raise NotReached(
        f"{namespace}/{pod} did not log {pattern!r} within {deadline:.0f} s; last: {last[:200]}"
    )


def make(namespace: str, words: dict[str, Any]) -> Moment:
    """A moment from an experiment's words: ``{moment: pods_bound, count: 3, job: train}``.

    Raises:
        ValueError: there is no such moment, or it does not take these words.
    """
    more = dict(words)
    name = str(more.pop("moment", ""))
    if name not in MOMENTS:
        raise ValueError(f"no moment {name!r}; one of {', '.join(MOMENTS)}")
    try:
        return MOMENTS[name](namespace, **more)
    except TypeError as error:
        raise ValueError(f"moment {name}: {error}") from error


MOMENTS: dict[str, Callable[..., Moment]] = {
    "pods_bound": PodsBound,
    "pods_made": PodsMade,
    "group_without_pods": GroupWithoutPods,
    "job_condition": JobCondition,
    "told": Told,
    "joining": Joining,
}
