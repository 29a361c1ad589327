"""The steps of the tables of suites/gang and suites/sched (rows: :mod:`suites.rows`).

A step does something, or says what has to be so: within the suites' admission deadline
(``Bound``, ``OneRuns``, ...), or on every change that the watch shows for a stated time
(``Held``). Gangs are meant by name; ``winner`` and ``loser`` are those that ``OneRuns`` found.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest

from clusters import waiting
from clusters.kube import PODS, Object
from clusters.resources import is_bound
from suites import pods
from suites.stage import Stage

WINNER, LOSER = "winner", "loser"
#: seconds for which what must not happen is held where a behaviour does not say longer: a
#: scheduler that would bind does so within 4 s of the last pod (the slowest of 21 admissions that
#: were measured on 2 busy cores), and tries again after a back-off of at most that in this time
SHORT = 5.0


# what is done ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Make a gang's group object."""

    gang: str

    def __call__(self, stage: Stage) -> None:
        stage.group(self.gang)


@dataclass(frozen=True)
class Pods:
    """Make the next pods of a gang; None: all that are left."""

    gang: str
    count: int | None = None

    def __call__(self, stage: Stage) -> None:
        stage.pods(self.gang, self.count)


class Submit:
    """Make the groups and all pods of gangs, one gang after the other."""

    def __init__(self, *gangs: str) -> None:
        self._gangs = gangs

    def __repr__(self) -> str:
        return f"Submit{self._gangs}"

    def __call__(self, stage: Stage) -> None:
        for name in self._gangs:
            stage.group(name)
            stage.pods(name)


class Together(Submit):
    """The same at once: one pod of each gang in turn."""

    def __call__(self, stage: Stage) -> None:
        for name in self._gangs:
            stage.group(name)
        rounds = zip_longest(*((name,) * stage.gangs[name].size for name in self._gangs))
        for name in filter(None, chain.from_iterable(rounds)):
            stage.pods(name, 1)


@dataclass(frozen=True)
class Free:
    """Remove the last of the blockers at once; None: all."""

    count: int | None = None

    def __call__(self, stage: Stage) -> None:
        stage.free(self.count)


@dataclass(frozen=True)
class Minimum:
    """Change a group's minimum."""

    gang: str
    minimum: int

    def __call__(self, stage: Stage) -> None:
        stage.minimum(self.gang, self.minimum)


@dataclass(frozen=True)
class Remove:
    """Delete a gang, pods without grace."""

    gang: str

    def __call__(self, stage: Stage) -> None:
        stage.remove(self.gang)


@dataclass(frozen=True)
class Replace:
    """Delete pods of a gang without grace, and make others in their place."""

    gang: str
    indexes: tuple[int, ...]

    def __call__(self, stage: Stage) -> None:
        names = {f"{stage.named(self.gang)}-{index}" for index in self.indexes}
        stage.kept = {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in stage.kube.find(PODS, stage.ns)
            if is_bound(pod) and pod["metadata"]["name"] not in names
        }
        for name in names:
            stage.kube.delete(PODS, name, stage.ns, grace=0)
        # Kueue keeps a pod until it has counted it as failed, and takes one that comes before for
        # one too many
        stage.kube.wait(
            PODS, lambda found: None if names & set(pods.names(pods.active(found))) else True,
            namespace=stage.ns, deadline=stage.admission, why=f"{', '.join(sorted(names))} ended",
        )  # fmt: skip
        for index in self.indexes:
            stage.again(self.gang, index)


# what has to be so -----------------------------------------------------------------------------


class _Counts:
    def __init__(self, **counts: int) -> None:
        self._counts: Mapping[str, int] = counts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._counts})"


class Bound(_Counts):
    """Exactly so many pods of each named gang get bound."""

    def __call__(self, stage: Stage) -> None:
        start = time.monotonic()
        stage.wait_counts(self._counts)
        words = ", ".join(f"{name} {count}" for name, count in self._counts.items())
        stage.measure(f"{words} bound within", time.monotonic() - start, "s")


