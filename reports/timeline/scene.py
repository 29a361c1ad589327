"""Everything that takes part in a history, each with its own builder."""

from __future__ import annotations

from oracles.history import Event
from reports.timeline import gangs
from reports.timeline.families import Families, is_job, subject
from reports.timeline.gangs import Gang
from reports.timeline.jobs import Job
from reports.timeline.model import Tick
from reports.timeline.nodes import Node
from reports.timeline.others import Other
from reports.timeline.pods import Pod
from reports.timeline.training import Training

Key = tuple[str, str]


class Scene:
    """Gives each event to whom it is about."""

    def __init__(self) -> None:
        self.families = Families()
        self.jobs: dict[str, Job] = {}
        self.gangs: dict[str, Gang] = {}
        self.pods: dict[str, Pod] = {}
        #: other tests' pods, which are here for the GPUs that they take
        self.guests: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.others: dict[str, Other] = {}
        self.training = Training()
        self.told_about: dict[str, list[Tick]] = {}
        self._pod_of_uid: dict[str, str] = {}

    def watch(self, event: Event, x: float, changed: str) -> None:
        """Take a version of an object."""
        kind, namespace, name = event.kind, event.namespace, event.name
        self.families.saw(kind, namespace, name, event.object)
        me = subject(kind, namespace, name)
        if kind == "Pod":
            if event.uid:
                self._pod_of_uid[event.uid] = me
            self.pods.setdefault(me, Pod(namespace, name)).feed(event, x, changed)
        elif kind == "Node":
            self.nodes.setdefault(me, Node(name)).feed(event, x, changed)
        elif is_job(kind):
            self.jobs.setdefault(me, Job(kind, namespace, name)).feed(event, x, changed)
        elif kind in gangs.KINDS:
            self.gangs.setdefault(me, Gang(kind, namespace, name)).feed(event, x, changed)
        else:
            self.others.setdefault(me, Other(kind, namespace, name)).feed(event, x, changed)

    def guest(self, event: Event, x: float) -> None:
        """Take a version of another test's pod."""
        me = subject("Pod", event.namespace, event.name)
        self.guests.setdefault(me, Pod(event.namespace, event.name)).feed(event, x, "")

    def progress(self, event: Event, x: float) -> str:
        """Take a progress line; says the id of its pod."""
        line = event.object
        uid = str(line.get("pod_uid") or event.uid)
        pod = self._pod_of_uid.get(uid) or subject(
            "Pod", event.namespace, str(line.get("pod") or event.name)
        )
        self.training.feed(pod, x, {"event": event.type, **line}, event.seq)
        return pod

    def told(self, event: Event, x: float) -> None:
        """Take an Event object of the cluster: a mark on the lane of what it is about."""
        if event.type == "DELETED":
            return
        told = event.object
        about = told.get("involvedObject") or told.get("regarding") or {}
        text = ": ".join(
            str(part) for part in (told.get("reason"), told.get("message") or told.get("note"))
            if part
        )  # fmt: skip
        times = told.get("count") or (told.get("series") or {}).get("count") or 1
        me = subject(
            str(about.get("kind", "")), str(about.get("namespace", "")), str(about.get("name", ""))
        )
        kind = "warning" if told.get("type") == "Warning" else "event"
        if times > 1:
            text += f" (times {times})"
        self.told_about.setdefault(me, []).append(Tick(x, kind, text[:300], event.seq))
