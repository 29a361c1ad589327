"""When a job started and ended, as its status says."""

from __future__ import annotations

from datetime import UTC, datetime

from oracles import relations
from oracles.history import Event
from oracles.invariants.records import Job
from oracles.invariants.rule import LAST, Rule
from oracles.invariants.world import GONE


class _Times:
    __slots__ = ("completion", "lacks", "paused", "seq", "since", "start")

    def __init__(self) -> None:
        self.start = ""
        self.completion = ""
        self.paused = False  # was suspended since it started
        self.seq = 0
        self.lacks = ""
        self.since = 0.0


class Times(Rule):
    """T04, of jobs of ``kubeflow.org/v1``: TrainJobs have no such times."""

    name = "start-and-completion"
    promise = (
        "startTime and completionTime are set once (startTime anew after a suspension), in order; "
        "a finished job has a completion time, and only a finished one."
    )
    source = "training-operator API, JobStatus; runPolicy.suspend"
    behaviour = "T04"
    kinds = frozenset(relations.JOB_KINDS)

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._jobs: dict[str, _Times] = {}

    def feed(self, event: Event) -> None:
        """Compare two versions of a job."""
        job = self.world.job
        if job is None:
            return
        if self.world.changed & GONE:
            before = self._jobs.pop(job.uid, None)
            if before is not None:
                self._settle(job, before, "", event)
            return
        known = self._jobs.get(job.uid)
        if known is None:
            known = self._jobs[job.uid] = _Times()
        start = job.status.get("startTime") or ""
        completion = job.status.get("completionTime") or ""
        known.paused = known.paused or job.suspended
        if start != known.start or completion != known.completion:
            self.judged += 1
            self._changed(job, known, start, completion, event)
            if start != known.start:
                known.paused = job.suspended
            known.start, known.completion, known.seq = start, completion, event.seq
        lacks = ""
        if job.finished and not completion:
            lacks = "it has ended, but has no completionTime"
        elif completion and not job.finished:
            lacks = "it has a completionTime, but has not ended"
        elif job.conditions.get("Running") and not start:
            lacks = "it is Running, but has no startTime"
        self._settle(job, known, lacks, event)

    def _changed(self, job: Job, known: _Times, start: str, completion: str, event: Event) -> None:
        for field, old, new in (
            ("startTime", known.start, start),
            ("completionTime", known.completion, completion),
        ):
            if old and old != new and not (field == "startTime" and known.paused):
                self.broke(
                    job.subject,
                    f"{field} was {old} and is {new or 'gone'}",
                    f"{field} changed" if new else f"{field} was taken back",
                    known.seq,
                    event.seq,
                    t=event.mono,
                )
        if start and completion and _time(completion) < _time(start):
            self.broke(
                job.subject,
                f"completionTime {completion} is before startTime {start}",
                "completionTime before startTime",
                event.seq,
                t=event.mono,
            )

    def _settle(self, job: Job, known: _Times, lacks: str, event: Event | None) -> None:
        """Open, keep or close what the status lacks."""
        if lacks == known.lacks:
            if not lacks or event is not None:
                return
        elif known.lacks:
            grace = self.graces["status_incomplete"]
            lasted = self.world.up("operator", known.since, self.world.now)
            if lasted > grace:
                self.broke(
                    job.subject,
                    f"{known.lacks}, for {lasted:.1f} s; the grace is {grace:g} s",
                    known.lacks,
                    known.seq,
                    event.seq if event is not None else LAST,
                    t=known.since + grace,
                )
        known.lacks = lacks
        if event is not None:
            known.since = event.mono
            if lacks:
                known.seq = event.seq

    def end(self, now: float) -> None:
        """What is lacking at the end."""
        self.world.now = now
        for uid, known in self._jobs.items():
            if known.lacks and uid in self.world.jobs:
                self._settle(self.world.jobs[uid], known, "", None)


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = datetime.min
    return found if found.tzinfo else found.replace(tzinfo=UTC)
