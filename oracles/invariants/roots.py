"""Which job an object was made for, directly or through what stands between (JobSet, Job)."""

from __future__ import annotations

from oracles import relations
from oracles.history import DELETED, Event


class Roots:
    """Follows the owners of what stands between; remembers as many as live."""

    def __init__(self) -> None:
        self._between: dict[str, str] = {}

    def of(self, event: Event, owner: relations.Owner | None) -> str:
        """The uid of the job that the event's object was made for; "" for none."""
        if owner is None:
            return ""
        root = owner.uid
        if owner.kind not in relations.ALL_JOBS:
            root = self._between.get(owner.uid, "")
        if event.kind in relations.BETWEEN:
            if event.type == DELETED:
                self._between.pop(event.uid, None)
            elif root:
                self._between[event.uid] = root
        return root
