"""Reading histories: strictly, in a stream, and past whatever is wrong with them.

A history may end in the middle of a line (the recorder was killed), be damaged, or come from
somebody else. What can be read is read; what cannot is a :class:`Damage` with its line number, and
a gap among the events, so that who judges says INCONCLUSIVE where it matters. Only a file of which
nothing can be said is an error: none, an empty one, one of an unknown version.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec
from msgspec import Raw

from oracles import ordering
from oracles.errors import HarnessError, UsageError
from oracles.history import BEGIN, END, GAP, SCHEMA, WATCH, Event, Header

#: bytes of the longest line that is read. An object in etcd has at most 1.5 MB; this bounds the
#: memory that a file without line breaks can take
LONGEST = 16 << 20
#: damages that are kept one by one
KEPT = 100


class HistoryError(HarnessError):
    """A file of which nothing can be said."""


class Damage(NamedTuple):
    """Something wrong with a history. *line* counts from 1; the header is line 1."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


class Rough(msgspec.Struct, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """An :class:`Event` whose object is not decoded yet: a third of the work, and of the memory."""

    seq: int
    t: float
    mono: float
    source: Literal["watch", "fault", "progress", "mark", "gap"]
    type: str
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    rv: int = 0
    object: Raw = Raw()
    line: int = 0  # number of its line; not in the file


class _Version(msgspec.Struct):
    schema: str = ""


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    """``facts.slice`` of a header, see :mod:`oracles.slicing`."""

    test: str
    namespaces: list[str]
    start: int
    end: int | None
    started: float
    state_until: int


_object: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class History:
    """One file, read once from its beginning to its end.

    Attributes:
        header: its first line; what is known of it, where that is damaged.
        damage: what is wrong with it, as far as it was read; the first KEPT of ``damaged``.
        last: the last event's ``mono``, once it was read.
    """

    def __init__(self, path: Path) -> None:
        """Open it and read its header.

        Raises:
            UsageError: no such file.
            HistoryError: empty, or of another version.
        """
        self.path = path
        self.damage: list[Damage] = []
        self.damaged = 0
        self.last = 0.0
        try:
            self._file = path.open("rb", buffering=1 << 18)
            first = self._file.readline(LONGEST)
        except OSError as error:
            raise UsageError(f"{path}: no readable history: {error.strerror}") from error
        self._first: bytes | None = None
        self.header = self._read_header(first)

    def _read_header(self, first: bytes) -> Header:
        if not first.strip():
            raise HistoryError(
                f"{self.path}:1: {'an empty line' if first else 'an empty file'}, but the first"
                f" line of a history says what it is: {SCHEMA}"
            )
        try:
            version = msgspec.json.decode(first, type=_Version)
            if version.schema not in ("", SCHEMA):
                raise HistoryError(
                    f"{self.path}:1: a history of version {version.schema!r}; {SCHEMA} is what"
                    " this version of the harness reads"
                )
            if version.schema:
                return self._with_part(msgspec.json.decode(first, type=Header))
            self._first = first  # maybe an event
            self._damage(1, "no header: run, cluster and facts are not known")
        except msgspec.MsgspecError as error:
            self._damage(1, f"no header: {error}")
        return Header(run="", cluster="", started=0.0)

    def _with_part(self, header: Header) -> Header:
        """The header; without what it says of its slice, where that is damaged."""
        if "slice" in header.facts:
            try:
                msgspec.convert(header.facts["slice"], _Part)
            except msgspec.ValidationError as error:
                self._damage(1, f"facts.slice: {error}: read as a whole history")
                facts = {key: value for key, value in header.facts.items() if key != "slice"}
                return msgspec.structs.replace(header, facts=facts)
        return header

    @property
    def part(self) -> dict[str, Any]:
        """What a slice says of itself; empty for a whole history."""
        part: dict[str, Any] = self.header.facts.get("slice") or {}
        return part

    def events(self, kinds: Set[str] | None = None) -> Iterator[Event]:
        """All events, in the order in which things happened (see :mod:`oracles.ordering`).

        Args:
            kinds: only these: ``Pod``, ``source:progress``; gaps always. Decoding is most of the
                work, so it is worth to leave out what nobody looks at.
        """
        state_until = int(self.part.get("state_until", 0))
        late: set[int] = set()

        def note(event: Rough) -> None:
            late.add(event.line)
            self._damage(
                event.line,
                f"event {event.seq} ({event.kind} {event.namespace}/{event.name}) came more than"
                f" {ordering.WINDOW:.0f} s after a later one: the order around it is not certain",
            )

        for rough in ordering.ordered(self.rough(), state_until=state_until, late=note):
            if kinds is not None and not wanted(rough, kinds):
                continue
            event = self.decode(rough)
            if event is not None and not (late and rough.line in late):
                yield event
                continue
            yield Event(rough.seq, rough.t, rough.mono, GAP, BEGIN, rough.kind)
            if event is not None:
                yield event
            yield Event(rough.seq, rough.t, rough.mono, GAP, END, rough.kind)

    def arrived(self) -> Iterator[Event]:
        """All events that could be read, in the order of the file."""
        for rough in self.rough():
            if (event := self.decode(rough)) is not None:
                yield event

    def decode(self, rough: Rough) -> Event | None:
        """The event; None where its object is damaged."""
        r = rough
        try:
            data = _object.decode(r.object) if r.object else {}
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._damage(r.line, f"event {r.seq}: its object is none: {error}")
            return None
        return Event(
            r.seq, r.t, r.mono, r.source, r.type, r.kind, r.namespace, r.name, r.uid, r.rv, data
        )

    def rough(self) -> Iterator[Rough]:
        """All events in the order of the file, their objects not decoded.

        Where lines could not be read, or are missing, there is a gap for all kinds, from the event
        before to the event after; it has no end where the file ends there.
        """
        decode = msgspec.json.Decoder(Rough).decode
        whole = not self.part
        last = self._first_again(decode)
        if last is not None:
            yield last
        before = last or Rough(0, self.header.started, 0.0, GAP, BEGIN)
        expected = before.seq + 1
        number = 1
        newest = 0.0
        with self._file as file:
            for line in iter(partial(file.readline, LONGEST), b""):
                number += 1
                try:
                    event = decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    if self._bad(file, number, line, error):
                        expected = -1
                    continue
                seq = event.seq
                if seq != expected:
                    if expected == -1:  # what is missing was said already
                        yield from _hole(before, event)
                    elif whole or seq < expected - 1:  # a slice repeats numbers around gaps
                        self._out_of_turn(number, seq, expected)
                        yield from _hole(before, event)
                expected = seq + 1
                mono = event.mono
                if mono > newest:
                    newest = mono
                    self.last = mono
                event.line = number
                before = event
                yield event
        if expected == -1:
            yield _gap(BEGIN, before, before.seq)

    # helpers -------------------------------------------------------------------------------

    def _first_again(self, decode: Any) -> Rough | None:
        """A first line that is no header but an event is not lost."""
        if self._first is None:
            return None
        try:
            event: Rough = decode(self._first)
        except msgspec.MsgspecError:
            return None
        event.line = 1
        return event

    def _bad(self, file: BinaryIO, number: int, line: bytes, error: Exception) -> bool:
        """Say what is wrong with a line; False when nothing is lost with it."""
        if not line.strip():
            return False
        if line.endswith(b"\n"):
            self._damage(number, f"no event: {error}")
            return True
        size = len(line)
        while more := file.readline(LONGEST):
            size += len(more)
            if more.endswith(b"\n"):
                self._damage(number, f"a line of {size} bytes; {LONGEST} are read at most")
                return True
        self._damage(number, f"the file ends in the middle of a line, after {size} bytes of it")
        return True

    def _out_of_turn(self, number: int, seq: int, expected: int) -> None:
        if seq < expected:
            self._damage(number, f"event {seq} where {expected} was to come: not in order")
        elif seq == expected + 1:
            self._damage(number, f"event {expected} is missing")
        else:
            self._damage(number, f"events {expected} to {seq - 1} are missing")

    def _damage(self, line: int, what: str) -> None:
        self.damaged += 1
        if len(self.damage) < KEPT:
            self.damage.append(Damage(line, what))


def wanted(event: Rough | Event, kinds: Set[str]) -> bool:
    """Whether an event is of one of *kinds*: ``Pod``, ``source:progress``; gaps always are."""
    source = event.source
    if source == WATCH:
        return event.kind in kinds
    return source == GAP or f"source:{source}" in kinds


def _hole(before: Rough, after: Rough) -> Iterator[Rough]:
    first, last = sorted((before.seq, after.seq))
    yield _gap(BEGIN, before, first)
    yield _gap(END, after, last)


def _gap(type: str, at: Rough, seq: int) -> Rough:
    return Rough(seq, at.t, at.mono, GAP, type)
