"""All or nothing: at no moment is part of a gang bound for long.

Judged per admission: it begins with the first pod that is bound and ends when the group's minimum
is. After that the gang is admitted until no pod of it is bound, and what happens to it is another
promise's business (G13). The minimum may change meanwhile; it counts as it is at each moment.

Kueue admits a ``Workload`` by quota (its condition Admitted) and then lets the pods go, whoever
places them. So for it the admission is the Workload's: no pod may be bound without it, and after it
nothing is said of how many are. A job's Workload is found by the job that owns both.
"""

from __future__ import annotations

from oracles import relations
from oracles.history import DELETED, Event
from oracles.invariants.rule import LAST, Rule
from oracles.invariants.world import HOLD, MADE

#: bindings that a violation cites
CITE = 32


class _Gang:
    __slots__ = (
        "admitted", "bound", "group", "kind", "let", "minimum", "most", "role", "seq", "since"
    )  # fmt: skip

    def __init__(self) -> None:
        self.bound: dict[str, int] = {}  # uid of a pod that holds room -> event that bound it
        self.minimum = 0
        self.group = False  # whether its group object exists
        self.kind = "PodGroup"
        self.let = False  # whether Kueue lets its pods go
        self.seq = 0
        self.admitted = False
        self.since: float | None = None  # partly bound since
        self.most: list[int] = []  # bindings of the partly bound pods
        self.role = "scheduler"  # who is to bind it


class GangAtomicity(Rule):
    """G16."""

    name = "gang-atomicity"
    promise = (
        "During an admission the number of bound members is never between one and the minimum for "
        "longer than the grace."
    )
    source = (
        "scheduler-plugins, KEP 42-podgroup-coscheduling; volcano.sh: PodGroup, minMember; "
        "kueue.sigs.k8s.io: Workload, admission; kubernetes.io: Gang scheduling, minCount"
    )
    behaviour = "G16"
    kinds = frozenset({"Pod"}) | relations.GROUP_KINDS
    wants = HOLD | MADE

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._gangs: dict[tuple[str, str], _Gang] = {}
        #: job -> its Workload
        self._workloads: dict[str, tuple[str, str]] = {}

    def feed(self, event: Event) -> None:
        """Count bindings, and read minima."""
        if event.kind == "Pod":
            self._pod(event)
            return
        key = (event.namespace, event.name)
        gang = self._gangs.get(key)
        if event.type == DELETED:
            if gang is not None:
                self._close(key, gang, event.seq)
                gang.minimum, gang.group, gang.seq, gang.let = 0, False, event.seq, False
                self._forget(key, gang)
            return
        if gang is None:
            gang = self._gangs[key] = _Gang()
        gang.group, gang.seq, gang.kind = True, event.seq, event.kind
        gang.minimum = relations.minimum(event.object)
        if event.kind == relations.WORKLOAD:
            gang.let = relations.admitted(event.object)
            gang.role = ""  # while Kueue is away nothing may be let go either
            owner = relations.owner(event.object)
            if owner is not None and owner.kind in relations.JOB_KINDS:
                self._workloads[owner.uid] = key
        self._assess(key, gang, event)

    def _pod(self, event: Event) -> None:
        pod = self.world.pod
        if pod is None or not self.world.changed & HOLD:
            return
        key = (pod.namespace, pod.group) if pod.group else self._workloads.get(pod.job)
        if key is None:
            return
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = _Gang()
        if not pod.holds:
            gang.bound.pop(pod.uid, None)
        else:
            if not gang.bound:
                self.judged += 1
                if (event.object.get("spec") or {}).get("schedulingGroup"):
                    gang.role = "kube-scheduler"
            gang.bound[pod.uid] = pod.bound
            if not pod.scheduled:
                # bound before we looked, or without a scheduler: what went before is not known
                gang.admitted = True
                gang.since = None
        self._assess(key, gang, event)

    def _assess(self, key: tuple[str, str], gang: _Gang, event: Event) -> None:
        bound = len(gang.bound)
        if bound == 0:
            self._close(key, gang, event.seq)
            gang.admitted = False
            self._forget(key, gang)
        elif gang.let if gang.kind == relations.WORKLOAD else 0 < gang.minimum <= bound:
            self._close(key, gang, event.seq)
            gang.admitted = True
        elif gang.minimum and not gang.admitted:
            if gang.since is None:
                gang.since = self.world.now
            gang.most = list(gang.bound.values())[:CITE]

    def _close(self, key: tuple[str, str], gang: _Gang, seq: int) -> None:
        since, gang.since = gang.since, None
        if since is None:
            return
        grace = self.graces["gang_partial"]
        lasted = self.world.up(gang.role, since, self.world.now)
        if lasted <= grace:
            return
        how = " without its admission" if gang.kind == relations.WORKLOAD else ""
        self.broke(
            f"{gang.kind} {key[0]}/{key[1]}",
            f"{len(gang.most)} of its pods were bound for {lasted:.1f} s{how}, and its minimum is "
            f"{gang.minimum}; the grace is {grace:g} s",
            "part of a gang stayed bound",
            gang.seq,
            *gang.most,
            seq,
            t=since + grace,
        )

    def _forget(self, key: tuple[str, str], gang: _Gang) -> None:
        if not gang.bound and not gang.group:
            del self._gangs[key]
            if gang.kind == relations.WORKLOAD:
                self._workloads = {job: at for job, at in self._workloads.items() if at != key}

    def end(self, now: float) -> None:
        """Gangs that are partly bound at the end."""
        self.world.now = now
        for key, gang in list(self._gangs.items()):
            self._close(key, gang, LAST)
