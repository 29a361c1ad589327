"""Whether the counts in a job's status are those of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracles import relations
from oracles.history import Event
from oracles.invariants.records import Job
from oracles.invariants.rule import LAST, Rule
from oracles.invariants.world import DELETING, GONE, MADE, PHASE

_NOTHING: Mapping[str, Any] = {}
_ZERO = {"active": 0, "leaving": 0, "succeeded": 0, "failed": 0}


class _Type:
    """Pods and counts of one replica type of one job."""

    __slots__ = ("name", "pods", "seen", "seq", "since", "told", "total")

    def __init__(self, name: str) -> None:
        self.name = name
        self.pods = dict(_ZERO)
        self.total = 0  # pods of the type that exist, in whatever phase
        self.seen = False  # its counts were in the status
        self.since: float | None = None  # they disagree since
        self.seq = 0
        #: the latest disagreement: counts, pods, whether the job had ended
        self.told: tuple[Mapping[str, Any], Mapping[str, int], bool] = (_NOTHING, _ZERO, False)


class Counts(Rule):
    """T03, of jobs of ``kubeflow.org/v1``: TrainJobs have no counts.

    ``active`` counts Running pods, as the API says. A running pod that is being deleted may be
    counted as active, as failed (training-operator does) or not at all. Of a suspended or finished
    job only ``active`` is compared: the rest is a record of pods that may be collected by then.
    """

    name = "replica-counts"
    promise = (
        "The counts in a job's status agree with its pods, but for a short while after a change, "
        "and never go blank."
    )
    source = "training-operator API, ReplicaStatus; kubeflow/trainer#349"
    behaviour = "T03"
    kinds = frozenset({"Pod"}) | frozenset(relations.JOB_KINDS)
    wants = MADE | GONE | PHASE | DELETING

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._jobs: dict[str, dict[str, _Type]] = {}

    def feed(self, event: Event) -> None:
        """Count pods, read counts."""
        if event.kind != "Pod":
            self._status(event)
            return
        pod = self.world.pod
        if pod is None or not pod.job:
            return
        types = self._jobs.get(pod.job)
        if types is None:
            types = self._jobs[pod.job] = {}
        one = types.get(pod.replica)
        if one is None:
            one = types[pod.replica] = _Type(pod.replica)
        changed = self.world.changed
        if changed & MADE:
            one.total += 1
        elif changed & GONE:
            one.total -= 1
        before, after = self.world.category, pod.category
        if before != after:
            if before:
                one.pods[before] -= 1
            if after:
                one.pods[after] += 1
        job = self.world.jobs.get(pod.job)
        if job is not None:
            if before != after:
                self._compare(job, pod.replica, one, event.seq)
        elif not any(one.total for one in types.values()):
            del self._jobs[pod.job]

    def _status(self, event: Event) -> None:
        job = self.world.job
        if job is None:
            return
        types = self._jobs.get(job.uid)
        if self.world.changed & GONE:
            if types is not None:
                for one in types.values():
                    self._close(job, one, event.seq)
                if not any(one.total for one in types.values()):
                    del self._jobs[job.uid]
            return
        if types is None:
            types = self._jobs[job.uid] = {}
        counts = job.counts or _NOTHING
        for name in counts:
            if name not in types:
                types[name] = _Type(name)
        for name, one in types.items():
            if name in counts:
                one.seen = True
            elif one.seen:
                one.seen = False
                if one.total:
                    self.broke(
                        job.subject,
                        f"the status has no counts of its {name} replicas any more, "
                        f"while {one.total} of their pods exist",
                        "replica counts went blank",
                        one.seq,
                        event.seq,
                        t=event.mono,
                    )
            self._compare(job, name, one, event.seq)

    def _compare(self, job: Job, name: str, one: _Type, seq: int) -> None:
        self.judged += 1
        status = (job.counts or _NOTHING).get(name) or _NOTHING
        pods = one.pods
        active, leaving = status.get("active") or 0, pods["leaving"]
        if job.finished or job.suspended:
            agrees = active <= pods["active"] + leaving
        else:
            failed = status.get("failed") or 0
            agrees = (
                pods["active"] <= active <= pods["active"] + leaving
                and pods["failed"] <= failed <= pods["failed"] + leaving
                and (status.get("succeeded") or 0) == pods["succeeded"]
            )
        if agrees:
            self._close(job, one, seq)
            return
        if one.since is None:
            one.since, one.seq = self.world.now, seq
        one.told = (status, dict(pods), job.finished)

    def _close(self, job: Job, one: _Type, seq: int) -> None:
        since, one.since = one.since, None
        if since is None:
            return
        grace = self.graces["counts_disagree"]
        lasted = self.world.up("operator", since, self.world.now)
        if lasted > grace:
            self.broke(
                job.subject,
                f"{_text(one)}, for {lasted:.1f} s; the grace is {grace:g} s",
                "a finished job goes on counting active pods"
                if one.told[2]
                else "replica counts disagree with the pods",
                one.seq,
                seq,
                t=since + grace,
            )

    def end(self, now: float) -> None:
        """What disagrees at the end."""
        self.world.now = now
        for uid, types in self._jobs.items():
            job = self.world.jobs.get(uid)
            for one in types.values() if job is not None else ():
                self._close(job, one, LAST)  # type: ignore[arg-type]


def _text(one: _Type) -> str:
    status, pods, ended = one.told
    told = " ".join(f"{k}={status.get(k) or 0}" for k in ("active", "succeeded", "failed"))
    there = " ".join(f"{k}={v}" for k, v in pods.items())
    return f"{'it has ended; ' if ended else ''}{one.name} replicas: status {told}, pods {there}"
