"""The recorder of one cluster: from ``start`` to ``stop``, everything into one file."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import msgspec

from oracles.errors import HarnessError
from oracles.history import BEGIN, END, FAULT, GAP, MARK, PROGRESS, Header
from oracles.recorder.api import CRDS, KINDS, PODS, Api, Kind
from oracles.recorder.following import Follower, State
from oracles.recorder.tail import Tail
from oracles.recorder.writer import HistoryFile, Record

#: kind of a gap in progress lines
PROGRESS_GAP = "progress"
#: seconds within which an API server has to answer when recording starts
START = 30.0


class Notes(Protocol):
    """Who takes down what tests have to say. Each returns the ``seq`` of what was written."""

    def mark(
        self, type: str, name: str = "", namespace: str = "", about: Mapping[str, Any] = {}
    ) -> int:
        """A test's own word: that it starts, ends, submits a job."""

    def fault(
        self,
        type: str,
        kind: str,
        name: str = "",
        namespace: str = "",
        about: Mapping[str, Any] = {},
    ) -> int:
        """A fault's step: inject, proven, unproven, recover. *name*: what it is done to."""

    def settle(self, deadline: float = 10.0) -> list[str]:
        """Wait until everything that happened before this call is in the history.

        Returns:
            What could not be confirmed within *deadline* seconds, a line for each kind; a gap
            was written for each.
        """


@dataclass(frozen=True)
class Statistics:
    """What a recorder did.

    Attributes:
        events: written, by source.
        lost: events that could not be written (disk full).
        seconds, cpu: since the start; processor time of the recorder's own threads.
        states: kind -> how it is followed.
    """

    events: dict[str, int]
    bytes: int
    lost: int
    gaps: int
    resumed: int
    seconds: float
    cpu: float
    states: dict[str, str] = field(default_factory=dict)


class _Line(msgspec.Struct, gc=False):
    """What has to be known of a progress line to write it down; see ``progress.v1``."""

    t: float
    event: str
    pod: str
    pod_uid: str


