"""Whether training goes on after a fault.

A FAULT event *proven* that has ``recovers`` in its object says what must get over it::

    {"id": "kill-1", "recovers": {"kind": "PyTorchJob", "namespace": "t", "name": "train",
                                  "within_s": 90, "by": "progress"}}

``by`` is ``progress`` (a step, or the job's success), ``terminal`` (success or failure), or
``any``; without ``within_s`` the grace ``recovery`` counts. A fault that does not say what recovers
is not judged. The job is one of ``kubeflow.org/v1``. (Any FAULT event may also have ``pauses``, a
list of ``operator`` and ``scheduler``: while it is injected, clocks of what they promise stand
still.)
"""

from __future__ import annotations

from oracles import relations
from oracles.errors import UsageError
from oracles.history import FAULT, Event
from oracles.invariants.records import Job
from oracles.invariants.rule import LAST, Rule
from oracles.invariants.world import GONE


class _Progress:
    __slots__ = ("generations", "step")

    def __init__(self) -> None:
        self.generations: list[str] = []
        self.step = 0


class _Wait:
    __slots__ = ("by", "fault", "generations", "key", "seq", "since", "step", "subject", "within")

    def __init__(self, event: Event, wanted: dict[str, object], within: float) -> None:
        self.fault = f"{event.kind} {event.object.get('id', '')}".strip()
        self.subject = f"{wanted.get('kind')} {wanted.get('namespace')}/{wanted.get('name')}"
        self.by = str(wanted.get("by") or "progress")
        self.within = float(str(wanted.get("within_s") or within))
        self.seq = event.seq
        self.since = event.mono
        self.key = ""
        self.step = 0
        self.generations: list[str] = []


class Recovery(Rule):
    """E05; R05 where only an end was asked for.

    A step counts when it cannot have been under way when the fault struck: it is of a process
    group that was not there before, or two steps ahead of all that was done (a rank may finish and
    tell of the step that all had joined).
    """

    name = "recovery"
    promise = "After a fault, training goes on or the job ends within the bound."
    source = "catalogue E05, R04, R05; the fault's own bound"
    behaviour = "E05"
    kinds = frozenset({"source:fault", "source:progress"}) | frozenset(relations.JOB_KINDS)

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._progress: dict[str, _Progress] = {}
        self._waits: list[_Wait] = []

    def feed(self, event: Event) -> None:
        """Start waits, and end them."""
        if event.source == FAULT:
            wanted = event.object.get("recovers")
            if wanted and wanted.get("kind") not in relations.JOB_KINDS:
                raise UsageError(f"nobody judges whether a {wanted.get('kind')} recovers")
            if event.type == "proven" and wanted:
                self._start(event, wanted)
        elif event.source == "progress":
            self._line(event)
        else:
            job = self.world.job
            if job is not None:
                self._job(job, event)

    def _start(self, event: Event, wanted: dict[str, object]) -> None:
        wait = _Wait(event, wanted, self.graces["recovery"])
        for job in self.world.jobs.values():
            if job.subject == wait.subject:
                wait.key = job.uid
        known = self._progress.get(wait.key)
        if known is not None:
            wait.step, wait.generations = known.step, list(known.generations)
        self._waits.append(wait)

    def _line(self, event: Event) -> None:
        line = event.object
        step, generation = line.get("step"), line.get("generation")
        if line.get("event") != "step" or step is None:
            return
        key = self.world.line_job
        known = self._progress.setdefault(key, _Progress())
        known.step = max(known.step, step)
        if generation is not None and generation not in known.generations:
            known.generations = [*known.generations, generation][-8:]
        if not self._waits:
            return
        for wait in list(self._waits):
            if wait.key == key and wait.by in ("progress", "any"):
                new = generation is not None and generation not in wait.generations
                if new or step >= wait.step + 2:
                    self._over(wait, event.mono, event.seq)

    def _job(self, job: Job, event: Event) -> None:
        if self.world.changed & GONE:
            self._progress.pop(job.uid, None)
            self._waits = [w for w in self._waits if w.key != job.uid]  # nobody waits any more
            return
        if not self._waits or not job.finished:
            return
        for wait in list(self._waits):
            good = wait.by != "progress" or job.conditions.get("Succeeded")
            if wait.key == job.uid and good:
                self._over(wait, event.mono, event.seq)

    def _over(self, wait: _Wait, now: float, seq: int) -> None:
        self._waits.remove(wait)
        self.judged += 1
        took = now - wait.since
        if took <= wait.within:
            return
        what = "training or an end" if wait.by == "any" else wait.by
        self.broke(
            wait.subject,
            f"{took:.1f} s after the fault {wait.fault} there was "
            + (f"{what} again" if seq != LAST else f"still no {what}")
            + f"; the bound is {wait.within:g} s",
            "no recovery within the bound",
            wait.seq,
            seq,
            t=wait.since + wait.within,
            behaviour="R05" if wait.by == "terminal" else None,
        )

    def end(self, now: float) -> None:
        """Faults that are not survived yet. Where the bound is not over, there is no verdict."""
        for wait in list(self._waits):
            if now - wait.since > wait.within:
                self._over(wait, now, LAST)
