"""One kind, followed from a list on: every change written down, or the gap in which it was not.

What can happen to a watch, and what it means:

- The server ends it (it does so every few minutes): opened again where it ended. Nothing missed.
- The connection breaks, the server is away: the same, once it answers. ``resumed`` is noted.
- The server no longer has the version where it ended (410): what happened since is asked of its
  store (:mod:`oracles.recorder.filling`), and nothing missed: ``resumed`` is noted. If that cannot
  be had, listed again; what happened between is not known: a gap, with what the list found changed
  and gone.
- The kind is not served: tried again when a CustomResourceDefinition changes, and every ABSENT
  seconds. If there are objects once it is, they were not seen coming: a gap.
- The server refuses to list it, or answers nonsense: a gap until it does not any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import msgspec

from oracles import pruning
from oracles.errors import HarnessError
from oracles.history import BEGIN, DELETED, END, RESUMED
from oracles.recorder import filling
from oracles.recorder.api import Api, Kind, Stream
from oracles.recorder.records import Known, Records, note
from oracles.recorder.writer import HistoryFile, Record

#: seconds for which a watch is asked for; the server may end it earlier
WATCH_FOR = 300.0
#: seconds after which a kind that is not served, or refused, is tried again
ABSENT = 10.0
#: the same, in the ABSENT seconds after a CustomResourceDefinition changed
EAGER = 0.3
#: seconds after which a watch that brought nothing was none the worse for it
LASTED = 1.0
#: seconds within which a server that no longer has a watch's version says so, as its first line
ACCEPTED = 0.2
#: shortest and longest wait in seconds before a broken connection is tried again
RECONNECT = (0.1, 2.0)

#: To be woken costs far more than to read a line. So after a line that had to be waited for (longer
#: than WAITED seconds), the connection rests for REST seconds, and then all that came is read.
#: This is how late an event can be, besides what it takes on the way.
WAITED = 0.0005
REST = 0.05


class State(StrEnum):
    """Of following a kind."""

    STARTING = "not listed yet"
    WATCHING = "watching"
    BROKEN = "not connected"
    ABSENT = "not served"
    REFUSED = "refused"


class Follower(threading.Thread):
    """Follows one kind until it is stopped.

    Attributes:
        changed: notified whenever ``state`` or what is recorded changed.
        trouble: the last error.
        resumed, gaps: how often.
    """

    def __init__(
        self,
        api: Api,
        kind: Kind,
        history: HistoryFile,
        on_written: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(name=f"recorder-{kind.kind}", daemon=True)
        self.kind = kind
        self.changed = threading.Condition()
        self.state = State.STARTING
        self.trouble = ""
        self.resumed = 0
        self.gaps = 0
        self._api = api
        self._history = history
        self._on_written = on_written
        self._records = Records(kind)
        self._known: dict[str, Known] = {}
        self._version = 0  # 0: has to be listed
        self._sign_of_life = history.mono()
        self._alive = False  # whether the last attempt got a line, or lasted
        self._broken = ""  # why the connection broke
        self._gap_open = False
        self._stream: Stream | None = None
        self._accepted = 0.0  # when the stream counts as accepted, of the monotonic clock
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._eager_until = 0.0

    # from other threads --------------------------------------------------------------------

    def stop(self) -> None:
        """End; returns at once."""
        self._stopping.set()
        self._wake.set()
        if (stream := self._stream) is not None:
            stream.close()

    def wake(self) -> None:
        """Try now, if it is not served; and often for a while: CRDs are served a bit later."""
        if self.state is State.ABSENT:
            self._eager_until = time.monotonic() + ABSENT
            self._wake.set()

    def namespace_of(self, uid: str) -> str | None:
        """Namespace of a live object."""
        known = self._known.get(uid)
        return known.namespace if known else None

    def settle(self, end: float) -> str:
        """Wait until everything that happened before this call is recorded; why not, or ``""``.

        The kind is listed. The watch, which gives all changes in their order, has caught up when
        it has given the latest version in that list, and the end of whatever is not in it. One that
        broke has to be open again, and a gap over: what broke it belongs to the time before. (One
        thing could be missed: an object made *and* deleted in the milliseconds that its events
        take to arrive, when nothing else of its kind changes.) Bookmarks would prove it too, but
        a server sends one a minute.

        Args:
            end: of the monotonic clock.
        """
        if self.state is State.ABSENT:
            return ""
        try:
            what = self._api.resource(*self.kind)
            raw, version = pruning.items(
                self._api.list_raw(what, timeout=max(0.1, end - time.monotonic()))
            )
            metas = [pruning.bare.decode(item).metadata for item in raw]
        except (HarnessError, msgspec.DecodeError) as error:
            return f"{self.kind}: {str(error).partition('\n')[0]}"
        latest = max((int(meta.resourceVersion) for meta in metas), default=0)
        alive = {meta.uid for meta in metas}
        with self.changed:
            gone = {
                uid
                for uid, known in self._known.items()
                if uid not in alive and known.rv <= int(version)
            }
            while not self._caught_up(latest, gone):
                left = end - time.monotonic()
                if left <= 0:
                    return f"{self.kind}: {self.state}, at {self._version} of {latest}"
                self.changed.wait(min(left, ACCEPTED))  # nobody tells that this time is over
        return ""

    def _caught_up(self, latest: int, gone: set[str]) -> bool:
        watching = self._stream is not None and time.monotonic() >= self._accepted
        listed = self._version and not self._gap_open
        seen = self._version >= latest and gone.isdisjoint(self._known)
        return bool(watching and listed and seen)

    def unsure(self, why: str) -> None:
        """Write that what happened to the kind until now may be missing."""
        about = {"since": self._sign_of_life, "why": why}
        rv = self._version
        self._history.append(
            [self._records.gap(BEGIN, rv, about), self._records.gap(END, rv, about)]
        )

    # the thread ----------------------------------------------------------------------------

    def run(self) -> None:
        """Follow."""
        pause = 0.0
        while not self._stopping.is_set():
            self._alive = False
            self._wake.clear()
            try:
                what = self._api.resource(*self.kind)
                if fresh := not self._version:
                    self._list(what)
                self._watch(what, ACCEPTED if not fresh else 0.0)
            except HarnessError as error:
                self._cope(getattr(error, "status", 0), str(error).partition("\n")[0])
            except Exception as error:  # a fault of ours, or an answer that makes no sense
                self._lose(f"{type(error).__name__}: {error}")
                self._be(State.REFUSED, f"{type(error).__name__}: {error}")
            shortest, longest = RECONNECT
            pause = 0.0 if self._alive else min(max(2 * pause, shortest), longest)
            wait = pause
            if self.state in (State.ABSENT, State.REFUSED):
                wait = EAGER if time.monotonic() < self._eager_until else ABSENT
            if wait and not self._stopping.is_set():
                self._wake.wait(wait)

    def _cope(self, status: int, why: str) -> None:
        if status == 404:
            if self._version:
                self._lose(why)
            self._be(State.ABSENT, why)
        elif status == 410:
            if not self._filled(why):
                self._lose(why)
            self._be(State.BROKEN, why)
        elif status in (401, 403, 405):
            if not self._version:
                self._lose(why)
            self._broken = why
            self._be(State.REFUSED, why)
        else:
            self._broken = why
            self._be(self.state if self.state is State.STARTING else State.BROKEN, why)

    def _be(self, state: State, trouble: str = "") -> None:
        with self.changed:
            self.state = state
            self.trouble = trouble or self.trouble
            self.changed.notify_all()

    def _lose(self, why: str) -> None:
        """From here on nothing is known, until it is listed again."""
        if not self._gap_open:
            self._gap_open = True
            self.gaps += 1
            about = {"since": self._sign_of_life, "why": why}
            self._history.append([self._records.gap(BEGIN, self._version, about)])
        self._version = 0
        self._broken = ""

    def _filled(self, why: str) -> bool:
        """Whether all that the watch did not bring was found in the server's store."""
        if not self._version:
            return False
        try:
            what = self._api.resource(*self.kind)
        except HarnessError:
            return False
        found = filling.fill(
            self._api, what, self._records, self._known, self._version, self._stopping
        )
        if found is None:
            return False
        about = {"since": self._sign_of_life, "why": why}
        self._history.append([self._records.gap(RESUMED, self._version, about), *found.records])
        self.resumed += 1
        self._broken = ""
        self._sign_of_life = self._history.mono()
        with self.changed:
            self._known = found.known
            self._version = found.version
            self.changed.notify_all()
        return True

    def _list(self, what: Any) -> None:
        raw, latest = pruning.items(self._api.list_raw(what))
        version = int(latest)
        found, known = self._records.news(raw, self._known, version)
        if self.state is State.ABSENT and found and not self._gap_open:
            self._lose("there were objects when it was first served")
        if self._gap_open:
            gone = sum(record.type == DELETED for record in found)
            about = {"changed": len(found) - gone, "gone": gone}
            found.append(self._records.gap(END, version, about))
        self._history.append(found)
        self._gap_open = False
        self._broken = ""
        self._sign_of_life = self._history.mono()
        with self.changed:
            self._known = known
            self._version = version
            self.changed.notify_all()

    def _watch(self, what: Any, doubt: float) -> None:
        """*doubt*: seconds for which it is not sure that the server still has the version."""
        stream = self._api.watch_raw(what, since=str(self._version), timeout=WATCH_FOR)
        opened = time.monotonic()
        self._accepted = opened + doubt
        self._stream = stream
        try:
            if self._stopping.is_set():
                return
            self._be(State.WATCHING)
            before = time.monotonic()
            for lines in stream:
                waited = time.monotonic() - before > WAITED
                self._take(lines)
                if waited:
                    self._stopping.wait(REST)
                before = time.monotonic()
        finally:
            self._alive |= time.monotonic() - opened > LASTED
            self._stream = None
            stream.close()

    def _take(self, lines: Iterable[bytes]) -> None:
        records: list[Record] = []
        version = self._version
        try:
            for line in lines:
                found = self._records.read(line)
                if isinstance(found, Record):
                    version = found.rv
                    records.append(found)
                elif found is not None:
                    version = found
                self._alive = True
                self._accepted = 0.0
                if self._broken:
                    self.resumed += 1
                    about = {"since": self._sign_of_life, "why": self._broken}
                    records.insert(0, self._records.gap(RESUMED, self._version, about))
                    self._broken = ""
        finally:
            if records:
                self._history.append(records)
            self._sign_of_life = self._history.mono()
            with self.changed:
                note(self._known, records)
                self._version = version
                self.changed.notify_all()
        if self._on_written is not None:
            self._on_written()
