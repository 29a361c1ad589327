"""Whether restarts are counted, and stop at their limit."""

from __future__ import annotations

from oracles import relations
from oracles.history import Event
from oracles.invariants.records import Job
from oracles.invariants.rule import LAST, Rule
from oracles.invariants.world import GONE, PHASE, RESTARTS

#: failures that a violation cites
CITE = 16


class _Restarts:
    __slots__ = ("agents", "ended", "failures", "over", "pods", "seqs")

    def __init__(self) -> None:
        self.failures = 0
        self.seqs: list[int] = []
        self.pods: dict[str, int] = {}  # pod -> restarts of its containers that are counted
        self.agents: dict[tuple[str, int, int], tuple[int, int]] = {}  # agent -> its count, event
        self.over: float | None = None  # more failures than the limit since
        self.ended = False


class Restarts(Rule):
    """R02 for the backoffLimit of ``kubeflow.org/v1``, E08 for torchrun's count of restarts.

    A failure is a container that was restarted, or a pod that failed without being told to stop.
    """

    name = "restarts"
    promise = (
        "Each failure counts once; a job fails when there are more than its backoffLimit, not "
        "earlier; an agent restarts its workers at most maxRestarts times, and its count never "
        "goes back."
    )
    source = "training-operator API, runPolicy.backoffLimit; pytorch.org: torchrun, --max-restarts"
    behaviour = "R02"
    kinds = frozenset({"Pod", "source:progress"}) | frozenset(relations.JOB_KINDS)
    wants = GONE | PHASE | RESTARTS

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._jobs: dict[str, _Restarts] = {}

    def feed(self, event: Event) -> None:
        """Count failures, and read counts."""
        if event.source == "progress":
            self._line(event)
        elif event.kind == "Pod":
            self._pod(event)
        else:
            self._job(event)

    def _pod(self, event: Event) -> None:
        pod, changed = self.world.pod, self.world.changed
        if pod is None or not pod.job:
            return
        if changed & GONE:
            known = self._jobs.get(pod.job)
            if known is not None:
                known.pods.pop(pod.uid, None)
            return
        if not (changed & RESTARTS or (changed & PHASE and pod.phase == "Failed")):
            return
        if pod.deleting and pod.job not in self._jobs:
            return  # its job is gone
        known = self._jobs.setdefault(pod.job, _Restarts())
        more = 0
        if changed & RESTARTS:
            more = max(0, pod.restarts - known.pods.get(pod.uid, 0))
            known.pods[pod.uid] = pod.restarts
        if changed & PHASE and pod.phase == "Failed" and not pod.deleting:
            more += 1
        if not more:
            return
        known.failures += more
        known.seqs = [*known.seqs, event.seq][-CITE:]
        job = self.world.jobs.get(pod.job)
        if job is not None:
            self._limit(job, known, event.seq)

    def _job(self, event: Event) -> None:
        job = self.world.job
        if job is None:
            return
        if self.world.changed & GONE:
            gone = self._jobs.pop(job.uid, None)
            if gone is not None:
                self._close(job, gone, event.seq)
            return
        known = self._jobs.setdefault(job.uid, _Restarts())
        self._limit(job, known, event.seq)
        if not known.ended and job.conditions.get("Failed"):
            limit = _limit(job)
            reason = _failure(job)
            # the limit itself may be the last straw (training-operator) or the one more (batch)
            if limit is not None and "backoff limit" in reason and known.failures < max(limit, 1):
                self.broke(
                    job.subject,
                    f"it failed because of its backoff limit of {limit} after "
                    f"{known.failures} failures",
                    "failed before the backoff limit was reached",
                    *known.seqs,
                    event.seq,
                    t=event.mono,
                )
        known.ended = job.finished

    def _limit(self, job: Job, known: _Restarts, seq: int) -> None:
        limit = _limit(job)
        if limit is None:
            return
        self.judged += 1
        if known.failures > limit and not job.finished:
            if known.over is None:
                known.over = self.world.now
        else:
            self._close(job, known, seq)

    def _close(self, job: Job, known: _Restarts, seq: int) -> None:
        over, known.over = known.over, None
        if over is None:
            return
        grace = self.graces["restarts_over_limit"]
        lasted = self.world.up("operator", over, self.world.now)
        if lasted > grace:
            self.broke(
                job.subject,
                f"it had {known.failures} failures with a backoff limit of {_limit(job)} and was "
                f"not failed for {lasted:.1f} s; the grace is {grace:g} s",
                "restarted above the backoff limit",
                *known.seqs,
                seq,
                t=over + grace,
            )

    def _line(self, event: Event) -> None:
        line = event.object
        restart, agent = line.get("restart"), line.get("agent_pid")
        if restart is None or agent is None:
            return
        key = self.world.line_job
        known = self._jobs.setdefault(key, _Restarts())
        who = (event.uid or line.get("pod_uid", ""), agent, line.get("agent_start", 0))
        before = known.agents.get(who)
        if before is not None and before[0] == restart:
            return
        known.agents[who] = (restart, event.seq)
        self.judged += 1
        job = self.world.jobs.get(key)
        subject = job.subject if job is not None else f"Job {key}"
        # a new agent in the same pod has the same pid again, and counts from 0; where the line does
        # not say when its agent started, that cannot be told from a count that went back
        least = 0 if who[2] else 1
        if before is not None and least <= restart < before[0]:
            self.broke(
                subject,
                f"the agent of pod {event.name} counted {before[0]} restarts, then {restart}",
                "an agent's count of restarts went back",
                before[1],
                event.seq,
                t=event.mono,
                behaviour="E08",
            )
        limit = (job.elastic or {}).get("maxRestarts") if job is not None else None
        if limit is not None and restart > limit:
            self.broke(
                subject,
                f"the agent of pod {event.name} is at restart {restart}; maxRestarts is {limit}",
                "restarted above maxRestarts",
                event.seq,
                t=event.mono,
                behaviour="E08",
            )

    def end(self, now: float) -> None:
        """Jobs that are over their limit at the end."""
        self.world.now = now
        for uid, known in self._jobs.items():
            if uid in self.world.jobs:
                self._close(self.world.jobs[uid], known, LAST)


def _limit(job: Job) -> int | None:
    limit = (job.spec.get("runPolicy") or {}).get("backoffLimit")
    return None if limit is None else int(limit)


def _failure(job: Job) -> str:
    for condition in job.status.get("conditions") or ():
        if condition.get("type") == "Failed":
            return f"{condition.get('reason')} {condition.get('message')}"
    return ""
