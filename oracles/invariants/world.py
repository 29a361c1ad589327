"""What is alive at this moment of a history, kept once for all invariants.

The judge gives every event to the world first, then to the invariants. They read the change that
the event made (``world.changed``, bits) and the records, and keep of their own only what their
promise needs. Everything here is bounded by live objects: what is deleted is forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from oracles import relations
from oracles.history import DELETED, FAULT, PROGRESS, WATCH, Event
from oracles.invariants.records import NOTHING, Job, Node, NodeState, Pod, category
from oracles.invariants.uptime import Controllers
from oracles.relations import TERMINAL

#: bits of ``World.changed``: what the last event did to its object
MADE = 1  # first seen
GONE = 2  # deleted
BOUND = 4  # a pod got its node
PHASE = 8  # a pod's phase
HOLD = 16  # whether a pod holds room: bound and not terminal
DELETING = 32  # a pod got its deletion time
LABELS = 64  # a pod's labels
RESTARTS = 128  # a pod's containers were restarted
TOUCHED = 256  # anything; set by every event
ANY = 0xFFFF

#: seconds of a node's past that are kept: longer than any scheduler holds a decision
NODE_MEMORY = 180.0
#: seconds for which progress lines of a deleted job are still put down to it
LINES_LATE = 60.0


class World:
    """All that is alive.

    Args:
        origin: monotonic time before which nothing is timed. What a slice begins with is a state:
            each object as it was last seen, maybe long before, and not what went on between.

    Attributes:
        now: the latest monotonic time seen.
        changed: bits of what the last event did.
        pod: the pod that the last event was about.
        category: its category before the event.
        jobs: by uid; ``job`` is the one that the last event was about.
        line_job: the job that the last progress line's process worked for: its uid, or else
            ``NAMESPACE/NAME``.
    """

    def __init__(self, origin: float = 0.0) -> None:
        self.origin = origin
        self.now = 0.0
        self.changed = 0
        self.pods: dict[str, Pod] = {}
        self.pod: Pod | None = None
        self.category = ""
        self.nodes: dict[str, Node] = {}
        self.jobs: dict[str, Job] = {}
        self.job: Job | None = None
        self.line_job = ""
        #: pods of a job, by its uid and theirs
        self.members: dict[str, dict[str, Pod]] = {}
        #: pods whose label names a job, by namespace and that name, and by their uid
        self.called: dict[tuple[str, str], dict[str, Pod]] = {}
        #: pod -> job, for as long as the job lives: lines of a pod come after its end, too
        self._ran: dict[str, str] = {}
        self._ran_of: dict[str, list[str]] = {}
        self._ended: deque[tuple[float, str]] = deque()
        self._controllers = Controllers()
        self._names: dict[tuple[str, str], str] = {}
        self._kinds = {"Pod": self._pod, "Node": self._node}
        self._kinds.update(dict.fromkeys(relations.JOB_KINDS, self._job))

    def feed(self, event: Event) -> None:
        """Take the next event, before any invariant does."""
        if event.mono > self.now:
            self.now = event.mono
        source = event.source
        if source == WATCH:
            take = self._kinds.get(event.kind)
            if take is not None:
                take(event)
            else:
                self.changed = TOUCHED
            return
        self.changed = TOUCHED
        if source == PROGRESS:
            job = self._ran.get(event.uid)
            # of a pod that was never seen only the name says it: NAME-TYPE-INDEX
            self.line_job = job or f"{event.namespace}/{event.name.rsplit('-', 2)[0]}"
        elif source == FAULT:
            self._controllers.fault(event, self.now)

    def owner(self, event: Event) -> relations.Owner | None:
        """Who owns the object that the last event was about."""
        if event.kind == "Pod" and self.pod is not None:
            return self.pod.owner
        return relations.owner(event.object)

    def up(self, role: str, start: float, end: float) -> float:
        """The longest stretch (seconds) between *start* and *end* in which *role* was there.

        A controller that nothing is known of counts as there.
        """
        return self._controllers.up(role, max(start, self.origin), end)

    # pods --------------------------------------------------------------------------------------

    def _pod(self, event: Event) -> None:
        obj = event.object
        pod = self.pods.get(event.uid)
        if event.type == DELETED:
            if pod is None:  # it was never seen: nothing changes
                self.pod, self.changed = None, 0
            else:
                self._gone(pod)
            return
        metadata = obj.get("metadata") or NOTHING
        if pod is None:
            pod = self._made(event, metadata)
            changed = MADE | TOUCHED
        else:
            changed = TOUCHED
            labels = metadata.get("labels") or NOTHING
            if labels != pod.labels:
                self._uncall(pod)
                pod.labels = labels
                self._call(pod)
                pod.replica, pod.index = relations.replica(labels)
                changed |= LABELS
        self.pod = pod
        self.category = pod.category
        if not pod.node:
            node = (obj.get("spec") or NOTHING).get("nodeName")
            if node:
                pod.node = node
                pod.bound = event.seq
                changed |= BOUND
                if changed & MADE:
                    pod.scheduled = False
        if not pod.deleting and metadata.get("deletionTimestamp"):
            pod.deleting = True
            changed |= DELETING
        status = obj.get("status") or NOTHING
        phase = status.get("phase", "")
        if phase != pod.phase:
            pod.phase = phase
            changed |= PHASE
        if changed & (PHASE | BOUND | DELETING):
            pod.category = category(pod)
            holds = bool(pod.node) and phase not in TERMINAL
            if holds is not pod.holds:
                pod.holds = holds
                changed |= HOLD
                if pod.gpus:
                    self._gpus(pod)
        containers = status.get("containerStatuses")
        if containers:
            restarts = 0
            for container in containers:
                restarts += container.get("restartCount", 0)
            if restarts != pod.restarts:
                pod.restarts = restarts
                changed |= RESTARTS
        if pod.role:
            self._controllers.pod(pod, status, self.now)
        self.changed = changed

    def _made(self, event: Event, metadata: Mapping[str, Any]) -> Pod:
        pod = Pod(event)
        name = (pod.namespace, pod.name)
        old = self.pods.get(self._names.get(name, ""))
        if old is not None:  # its deletion fell into a gap
            self._gone(old)
        self._names[name] = pod.uid
        self.pods[pod.uid] = pod
        if pod.job:
            self.members.setdefault(pod.job, {})[pod.uid] = pod
            self._ran[pod.uid] = pod.job
            self._ran_of.setdefault(pod.job, []).append(pod.uid)
        self._call(pod)
        return pod

    def _call(self, pod: Pod) -> None:
        name = pod.labels.get(relations.JOB_NAME)
        if name is not None:
            self.called.setdefault((pod.namespace, name), {})[pod.uid] = pod

    def _uncall(self, pod: Pod) -> None:
        key = (pod.namespace, pod.labels.get(relations.JOB_NAME, ""))
        pods = self.called.get(key)
        if pods is not None:
            pods.pop(pod.uid, None)
            if not pods:
                del self.called[key]

    def _gone(self, pod: Pod) -> None:
        self.pod = pod
        self.category = pod.category
        self.changed = GONE | TOUCHED | (HOLD if pod.holds else 0)
        del self.pods[pod.uid]
        if self._names.get((pod.namespace, pod.name)) == pod.uid:
            del self._names[pod.namespace, pod.name]
        if pod.job:
            members = self.members[pod.job]
            del members[pod.uid]
            if not members:
                del self.members[pod.job]
        self._uncall(pod)
        pod.category = ""
        if pod.holds:
            pod.holds = False
            if pod.gpus:
                self._gpus(pod)
        if pod.role:
            self._controllers.gone(pod, self.now)

    def _gpus(self, pod: Pod) -> None:
        node = self.nodes.get(pod.node)
        if node is None:
            node = self.nodes[pod.node] = Node(pod.node)
        if pod.holds:
            node.pods[pod.uid] = pod
        else:
            node.pods.pop(pod.uid, None)

    # nodes -------------------------------------------------------------------------------------

    def _node(self, event: Event) -> None:
        self.changed = TOUCHED
        node = self.nodes.get(event.name)
        if event.type == DELETED:
            if node is not None:
                node.states.clear()
                if not node.pods:
                    del self.nodes[event.name]
            return
        if node is None:
            node = self.nodes[event.name] = Node(event.name)
        conditions = (event.object.get("status") or NOTHING).get("conditions") or ()
        node.ready = not any(
            c.get("type") == "Ready" and c.get("status") != "True" for c in conditions
        )
        new = NodeState(event)
        if node.states:
            last = node.states[-1]
            if last.key == new.key:
                return
            last.until = self.now
        oldest = self.now - NODE_MEMORY
        node.states = [s for s in node.states if s.until is None or s.until >= oldest]
        node.states.append(new)

    # jobs --------------------------------------------------------------------------------------

    def _job(self, event: Event) -> None:
        job = self.jobs.get(event.uid)
        if event.type == DELETED:
            self.jobs.pop(event.uid, None)
            self.job = job
            self._end(event.uid)
            self.changed = GONE | TOUCHED if job is not None else 0
        elif job is None:
            self.job = self.jobs[event.uid] = Job(event)
            self.changed = MADE | TOUCHED
        else:
            job.update(event)
            self.job = job
            self.changed = TOUCHED

    def _end(self, uid: str) -> None:
        self._ended.append((self.now, uid))
        while self._ended and self._ended[0][0] < self.now - LINES_LATE:
            for pod in self._ran_of.pop(self._ended.popleft()[1], ()):
                self._ran.pop(pod, None)
