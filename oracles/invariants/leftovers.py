"""What a deleted job leaves behind."""

from __future__ import annotations

from collections import deque

from oracles import relations
from oracles.history import DELETED, Event
from oracles.invariants.roots import Roots
from oracles.invariants.rule import LAST, Rule
from oracles.invariants.world import GONE, MADE

#: seconds for which what is made for a job that was deleted already is put down to it
LATE = 60.0

_KINDS = frozenset({"Pod"}) | relations.GROUP_KINDS | relations.CHILD_KINDS | set(relations.BETWEEN)


class _Child:
    __slots__ = ("grace", "kind", "name", "owner", "seq")

    def __init__(self, event: Event, owner: str) -> None:
        self.kind = event.kind
        self.name = event.name
        self.owner = owner
        self.seq = event.seq
        self.grace = 0.0
        if event.kind == "Pod":
            spec = event.object.get("spec") or {}
            self.grace = float(spec.get("terminationGracePeriodSeconds", 30))


class _Dead:
    __slots__ = ("at", "seq", "subject")

    def __init__(self, at: float, seq: int, subject: str) -> None:
        self.at = at
        self.seq = seq
        self.subject = subject


class Leftovers(Rule):
    """C03; of TrainJobs, too, whose pods are their JobSet's Jobs'.

    A pod may take its own grace period on top of the bound; of one on a node that is not Ready
    nobody can say that it is gone. Where the history ends before the bound, there is no verdict.
    """

    name = "leftovers"
    promise = "Everything that was made for a job is gone within a bound after the job is."
    source = "kubernetes.io: Garbage Collection, owners and dependents"
    behaviour = "C03"
    kinds = _KINDS | relations.ALL_JOBS
    wants = MADE | GONE

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._children: dict[str, _Child] = {}
        self._of: dict[str, set[str]] = {}
        self._dead: dict[str, _Dead] = {}
        self._roots = Roots()
        self._before: deque[tuple[str, _Dead]] = deque()  # deleted before it had any children

    def feed(self, event: Event) -> None:
        """Note who belongs to whom, and who goes."""
        if event.kind in relations.ALL_JOBS:
            if event.type == DELETED:
                self._died(event)
            return
        root = self._roots.of(event, self.world.owner(event))
        if event.type == DELETED:
            self._gone(event)
        elif root and event.uid not in self._children:
            self._children[event.uid] = _Child(event, root)
            self._of.setdefault(root, set()).add(event.uid)
            late = next((dead for uid, dead in self._before if uid == root), None)
            if late is not None:
                self._dead.setdefault(root, late)

    def _died(self, event: Event) -> None:
        dead = _Dead(self.world.now, event.seq, f"{event.kind} {event.namespace}/{event.name}")
        while self._before and self._before[0][1].at < dead.at - LATE:
            self._before.popleft()
        if self._of.get(event.uid):
            self._dead[event.uid] = dead
        else:
            self._before.append((event.uid, dead))

    def _gone(self, event: Event) -> None:
        child = self._children.pop(event.uid, None)
        if child is None:
            return
        siblings = self._of[child.owner]
        siblings.discard(event.uid)
        dead = self._dead.get(child.owner)
        if dead is not None:
            late = self.world.now - dead.at
            if late > self._allowed(child):
                self._broke(dead, child, late, event.seq)
        if not siblings:
            del self._of[child.owner]
            if dead is not None:
                self.judged += 1
                del self._dead[child.owner]

    def _allowed(self, child: _Child) -> float:
        return self.graces["leftovers"] + child.grace

    def _broke(self, dead: _Dead, child: _Child, late: float, seq: int) -> None:
        still = "was still there" if seq == LAST else "went only"
        self.broke(
            dead.subject,
            f"its {child.kind} {child.name} {still} {late:.1f} s after the job was deleted; "
            f"the bound is {self._allowed(child):g} s",
            f"{child.kind} left behind by a deleted job",
            child.seq,
            dead.seq,
            seq,
            t=dead.at + self._allowed(child),
        )

    def end(self, now: float) -> None:
        """What is left at the end."""
        for owner, dead in self._dead.items():
            overdue = False
            for uid in sorted(self._of[owner]):
                child = self._children[uid]
                late = now - dead.at
                if late <= self._allowed(child) or self._unreachable(uid):
                    continue
                overdue = True
                self._broke(dead, child, late, LAST)
            self.judged += overdue

    def _unreachable(self, uid: str) -> bool:
        pod = self.world.pods.get(uid)
        node = self.world.nodes.get(pod.node) if pod is not None else None
        return node is not None and not node.ready
