"""One light watch of pods that have a node, and one of the groups; nothing is polled.

Pods that only wait are not sent (field selector), so that the thousands of times that a scheduler
says of a pod that it does not fit cost this process nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

from clusters.errors import Unreachable
from clusters.kube import PODS, Kube, Object, Resource, epoch
from oracles.history import ADDED, DELETED, MODIFIED, WATCH, Event
from tests.bench.scale.load import SIZE
from tests.bench.scale.measures import Change

BOUND = "spec.nodeName!="
TERMINAL = ("Succeeded", "Failed")


class Watch:
    """Everything that was seen of one namespace since it began.

    Args:
        group: kind of the groups; None where there are none.
        gangs: their names, which their pods carry as the label ``app``; other pods are not counted.

    Attributes:
        lag: seconds by which the news of a binding was late at the most. What the API server
            notes has whole seconds only, so up to one of them may be no lag at all.
    """

    def __init__(
        self, kube: Kube, namespace: str, group: Resource | None, gangs: Iterable[str]
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._events: list[Event] = []
        self._changes: list[Change] = []
        self._holding: set[str] = set()
        self._counts = dict.fromkeys(gangs, 0)
        self._whole = 0
        self._news = threading.Condition()
        self._origin = time.monotonic()
        self._start = self._origin
        self._trouble = ""
        self.lag = 0.0
        kinds = [(PODS, BOUND)] if group is None else [(PODS, BOUND), (group, "")]
        for what, fields in kinds:
            items, version = kube.list_with_version(what, namespace, fields=fields)
            with self._news:
                for item in items:
                    self._take(what, ADDED, item)
            threading.Thread(
                target=self._follow, args=(what, fields, version), daemon=True,
                name=f"scale {what.plural}",
            ).start()  # fmt: skip

    def know(self, item: Object, kind: str = "Pod") -> None:
        """Take an object as it was made: what came before the first thing that the watch tells."""
        with self._news:
            self._note(kind, ADDED, item)

    def arrived(self) -> None:
        """All times count from now."""
        self._start = time.monotonic()

    @property
    def start(self) -> float:
        """``mono`` of the arrival."""
        return self._start - self._origin

    def wait(self, whole: int, *, end: float, quiet: float) -> str:
        """Wait until so many gangs are *whole*.

        Args:
            end: monotonic time at which to give up.
            quiet: seconds without any change after which to give up.

        Returns:
            Why it gave up; "" if it did not.

        Raises:
            Unreachable: the watch broke.
        """
        begun = time.monotonic()
        with self._news:
            while True:
                if self._trouble:
                    raise Unreachable(self._trouble)
                if self._whole >= whole:
                    return ""
                now = time.monotonic()
                last = max(begun, self._start + (self._changes[-1].after if self._changes else 0))
                if now >= end:
                    return "time over"
                if now >= last + quiet:
                    return f"nothing changed for {quiet:.0f} s"
                self._news.wait(min(end, last + quiet) - now)

    def changes(self) -> list[Change]:
        """Of pods, since the arrival."""
        with self._news:
            return list(self._changes)

    def events(self) -> list[Event]:
        """As a recorder would have them, of what the judges need here."""
        with self._news:
            return list(self._events)

    @property
    def now(self) -> float:
        """Seconds since it began: ``mono`` of an event of this moment."""
        return time.monotonic() - self._origin

    # -----------------------------------------------------------------------------------------

    def _follow(self, what: Resource, fields: str, version: str) -> None:
        while True:
            try:
                for event in self._kube.watch(what, self._namespace, since=version, fields=fields):
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        with self._news:
                            self._take(what, event["type"], event["object"])
                            self._news.notify_all()
            except Exception as error:  # whatever it is: the figures would mean nothing
                with self._news:
                    self._trouble = f"watch of {what.plural}: {error}"
                    self._news.notify_all()
                return

    def _take(self, what: Resource, type_: str, item: Object) -> None:
        self._note(what.kind, type_, item)
        gang = item["metadata"].get("labels", {}).get("app", "")
        if what.kind != PODS.kind or gang not in self._counts:
            return
        uid = item["metadata"]["uid"]
        holds = type_ != DELETED and item["status"].get("phase") not in TERMINAL
        if holds and uid not in self._holding:
            self._holding.add(uid)
            self._count(gang, 1)
            self.lag = max(self.lag, _age(item))
        elif not holds and uid in self._holding:
            self._holding.remove(uid)
            self._count(gang, -1)

    def _count(self, gang: str, by: int) -> None:
        before = self._counts[gang]
        self._counts[gang] = before + by
        self._whole += (before + by >= SIZE) - (before >= SIZE)
        self._changes.append(Change(time.monotonic() - self._start, gang, by))

    def _note(self, kind: str, type_: str, item: Object) -> None:
        meta = item["metadata"]
        if kind == PODS.kind and type_ == ADDED and meta["uid"] in self._holding:
            type_ = MODIFIED
        self._events.append(
            Event(
                seq=len(self._events) + 1, t=time.time(), mono=self.now, source=WATCH, type=type_,
                kind=kind, namespace=meta.get("namespace", ""), name=meta["name"], uid=meta["uid"],
                rv=int(meta["resourceVersion"]), object=_pruned(kind, item),
            )
        )  # fmt: skip


def _pruned(kind: str, item: Object) -> Object:
    """What judges of gangs and GPUs look at."""
    meta = {
        key: item["metadata"].get(key) for key in ("labels", "annotations", "deletionTimestamp")
    }
    kept: dict[str, Any] = {"metadata": {key: value for key, value in meta.items() if value}}
    if kind != PODS.kind:
        return {**kept, "spec": item.get("spec", {}), "status": item.get("status", {})}
    spec = item["spec"]
    kept["spec"] = {
        k: spec[k] for k in ("nodeName", "schedulerName", "schedulingGroup") if k in spec
    }
    kept["spec"]["containers"] = [{"resources": c.get("resources")} for c in spec["containers"]]
    kept["status"] = {"phase": item["status"].get("phase", "")}
    return kept


def _age(pod: Object) -> float:
    """Seconds since the API server bound it, as it says itself; 0 where it does not."""
    for condition in pod["status"].get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            return max(0.0, time.time() - epoch(condition["lastTransitionTime"]))
    return 0.0
