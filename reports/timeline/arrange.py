"""Lanes in their order: the test, each job with its pods, nodes, the rest by namespace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from reports.timeline import others
from reports.timeline.gangs import Gang
from reports.timeline.jobs import Job
from reports.timeline.model import Chart, Flag, Group, Lane, Moment, Row, Segment, Span, Tick
from reports.timeline.others import Other
from reports.timeline.pods import BOUND, SERIES, Pod, Stay
from reports.timeline.scene import Scene
from reports.timeline.track import common_prefix, counts, natural


class _Homes:
    """Everything of a scene by where it is shown: with its job, its namespace, the cluster."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.pods: dict[str, list[Pod]] = defaultdict(list)
        self.gangs: dict[str, list[Gang]] = defaultdict(list)
        self.others: dict[str, list[Other]] = defaultdict(list)
        self.inner: dict[str, list[Job]] = defaultdict(list)
        for pod in scene.pods.values():
            self.pods[self._home("Pod", pod.namespace, pod.name)].append(pod)
        for gang in scene.gangs.values():
            self.gangs[self._home(gang.kind, gang.namespace, gang.name)].append(gang)
        for other in scene.others.values():
            self.others[self._home(other.kind, other.namespace, other.name)].append(other)
        for job in scene.jobs.values():
            home = self._home(job.kind, job.namespace, job.name)
            if home != job.id:
                self.inner[home].append(job)
        for pods in self.pods.values():
            pods.sort(key=Pod.order)

    def _home(self, kind: str, namespace: str, name: str) -> str:
        job = self._scene.families.job(kind, namespace, name)
        if job in self._scene.jobs:
            return job
        return f"namespace {namespace}" if namespace else "cluster"

    def outer(self) -> list[Job]:
        """The jobs that no other job made."""
        inner = {job.id for jobs in self.inner.values() for job in jobs}
        return [job for job in self._scene.jobs.values() if job.id not in inner]

    def without_job(self) -> list[str]:
        """Where things are shown that belong to no job."""
        return sorted({*self.pods, *self.gangs, *self.others} - set(self._scene.jobs), key=natural)


def groups(scene: Scene, until: float) -> tuple[tuple[Group, ...], list[Moment], dict[str, str]]:
    """All groups but the test's own; the moments of their objects; lane ids by object id."""
    homes = _Homes(scene)
    moments = [
        moment
        for each in (scene.jobs, scene.gangs, scene.pods, scene.nodes)
        for builder in each.values()
        for moment in builder.moments
    ]
    made = [_job(scene, homes, job, until, moments) for job in homes.outer()]
    if scene.nodes:
        made.append(_nodes(scene, until))
    for home in homes.without_job():
        pods = homes.pods[home]
        lanes = [gang.lane(until) for gang in homes.gangs[home]]
        lanes += [_pod_lane(scene, pod, until, "") for pod in pods]
        lanes += others.lanes(homes.others[home], home, until)
        if lanes:
            title = home.removeprefix("namespace ")
            note = "namespace" if title != home else ""
            made.append(Group(home, title, note, tuple(lanes), open=not scene.jobs))
    prefix = common_prefix([node.name for node in scene.nodes.values()])
    made = [_shorter(_told(scene, group), prefix) for group in made]
    # objects that are only counted are found on their kind's lane
    places = {
        each.id: f"count {each.kind} {home}" for home in homes.others for each in homes.others[home]
    }
    places |= {lane.id: lane.id for group in made for lane in group.lanes}
    return tuple(made), moments, places


def _job(scene: Scene, homes: _Homes, job: Job, until: float, moments: list[Moment]) -> Group:
    """A job with all that is its own; its moments as a whole are added to *moments*."""
    pods, gangs = homes.pods[job.id], homes.gangs[job.id]
    lanes = [job.lane(until)]
    lanes += [
        replace(inner.lane(until), name=f"{inner.kind} {inner.name}")
        for inner in homes.inner[job.id]
    ]
    lanes += [gang.lane(until) for gang in gangs]
    if len(pods) > 1:
        limits = sorted(limit for gang in gangs for limit in gang.minimums)
        lanes.append(_pods_lane(job.id, pods, limits, until))
        moments += _gang_moments(job.id, lanes[-1])
    curve, said = scene.training.lane(job.id, [pod.id for pod in pods])
    lanes += [curve] if curve else []
    moments += said
    lanes += [_pod_lane(scene, pod, until, f"{job.name}-") for pod in pods]
    lanes += others.lanes(homes.others[job.id], job.id, until)
    many = len({each.namespace for each in scene.jobs.values()}) > 1
    note = f"{len(pods)} pods" + (f" · {job.namespace}" if many else "")
    return Group(job.id, f"{job.kind} {job.name}", note, tuple(lanes), job.summary(until))