class Recorder:
    """Records one cluster: the watches of all kinds, progress lines, faults and marks.

    ``oracles`` knows no clients: *api* is anything with the methods of :class:`Api`.
    """

    def __init__(
        self,
        api: Api,
        path: Path,
        *,
        run: str,
        cluster: str,
        facts: Mapping[str, Any] | None = None,
        kinds: Iterable[Kind] = (),
        progress: Path | None = None,
    ) -> None:
        """
        Args:
            path: the history; must not exist yet.
            facts: see :class:`~oracles.history.Header`.
            kinds: to record besides ``KINDS``: group objects, queues, jobs.
            progress: folder below which programs write progress lines.
        """
        self.path = path
        self._zero = time.monotonic()
        header = Header(run=run, cluster=cluster, started=time.time(), facts=dict(facts or {}))
        self._history = HistoryFile(path, header, zero=self._zero)
        self._followers = {
            kind: Follower(api, kind, self._history, self._crds_changed if kind == CRDS else None)
            for kind in dict.fromkeys([*KINDS, *kinds])
        }
        self._tail = Tail(progress, self.progress) if progress is not None else None
        self._namespaces: dict[str, str] = {}
        self._line = msgspec.json.Decoder(_Line)
        self._cpu = 0.0
        self._stopped = threading.Event()

    # life ----------------------------------------------------------------------------------

    def start(self, deadline: float = START) -> Recorder:
        """Begin. When this returns, every kind is watched, or is not served.

        Raises:
            HarnessError: not within *deadline* seconds; nothing is running then.
        """
        for thread in self._threads():
            thread.start()
        end = time.monotonic() + deadline
        for kind, follower in self._followers.items():
            with follower.changed:
                ready = follower.changed.wait_for(
                    lambda f=follower: f.state is not State.STARTING,  # type: ignore[misc]
                    max(0.0, end - time.monotonic()),
                )
            if not ready:
                self.stop(settle=0)
                raise HarnessError(
                    f"nothing can be recorded: {kind} is {follower.state} after {deadline:.0f} s:"
                    f" {follower.trouble or 'the API server did not answer'}"
                )
        return self

    def stop(self, settle: float = 5.0) -> Statistics:
        """End, once what happened until now is written (not later than *settle* seconds)."""
        if not self._stopped.is_set():
            if settle > 0:
                self.settle(settle)
            self._cpu = self._cpu_now()
            self._stopped.set()
            for thread in self._threads():
                thread.stop()
            for thread in self._threads():
                if thread.is_alive():
                    thread.join(5)
            self._history.close()
        return self.statistics()

    def __enter__(self) -> Recorder:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def statistics(self) -> Statistics:
        """So far."""
        followers = self._followers.values()
        return Statistics(
            events=dict(self._history.written),
            bytes=self._history.bytes,
            lost=self._history.lost,
            gaps=sum(follower.gaps for follower in followers),
            resumed=sum(follower.resumed for follower in followers),
            seconds=time.monotonic() - self._zero,
            cpu=self._cpu if self._stopped.is_set() else self._cpu_now(),
            states={str(kind): f.state.value for kind, f in self._followers.items()},
        )

    # what others have to say ---------------------------------------------------------------

    def mark(
        self, type: str, name: str = "", namespace: str = "", about: Mapping[str, Any] = {}
    ) -> int:
        """See :class:`Notes`."""
        record = Record(source=MARK, type=type, name=name, namespace=namespace, object=dict(about))
        return self._history.append([record])

    def fault(
        self,
        type: str,
        kind: str,
        name: str = "",
        namespace: str = "",
        about: Mapping[str, Any] = {},
    ) -> int:
        """See :class:`Notes`."""
        record = Record(
            source=FAULT, type=type, kind=kind, name=name, namespace=namespace, object=dict(about)
        )
        return self._history.append([record])

    def progress(self, lines: list[bytes]) -> None:
        """Lines of training programs. One that is none is a gap: what it said is not known."""
        records: list[Record] = []
        now, mono = time.time(), self._history.mono()
        for line in lines:
            try:
                said = self._line.decode(line)
            except msgspec.DecodeError as error:
                about = {"why": f"no progress line: {error}", "line": repr(line[:200])}
                records += [
                    Record(source=GAP, type=type, kind=PROGRESS_GAP, object=about)
                    for type in (BEGIN, END)
                ]
                continue
            t = min(said.t, now)
            records.append(
                Record(
                    t=t,
                    mono=max(1e-6, mono - (now - t)),
                    source=PROGRESS,
                    type=said.event,
                    namespace=self._namespace_of(said.pod_uid),
                    name=said.pod,
                    uid=said.pod_uid,
                    object=msgspec.Raw(line),
                )
            )
        self._history.append(records)

    def settle(self, deadline: float = 10.0) -> list[str]:
        """See :class:`Notes`."""
        end = time.monotonic() + deadline
        if self._tail is not None:
            self._tail.catch_up()
        troubles = []
        for follower in self._followers.values():
            if trouble := follower.settle(end):
                follower.unsure(f"not confirmed within {deadline:.0f} s: {trouble}")
                troubles.append(trouble)
        return troubles

    # helpers -------------------------------------------------------------------------------

    def _threads(self) -> list[Follower | Tail]:
        return [*self._followers.values(), *([self._tail] if self._tail is not None else [])]

    def _crds_changed(self) -> None:
        for follower in self._followers.values():
            follower.wake()

    def _namespace_of(self, uid: str) -> str:
        """Where a pod is; remembered, for a program's last lines come when its pod is gone."""
        found = self._namespaces.get(uid)
        if found is None:
            found = self._followers[PODS].namespace_of(uid)
            if found is None:
                return ""
            self._namespaces[uid] = found
        return found

    def _cpu_now(self) -> float:
        total = 0.0
        for thread in self._threads():
            if thread.is_alive() and thread.ident is not None:
                total += time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        return total
