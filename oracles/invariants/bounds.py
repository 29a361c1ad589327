"""Whether an elastic job keeps to its bounds."""

from __future__ import annotations

from oracles.history import Event
from oracles.invariants.records import Job, Pod
from oracles.invariants.rule import LAST, Rule
from oracles.invariants.world import DELETING, GONE, MADE, PHASE

WORKER = "worker"


class _Bounds:
    __slots__ = ("alive", "outside", "seq", "since", "text", "what")

    def __init__(self) -> None:
        self.alive: set[str] = set()  # workers that are not told to stop, by uid
        self.outside = False  # the spec's number
        self.since: float | None = None  # too many workers since
        self.seq = 0
        self.text = ""
        self.what = ""


class ReplicaBounds(Rule):
    """E13 for the number that is asked for, E04 for the pods that are there."""

    name = "replica-bounds"
    promise = (
        "The workers of an elastic job, asked for and alive, are never outside the policy's "
        "minimum and maximum, nor more than asked for."
    )
    source = "kubeflow/community#522 (elastic PyTorchJob): minReplicas, maxReplicas"
    behaviour = "E13"
    kinds = frozenset({"Pod", "PyTorchJob"})
    wants = MADE | GONE | PHASE | DELETING

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._jobs: dict[str, _Bounds] = {}

    def feed(self, event: Event) -> None:
        """Count workers."""
        if event.kind == "Pod":
            pod = self.world.pod
            bounds = self._jobs.get(pod.job) if pod is not None else None
            if pod is not None and bounds is not None:
                if _alive(pod) and not self.world.changed & GONE:
                    bounds.alive.add(pod.uid)
                else:
                    bounds.alive.discard(pod.uid)
                self._alive(self.world.jobs[pod.job], bounds, event.seq)
            return
        job = self.world.job
        if job is None:
            return
        if self.world.changed & GONE:
            bounds = self._jobs.pop(job.uid, None)
            if bounds is not None:
                self._close(job, bounds, event.seq)
            return
        if job.elastic is None:
            return
        bounds = self._jobs.get(job.uid)
        if bounds is None:
            bounds = self._jobs[job.uid] = _Bounds()
            members = self.world.members.get(job.uid, {})
            bounds.alive = {pod.uid for pod in members.values() if _alive(pod)}
        self._asked(job, bounds, event)
        self._alive(job, bounds, event.seq)

    def _asked(self, job: Job, bounds: _Bounds, event: Event) -> None:
        policy = job.elastic or {}
        low, high = policy.get("minReplicas"), policy.get("maxReplicas")
        asked = job.replicas.get(WORKER, 1)
        self.judged += 1
        outside = (low is not None and asked < low) or (high is not None and asked > high)
        if outside and not bounds.outside:
            self.broke(
                job.subject,
                f"its spec asks for {asked} workers; the policy allows {low} to {high}",
                "a number of workers outside the policy's bounds was accepted",
                event.seq,
                t=event.mono,
            )
        bounds.outside = outside

    def _alive(self, job: Job, bounds: _Bounds, seq: int) -> None:
        high = (job.elastic or {}).get("maxReplicas")
        asked = job.replicas.get(WORKER, 1)
        alive = len(bounds.alive)
        if job.finished or job.suspended or (alive <= asked and (high is None or alive <= high)):
            self._close(job, bounds, seq)
            return
        if bounds.since is None:
            bounds.since, bounds.seq = self.world.now, seq
        over = high is not None and alive > high
        bounds.what = "more workers than the maximum" if over else "more workers than asked for"
        bounds.text = f"it has {alive} workers; asked for {asked}, at most {high}"

    def _close(self, job: Job, bounds: _Bounds, seq: int) -> None:
        since, bounds.since = bounds.since, None
        if since is None:
            return
        grace = self.graces["replicas_outside"]
        lasted = self.world.up("operator", since, self.world.now)
        if lasted > grace:
            self.broke(
                job.subject,
                f"{bounds.text}, for {lasted:.1f} s; the grace is {grace:g} s",
                bounds.what,
                bounds.seq,
                seq,
                t=since + grace,
                behaviour="E04",
            )

    def end(self, now: float) -> None:
        """Jobs with too many workers at the end."""
        self.world.now = now
        for uid, bounds in self._jobs.items():
            if uid in self.world.jobs:
                self._close(self.world.jobs[uid], bounds, LAST)


def _alive(pod: Pod) -> bool:
    return pod.replica == WORKER and not pod.deleting and pod.category in ("", "active")