def test_group(
    flags: Sequence[Flag],
    faults: Sequence[Span],
    gaps: Sequence[Span],
    fault_ticks: Sequence[Tick],
    marks: Sequence[Tick],
    until: float,
) -> Group:
    """What the test and the harness did and found."""
    lanes = []
    if flags:
        ticks = tuple(
            Tick(each.x, "violation", each.violation.message, next(iter(each.violation.events), 0))
            for each in flags
        )
        lanes.append(Lane("violations", "violations", "violations", "broken promises", ticks=ticks))
    if fault_ticks:
        row = Row("bar", _segments(faults, "fault", until))
        lanes.append(
            Lane("faults", "faults", "faults", "faults", rows=(row,), ticks=tuple(fault_ticks))
        )
    if gaps:
        row = Row("bar", _segments(gaps, "gap", until))
        lanes.append(Lane("gaps", "gaps", "gaps", "what the recorder did not see", rows=(row,)))
    if marks:
        lanes.append(Lane("marks", "marks", "marks", "what the test said", ticks=tuple(marks)))
    return Group("test", "Test", "", tuple(lanes))


def _segments(spans: Sequence[Span], state: str, until: float) -> tuple[Segment, ...]:
    return tuple(
        Segment(each.start, until if each.end is None else each.end, state, each.text, each.event)
        for each in spans
    )


def _pod_lane(scene: Scene, pod: Pod, until: float, prefix: str) -> Lane:
    segments = pod.main.segments(until)
    # a pod ends where its bar ends, also when another one follows under its name
    ends = [a.end for a, b in pairwise(segments) if b.start > a.end]
    ends += [segments[-1].end] if segments else []
    ends += [tick.x for tick in pod.ticks if tick.kind == "replaced"]
    ends += [each.start for each in segments if each.state in ("succeeded", "failed")]
    restarts = [tick.x for tick in pod.ticks if tick.kind == "agent"]
    ticks = [*pod.ticks, *scene.training.ticks(pod.id, restarts)]
    note = " · ".join(part for part in (scene.training.note(pod.id), pod.node) if part)
    short = pod.name.removeprefix(prefix)
    return Lane(
        pod.id,
        "Pod",
        short or pod.name,
        pod.id,
        note=note,
        rows=(Row("bar", segments), *scene.training.rows(pod.id, sorted(ends), until)),
        ticks=tuple(sorted(ticks, key=lambda tick: tick.x)),
    )


def _pods_lane(
    job: str, pods: Sequence[Pod], limits: Sequence[tuple[float, float]], until: float
) -> Lane:
    points = counts([pod.main.segments(until) for pod in pods], SERIES)
    chart = Chart(SERIES, points, tuple(limits), "minimum of the gang", BOUND)
    return Lane(f"pods {job}", "pods", "pods by state", f"pods of {job} by state", chart=chart)


def _gang_moments(job: str, lane: Lane) -> list[Moment]:
    """When the first pod was bound, the minimum, and all of them."""
    chart = lane.chart
    if chart is None or not chart.points:
        return []
    least = chart.limits[-1][1] if chart.limits else None
    found: list[Moment] = []
    first = full = None
    for x, *numbers in chart.points:
        bound, total = sum(numbers[:BOUND]), sum(numbers)
        if bound and first is None:
            first = x
            text = f"first pods bound: {bound:g} of {total:g}"
            found.append(Moment(x, "info", job, text, 0, lane.id))
        if first is not None and least and bound >= least and full is None:
            full = x
            if x > first:
                text = f"minimum of {least:g} bound, {x - first:.3f} s after the first pod"
                found.append(Moment(x, "info", job, text, 0, lane.id))
        if first is not None and total > 1 and numbers[0] == total:
            found.append(Moment(x, "info", job, f"all {total:g} pods ready", 0, lane.id))
            break
    return found


def _nodes(scene: Scene, until: float) -> Group:
    stays: dict[str, list[Stay]] = defaultdict(list)
    for pod in [*scene.pods.values(), *scene.guests.values()]:
        for stay in pod.stays(until):
            stays[stay.node].append(stay)
    nodes = sorted(scene.nodes.values(), key=lambda node: natural(node.name))
    lanes = tuple(node.lane(stays[node.name], until) for node in nodes)
    return Group("nodes", "Nodes", f"{len(lanes)} nodes", lanes)


def _shorter(group: Group, prefix: str) -> Group:
    """The group without what the names of all nodes begin with; titles keep it."""
    if not prefix:
        return group
    lanes = []
    for lane in group.lanes:
        if lane.kind == "Node":
            lane = replace(lane, name=lane.name.removeprefix(prefix))
        elif lane.kind == "Pod":
            bars = tuple(
                replace(each, label=each.label.removeprefix(prefix))
                for each in lane.rows[0].segments
            )
            rows = (replace(lane.rows[0], segments=bars), *lane.rows[1:])
            lane = replace(lane, rows=rows, note=lane.note.replace(prefix, ""))
        lanes.append(lane)
    return replace(group, lanes=tuple(lanes))


def _told(scene: Scene, group: Group) -> Group:
    """The group with what the cluster's Event objects said on its lanes."""
    lanes = []
    for lane in group.lanes:
        told = scene.told_about.get(lane.id)
        if told:
            ticks = sorted([*lane.ticks, *told], key=lambda tick: tick.x)
            lane = replace(lane, ticks=tuple(ticks))
        lanes.append(lane)
    return replace(group, lanes=tuple(lanes))
