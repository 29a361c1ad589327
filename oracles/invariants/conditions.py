"""The order of a job's conditions."""

from __future__ import annotations

from oracles import relations
from oracles.history import Event
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
#: what may not become true any more when the job has ended
BUSY = ("Running", "Restarting", "Suspended", "Succeeded", "Failed")


class Conditions(Rule):
    """T01 and T02."""

    name = "condition-transitions"
    promise = (
        "A job is Created first; Running and Restarting, Running and Suspended, Succeeded and "
        "Failed are never true together; what has ended stays as it ended."
    )
    source = "training-operator API, JobCondition; kubeflow.org: TFJob, job status"
    behaviour = "T01"
    kinds = frozenset(relations.JOB_KINDS)
    within_one = True

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._before: dict[str, tuple[dict[str, bool], int]] = {}

    def feed(self, event: Event) -> None:
        """Compare two versions of a job."""
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
