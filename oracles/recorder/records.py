"""What is written of the objects of one kind: as they were seen, that they are gone, or a gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from oracles import pruning
from oracles.errors import HarnessError
from oracles.history import ADDED, DELETED, GAP, MODIFIED, WATCH
from oracles.recorder.api import Kind
from oracles.recorder.writer import Record

_WRITTEN = frozenset({ADDED, MODIFIED, DELETED})


class Refusal(HarnessError):
    """What the server says instead of going on with a watch. ``status`` is HTTP's."""

    def __init__(self, status: pruning.Status) -> None:
        super().__init__(status.message)
        self.status = status.code or 500


class Known(NamedTuple):
    """A live object, as it was last seen."""

    rv: int
    namespace: str
    name: str

    @classmethod
    def by(cls, record: Record) -> Known:
        """The object that a record is of."""
        return cls(record.rv, record.namespace, record.name)


class Records:
    """Makes the records of one kind."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._pruner = pruning.Pruner(kind.api_version, kind.kind)

    def read(self, line: bytes) -> Record | int | None:
        """A line of a watch: a record, or the version that a bookmark tells; None: of no use.

        Raises:
            Refusal: the server does not go on.
            msgspec.DecodeError: not JSON.
        """
        seen = pruning.seen.decode(line)
        if seen.type in _WRITTEN:
            return self.seen(seen.type, seen.object)
        if seen.type == "BOOKMARK":
            return int(pruning.bare.decode(seen.object).metadata.resourceVersion)
        if seen.type == "ERROR":
            raise Refusal(pruning.status.decode(seen.object))
        return None

    def seen(self, type: str, data: msgspec.Raw) -> Record:
        """An object as the server sent it.

        Raises:
            msgspec.DecodeError: not JSON.
        """
        item = self._pruner.prune(data)
        meta = pruning.metadata(item)
        return Record(
            source=WATCH,
            type=type,
            kind=self._kind.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            rv=int(meta.resourceVersion),
            object=item,
        )

    def gone(self, uid: str, known: Known, rv: int) -> Record:
        """An object whose end was not seen, but it is not there any more at version *rv*."""
        meta = {"name": known.name, "namespace": known.namespace, "uid": uid}
        return Record(
            source=WATCH,
            type=DELETED,
            kind=self._kind.kind,
            namespace=known.namespace,
            name=known.name,
            uid=uid,
            rv=rv,
            object={"metadata": meta},
        )

    def gap(self, type: str, rv: int, about: Mapping[str, Any]) -> Record:
        """That something may be missing."""
        about = {"apiVersion": self._kind.api_version, **about}
        return Record(source=GAP, type=type, kind=self._kind.kind, rv=rv, object=about)

    def news(
        self,
        raw: Iterable[msgspec.Raw],
        known: Mapping[str, Known],
        version: int,
        *,
        each: bool = False,
    ) -> tuple[list[Record], dict[str, Known]]:
        """What a list of version *version* shows that was not *known*, by uid; and what it knows.

        Args:
            each: *known* is what there was one version before, so that nothing is left out: what
                changed is MODIFIED, not ADDED as after a gap.

        Raises:
            msgspec.DecodeError: not JSON.
        """
        found: list[Record] = []
        there: dict[str, Known] = {}
        by_name: dict[tuple[str, str], int] = {}
        for data in raw:
            record = self.seen(ADDED, data)
            there[record.uid] = Known.by(record)
            by_name[(record.namespace, record.name)] = record.rv
            before = known.get(record.uid)
            if each and before is not None:
                record.type = MODIFIED
            if before is None or before.rv != record.rv:
                found.append(record)
        for uid, old in known.items():
            if uid not in there:
                # it went before another one took its name
                rv = min(version, by_name.get((old.namespace, old.name), version))
                found.append(self.gone(uid, old, rv))
        found.sort(key=lambda record: (record.rv, record.type != DELETED))
        return found, there


def note(known: dict[str, Known], records: Iterable[Record]) -> None:
    """Keep of the objects in *known*, by uid, what *records* tell of them."""
    for record in records:
        if record.type == DELETED:
            known.pop(record.uid, None)
        elif record.source == WATCH:
            known[record.uid] = Known.by(record)
