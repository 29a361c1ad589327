"""Whether the scale subresource of an elastic job selects exactly its workers."""

from __future__ import annotations

from oracles import relations
from oracles.history import Event
from oracles.invariants.records import Job, Pod
from oracles.invariants.rule import LAST, Rule
from oracles.invariants.world import GONE, LABELS, MADE

Pairs = frozenset[tuple[str, str]]
WORKER = "worker"


class _Scaled:
    __slots__ = ("lacks", "pairs", "seq", "text")

    def __init__(self) -> None:
        self.text = ""
        self.pairs: Pairs = frozenset()
        self.seq = 0
        self.lacks: tuple[float, int] | None = None  # workers without a selector since


class Selector(Rule):
    """T05.

    The scale subresource is made by the API server from fields of the job, so it is judged there:
    ``status.replicaStatuses.Worker.selector``. That its ``replicas`` (the active workers) are right
    is what the replica counts are judged for.
    """

    name = "scale-selector"
    promise = "The selector in the status of an elastic job matches its workers and no other pod."
    source = "kubeflow/community#522 (elastic PyTorchJob); Kubernetes API, Scale"
    behaviour = "T05"
    kinds = frozenset({"Pod", "PyTorchJob"})
    wants = MADE | LABELS

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._jobs: dict[str, _Scaled] = {}
        #: jobs by one pair of their selector, so that a new pod is compared with few of them
        self._index: dict[tuple[str, str, str], set[str]] = {}

    def feed(self, event: Event) -> None:
        """Compare pods with selectors."""
        if event.kind == "Pod":
            pod = self.world.pod
            if pod is not None:
                self._pod(pod, event)
            return
        job = self.world.job
        if job is None:
            return
        if self.world.changed & GONE:
            scaled = self._jobs.pop(job.uid, None)
            if scaled is not None:
                self._unindex(job, scaled)
                self._close(job, scaled, event.seq)
            return
        if job.elastic is None:
            return
        scaled = self._jobs.get(job.uid)
        if scaled is None:
            scaled = self._jobs[job.uid] = _Scaled()
        text = str(((job.counts or {}).get(WORKER) or {}).get("selector") or "")
        if text != scaled.text:
            self._changed(job, scaled, text, event)
        self._lacking(job, scaled, event.seq)

    def _pod(self, pod: Pod, event: Event) -> None:
        if pod.job:
            own = self._jobs.get(pod.job)
            if own is not None and pod.replica == WORKER:
                job = self.world.jobs[pod.job]
                self._lacking(job, own, event.seq)
                if own.text:
                    self._match(job, own, pod, event)
        if self._index:
            for key, value in pod.labels.items():
                for uid in self._index.get((pod.namespace, key, value), ()):
                    if uid != pod.job or pod.replica != WORKER:
                        self._match(self.world.jobs[uid], self._jobs[uid], pod, event)

    def _changed(self, job: Job, scaled: _Scaled, text: str, event: Event) -> None:
        self._unindex(job, scaled)
        scaled.text, scaled.seq = text, event.seq
        try:
            scaled.pairs = relations.selector(text) if text else frozenset()
        except ValueError:
            scaled.pairs = frozenset()
            self.broke(
                job.subject,
                f"the selector {text!r} cannot be read",
                "the selector cannot be read",
                event.seq,
                t=event.mono,
            )
        if not scaled.pairs:
            return
        self._index.setdefault(_key(job, scaled), set()).add(job.uid)
        workers = self.world.members.get(job.uid, {})
        for pod in {**workers, **self._others(job, scaled)}.values():
            self._match(job, scaled, pod, event)

    def _others(self, job: Job, scaled: _Scaled) -> dict[str, Pod]:
        """Pods that the selector may match."""
        name = dict(scaled.pairs).get(relations.JOB_NAME)
        if name is not None:
            return self.world.called.get((job.namespace, name), {})
        return {u: p for u, p in self.world.pods.items() if p.namespace == job.namespace}

    def _match(self, job: Job, scaled: _Scaled, pod: Pod, event: Event) -> None:
        if not scaled.pairs:
            return
        selected = scaled.pairs <= pod.labels.items()
        wanted = pod.job == job.uid and pod.replica == WORKER
        self.judged += 1
        if selected == wanted:
            return
        self.broke(
            job.subject,
            f"its selector {scaled.text!r} "
            + (f"selects the {pod.subject}, which is no worker of it" if selected else "")
            + (f"does not select its worker {pod.name}" if wanted else ""),
            "the selector matches a foreign pod" if selected else "the selector misses a worker",
            scaled.seq,
            pod.made,
            event.seq,
            t=event.mono,
        )

    def _lacking(self, job: Job, scaled: _Scaled, seq: int) -> None:
        workers = (
            not scaled.text
            and not job.finished
            and any(p.replica == WORKER for p in self.world.members.get(job.uid, {}).values())
        )
        if not workers:
            self._close(job, scaled, seq)
        elif scaled.lacks is None:
            scaled.lacks = (self.world.now, seq)

    def _close(self, job: Job, scaled: _Scaled, seq: int) -> None:
        lacks, scaled.lacks = scaled.lacks, None
        if lacks is None:
            return
        grace = self.graces["status_incomplete"]
        lasted = self.world.up("operator", lacks[0], self.world.now)
        if lasted > grace:
            self.broke(
                job.subject,
                f"it has workers, but no selector in its status for {lasted:.1f} s; "
                f"the grace is {grace:g} s",
                "workers without a selector",
                lacks[1],
                seq,
                t=lacks[0] + grace,
            )

    def _unindex(self, job: Job, scaled: _Scaled) -> None:
        if scaled.pairs:
            key = _key(job, scaled)
            jobs = self._index.get(key, set())
            jobs.discard(job.uid)
            if not jobs:
                self._index.pop(key, None)

    def end(self, now: float) -> None:
        """Workers that have no selector at the end."""
        self.world.now = now
        for uid, scaled in self._jobs.items():
            if uid in self.world.jobs:
                self._close(self.world.jobs[uid], scaled, LAST)


def _key(job: Job, scaled: _Scaled) -> tuple[str, str, str]:
    pairs = dict(scaled.pairs)
    key = relations.JOB_NAME if relations.JOB_NAME in pairs else min(pairs)
    return job.namespace, key, pairs[key]
