"""The order of a job's conditions.

A TrainJob is Suspended, Complete or Failed; while its pods wait or run it has no condition that is
true, so what is said of Created and Running is about jobs of ``kubeflow.org/v1``.
"""

from __future__ import annotations

from oracles import relations
from oracles.history import DELETED, Event
from oracles.invariants.rule import Rule
from oracles.invariants.world import GONE

#: never true together
EXCLUSIVE = (
    ("Running", "Restarting"),
    ("Running", "Suspended"),
    ("Running", "Succeeded"),
    ("Running", "Failed"),
    ("Succeeded", "Failed"),
)
FINAL = ("Succeeded", "Failed")
#: the same of TrainJobs
TRAIN_JOB_FINAL = relations.TRAIN_JOB_ENDS
#: what may not become true any more when the job has ended
BUSY = ("Running", "Restarting", "Suspended", "Succeeded", "Failed")


class Conditions(Rule):
    """T01 and T02."""

    name = "condition-transitions"
    promise = (
        "A job is Created first; Running and Restarting, Running and Suspended, Succeeded (of a "
        "TrainJob: Complete) and Failed are never true together; what has ended stays as it ended."
    )
    source = (
        "training-operator API, JobCondition; kubeflow.org: TFJob, job status; "
        "Kubeflow Trainer API, TrainJobStatus"
    )
    behaviour = "T01"
    kinds = relations.ALL_JOBS
    within_one = True

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._before: dict[str, tuple[dict[str, bool], int]] = {}
        self._ends: dict[str, tuple[frozenset[str], int]] = {}

    def feed(self, event: Event) -> None:
        """Compare two versions of a job."""
        if event.kind == relations.TRAIN_JOB:
            self._train_job(event)
            return
        job = self.world.job
        if job is None:
            return
        if self.world.changed & GONE:
            self._before.pop(job.uid, None)
            return
        now = job.conditions
        before, seq = self._before.get(job.uid, ({}, 0))
        self._before[job.uid] = (now, event.seq)
        if now == before:
            return
        self.judged += 1
        new = [c for c, true in now.items() if true and not before.get(c)]
        ended = next((f for f in FINAL if before.get(f)), "")

        def broke(message: str, signature: str, behaviour: str) -> None:
            self.broke(
                job.subject, message, signature, seq, event.seq, t=event.mono, behaviour=behaviour
            )

        for one, other in EXCLUSIVE:
            if now.get(one) and now.get(other) and (one in new or other in new):
                text = f"{one} and {other} are both true"
                broke(text, text, "T02" if other in FINAL else "T01")
        if ended and not now.get(ended):
            broke(f"it was {ended}, and is not any more", f"{ended} was taken back", "T02")
        if before.get("Created") and not now.get("Created"):
            broke("it was Created, and is not any more", "Created was taken back", "T01")
        for what in new:
            if ended and what in BUSY:
                broke(f"it became {what} after it had {ended}", f"{what} after {ended}", "T02")
            elif what in BUSY and not now.get("Created"):
                broke(f"it is {what} but was never Created", f"{what} without Created", "T01")
        if "Restarting" in new and not ended:
            for final in FINAL:
                if final in new:
                    text = f"it became Restarting and {final} at once"
                    broke(text, f"Restarting and {final} at once", "T02")

    def _train_job(self, event: Event) -> None:
        if event.type == DELETED:
            self._ends.pop(event.uid, None)
            return
        now = relations.true_conditions(event.object)
        before, seq = self._ends.get(event.uid, (frozenset[str](), 0))
        self._ends[event.uid] = (now, event.seq)
        if now == before:
            return
        self.judged += 1
        ended = next((final for final in TRAIN_JOB_FINAL if final in before), "")

        def broke(message: str, signature: str, behaviour: str) -> None:
            self.broke(
                f"{event.kind} {event.namespace}/{event.name}",
                message, signature, seq, event.seq, t=event.mono, behaviour=behaviour,
            )  # fmt: skip

        if now.issuperset(TRAIN_JOB_FINAL):
            text = f"{' and '.join(TRAIN_JOB_FINAL)} are both true"
            broke(text, text, "T02")
        if ended and ended not in now:
            broke(f"it was {ended}, and is not any more", f"{ended} was taken back", "T02")
        if ended and "Suspended" in now - before:
            broke(f"it became Suspended after it had {ended}", f"Suspended after {ended}", "T02")
