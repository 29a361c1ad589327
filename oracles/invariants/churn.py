"""Objects that are made and deleted over and over, and objects of jobs that have ended."""

from __future__ import annotations

from collections import deque
from datetime import datetime

from oracles import relations
from oracles.history import DELETED, FAULT, Event
from oracles.invariants.roots import Roots
from oracles.invariants.rule import Rule
from oracles.invariants.world import GONE, MADE

_MADE = (
    frozenset({"Pod", "Service", "HorizontalPodAutoscaler"})
    | relations.GROUP_KINDS
    | set(relations.BETWEEN)
)
Key = tuple[str, str, str]


class _Life:
    __slots__ = ("dead", "owner", "remade", "seqs", "told", "uid")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.uid = ""  # of the last one that died
        self.dead = 0.0
        self.remade: deque[float] = deque()
        self.seqs: list[int] = []
        self.told = False


class Churn(Rule):
    """G15 for groups, R05 for the rest.

    Not counted: what is made for another owner (somebody submits a job again), pods that had ended
    (a restart), pods that a fault has just hit, and all that happens while the job is restarting
    or suspended. Pods of TrainJobs have another name each time they are made, so they are not seen
    here; their JobSets, Jobs, services and groups are.
    """

    name = "churn"
    promise = "No object is made and deleted again and again while its job does not ask for it."
    source = "catalogue G15 and R05"
    behaviour = "G15"
    kinds = _MADE | {"source:fault"}
    wants = MADE | GONE

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._lives: dict[Key, _Life] = {}
        self._dead: deque[tuple[float, Key]] = deque()
        self._hit: dict[tuple[str, str], float] = {}
        self._window = self.graces["churn_window"]

    def feed(self, event: Event) -> None:
        """Note deaths, and births after them."""
        if event.source == FAULT:
            self._hit[event.namespace, event.name] = self.world.now
            return
        key = (event.kind, event.namespace, event.name)
        if event.type == DELETED:
            self._died(key, event)
        elif self._lives:
            life = self._lives.get(key)
            if life is not None and event.uid != life.uid:
                self._born(key, life, event)

    def _died(self, key: Key, event: Event) -> None:
        self._purge()
        owner = self.world.owner(event)
        uid = owner.uid if owner is not None else ""
        life = self._lives.get(key)
        if not self._counts(key, uid):
            if life is not None:
                life.remade.clear()
            return
        self.judged += 1
        if life is None or (uid and life.owner != uid):
            life = self._lives[key] = _Life(uid)
        life.uid = event.uid
        life.dead = self.world.now
        life.seqs = [*life.seqs, event.seq][-32:]
        self._dead.append((life.dead, key))

    def _counts(self, key: Key, owner: str) -> bool:
        job = self.world.jobs.get(owner)
        if job is not None and (job.suspended or job.conditions.get("Restarting")):
            return False
        if key[0] != "Pod":
            return True
        pod = self.world.pod
        hit = self._hit.get((key[1], key[2]))
        return (
            pod is not None
            and pod.phase not in relations.TERMINAL
            and (hit is None or self.world.now - hit > self._window)
        )

    def _born(self, key: Key, life: _Life, event: Event) -> None:
        life.uid = event.uid  # it is told of again with every version
        owner = self.world.owner(event)
        if life.owner != (owner.uid if owner is not None else ""):
            del self._lives[key]
            return
        now = self.world.now
        life.remade.append(now)
        life.seqs = [*life.seqs, event.seq][-32:]
        while life.remade and life.remade[0] < now - self._window:
            life.remade.popleft()
        if len(life.remade) <= self.graces["churn_times"]:
            life.told = life.told and len(life.remade) > 1
            return
        if life.told:
            return
        life.told = True
        self.broke(
            f"{key[0]} {key[1]}/{key[2]}",
            f"it was made again {len(life.remade)} times within {self._window:g} s",
            f"{key[0]} made and deleted again and again",
            *life.seqs,
            t=event.mono,
            behaviour="G15" if key[0] in relations.GROUP_KINDS else "R05",
        )

    def _purge(self) -> None:
        oldest = self.world.now - self._window
        while self._dead and self._dead[0][0] < oldest:
            _, key = self._dead.popleft()
            life = self._lives.get(key)
            if life is not None and life.dead < oldest:
                del self._lives[key]
        if self._hit:
            self._hit = {k: t for k, t in self._hit.items() if t >= oldest}


class FinishedStays(Rule):
    """C04; of TrainJobs, too, also for what is made by their JobSet or its Jobs."""

    name = "finished-stays"
    promise = "Nothing is made for a job that has ended."
    source = "catalogue C04"
    behaviour = "C04"
    kinds = _MADE | relations.ALL_JOBS
    wants = MADE

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        #: job -> when it ended, the event that says so, and as violations name it
        self._ended: dict[str, tuple[float, int, str]] = {}
        self._seen: dict[str, set[str]] = {}  # what such a job has already
        self._roots = Roots()

    def feed(self, event: Event) -> None:
        """Note ends, and what is made after them."""
        if event.kind in relations.ALL_JOBS:
            self._job(event)
            return
        root = self._roots.of(event, self.world.owner(event))
        if event.type != "ADDED" or root not in self._ended:
            return
        seen = self._seen.setdefault(root, set())
        ended, seq, subject = self._ended[root]
        # a list after a gap shows old objects as added: what counts is when it was made
        after = self.world.now - _age(event) - ended
        known = event.uid in seen
        seen.add(event.uid)
        if known or after <= self.graces["finished_settles"]:
            return
        self.broke(
            subject,
            f"{event.kind} {event.name} was made {after:.1f} s after the job had ended",
            f"{event.kind} made for a job that has ended",
            seq,
            event.seq,
            t=event.mono,
        )

    def _job(self, event: Event) -> None:
        if event.type == DELETED:
            self._ended.pop(event.uid, None)
            self._seen.pop(event.uid, None)
            return
        if event.kind == relations.TRAIN_JOB:
            ends = relations.true_conditions(event.object)
            finished = not ends.isdisjoint(relations.TRAIN_JOB_ENDS)
        else:
            job = self.world.job
            finished = job is not None and job.finished
        if finished and event.uid not in self._ended:
            subject = f"{event.kind} {event.namespace}/{event.name}"
            self._ended[event.uid] = (max(self.world.now, self.world.origin), event.seq, subject)
            self.judged += 1


def _age(event: Event) -> float:
    """Seconds since the object was created, by its own account; 0 when it gives none."""
    made = (event.object.get("metadata") or {}).get("creationTimestamp")
    if not made:
        return 0.0
    # whole seconds: it may have been made up to a second later
    return max(0.0, event.t - datetime.fromisoformat(made).timestamp() - 1.0)