class Held(_Counts):
    """Exactly so many pods, and the same ones, stay bound of each named gang."""

    def __init__(self, seconds: float, **counts: int) -> None:
        super().__init__(**counts)
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"Held({self._seconds:g} s, {self._counts})"

    def __call__(self, stage: Stage) -> None:
        stage.hold(self._counts, self._seconds)


class WholeOrNone:
    """After so many seconds, each gang is bound with its minimum at least, or not at all."""

    def __init__(self, seconds: float, *gangs: str) -> None:
        self._seconds = seconds
        self._gangs = gangs

    def __repr__(self) -> str:
        return f"WholeOrNone({self._seconds:g} s, {', '.join(self._gangs)})"

    def __call__(self, stage: Stage) -> None:
        found = waiting.hold(stage.kube, PODS, stage.ns, lambda *_: None, seconds=self._seconds)
        counts = stage.counts(found.values())
        for name in self._gangs:
            gang = stage.gangs[name]
            minimum = gang.size if gang.minimum is None else gang.minimum
            assert counts[name] == 0 or counts[name] >= minimum, (
                f"gang {name}: {counts[name]} of its pods are left bound, its minimum is {minimum}"
            )


@dataclass(frozen=True)
class Made:
    """So many pods of a gang exist, bound or not: without it a ``Held`` might say nothing."""

    gang: str
    count: int

    def __call__(self, stage: Stage) -> None:
        pods.wait_created(stage.kube, stage.ns, self.count, labels=f"app={self.gang}")


@dataclass(frozen=True)
class Untouched:
    """Whatever was bound beside the pods of the last ``Replace`` is so still."""

    def __call__(self, stage: Stage) -> None:
        now = {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in stage.kube.find(PODS, stage.ns)
            if is_bound(pod)
        }
        lost = sorted(name for name, uid in stage.kept.items() if now.get(name) != uid)
        assert stage.kept, "nothing was bound beside the pod that was lost"
        assert not lost, f"one pod was lost, and others with it: {', '.join(lost)}"


@dataclass(frozen=True)
class OneRuns:
    """Exactly one of two gangs is bound as a whole, and the other one holds nothing."""

    gangs: tuple[str, str]

    def __call__(self, stage: Stage) -> None:
        def decided(found: list[Object]) -> bool:
            counts = stage.counts(found)
            for winner, loser in (self.gangs, self.gangs[::-1]):
                if counts[winner] == stage.gangs[winner].size and counts[loser] == 0:
                    stage.names = {WINNER: winner, LOSER: loser}
                    return True
            return False

        stage.wait(f"exactly one of {' and '.join(self.gangs)} is bound", decided)


@dataclass(frozen=True)
class Scheduled:
    """The group is reported as scheduled."""

    gang: str

    def __call__(self, stage: Stage) -> None:
        what = stage.scheduler.group_resource()
        assert what is not None

        def admitted(groups: list[Object]) -> bool | None:
            return True if groups and stage.scheduler.read_group(groups[0]).admitted else None

        with stage.expect(f"group {self.gang} is reported as scheduled"):
            stage.kube.wait(
                what, admitted, namespace=stage.ns, deadline=stage.admission,
                fields=f"metadata.name={self.gang}", why=f"group {self.gang} scheduled",
            )  # fmt: skip


@dataclass(frozen=True)
class Succeeded:
    """So many pods of a gang end with success; None: all."""

    gang: str
    count: int | None = None

    def __call__(self, stage: Stage) -> None:
        size = stage.gangs[self.gang].size
        wanted = size if self.count is None else self.count

        def done(found: list[Object]) -> bool:
            own = [p for p in found if p["metadata"]["labels"].get("app") == self.gang]
            return len([p for p in own if p["status"].get("phase") == "Succeeded"]) == wanted

        stage.wait(f"{wanted} of {size} pods of {self.gang} end with success", done)
