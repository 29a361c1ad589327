"""One edit each that breaks a promise in a legal history.

An edit takes a history (in order) and gives a changed copy, or None where the history has nothing
that it could break. Its name is the invariant that has to notice.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from oracles import relations
from oracles.history import Event

Events = list[Event]
Edit = Callable[[Events, Random], Events | None]
Object = dict[str, Any]

EDITS: dict[str, list[Edit]] = defaultdict(list)


def edit(name: str) -> Callable[[Edit], Edit]:
    """Say which invariant has to notice."""

    def put(function: Edit) -> Edit:
        EDITS[name].append(function)
        return function

    return put


def changed(event: Event, change: Callable[[Object], None], **fields: Any) -> Event:
    """A copy of the event with another object."""
    body = copy.deepcopy(event.object)
    change(body)
    return msgspec.structs.replace(event, object=body, **fields)


def of(events: Events, kind: str, *types: str) -> list[int]:
    """Places of events of a kind."""
    return [i for i, e in enumerate(events) if e.kind == kind and (not types or e.type in types)]


def jobs(events: Events) -> dict[str, list[int]]:
    """Places of the versions of each job, by uid."""
    found: dict[str, list[int]] = defaultdict(list)
    for i, event in enumerate(events):
        if event.kind in relations.JOB_KINDS and event.type != "DELETED":
            found[event.uid].append(i)
    return found


def insert(events: Events, at: int, *new: Event) -> Events:
    """With new events before place *at*, numbered after all others."""
    last = max(event.seq for event in events)
    numbered = [msgspec.structs.replace(e, seq=last + n) for n, e in enumerate(new, 1)]
    return [*events[:at], *numbered, *events[at:]]


def true(event: Event) -> set[str]:
    """Conditions that are true."""
    conditions = event.object["status"].get("conditions") or ()
    return {c["type"] for c in conditions if c["status"] == "True"}


def bindings(events: Events) -> list[int]:
    """Places of events in which a scheduler bound a pod."""
    bound: set[str] = set()
    found = []
    for i in of(events, "Pod", "MODIFIED"):
        if events[i].uid not in bound and events[i].object["spec"].get("nodeName"):
            bound.add(events[i].uid)
            found.append(i)
    return found


def everywhere(events: Events, uid: str, change: Callable[[Object], None]) -> Events:
    """With every version of an object changed."""
    return [changed(e, change) if e.uid == uid and e.source == "watch" else e for e in events]


@edit("gang-atomicity")
def minimum_out_of_reach(events: Events, rng: Random) -> Events | None:
    """A gang's minimum is more than ever were bound, and it stays bound for long."""
    first: dict[tuple[str, str], float] = {}
    for i in bindings(events):
        event = events[i]
        key = (event.namespace, event.object["metadata"]["labels"][relations.COSCHEDULING_GROUP])
        first.setdefault(key, event.mono)
    for i in rng.sample(found := of(events, "PodGroup", "ADDED"), len(found))[:8]:
        group = events[i]
        start = first.get((group.namespace, group.name))
        end = next(
            (e.mono for e in events[i:] if e.uid == group.uid and e.type == "DELETED"),
            events[-1].mono,
        )
        if start is None or not group.mono <= start <= end - 14:
            continue

        def raised(body: Object) -> None:
            body["spec"]["minMember"] = 1000

        if _bound_for(events, group, 12):
            return everywhere(events, group.uid, raised)
    return None


def _bound_for(events: Events, group: Event, seconds: float) -> bool:
    """Whether some pod of the group is bound for so long without a break."""
    since: float | None = None
    holding: set[str] = set()
    alive = False
    for event in events:
        if event.uid == group.uid:
            alive = event.type != "DELETED"
            if not alive:
                return since is not None and event.mono - since > seconds
        if event.kind != "Pod" or event.namespace != group.namespace or not alive:
            continue
        if event.object["metadata"]["labels"][relations.COSCHEDULING_GROUP] != group.name:
            continue
        holds = (
            event.type != "DELETED"
            and event.object["spec"].get("nodeName")
            and event.object["status"]["phase"] not in relations.TERMINAL
        )
        (holding.add if holds else holding.discard)(event.uid)
        if holding and since is None:
            since = event.mono
        elif not holding and since is not None:
            if event.mono - since > seconds:
                return True
            since = None
    return since is not None and events[-1].mono - since > seconds


def _node_of_a_gpu_pod(events: Events, rng: Random) -> str | None:
    names = sorted(
        {
            events[i].object["spec"]["nodeName"]
            for i in bindings(events)
            if relations.gpus(events[i].object)
        }
    )
    return rng.choice(names) if names else None


@edit("gpu-capacity")
def a_node_without_gpus(events: Events, rng: Random) -> Events | None:
    name = _node_of_a_gpu_pod(events, rng)
    if name is None:
        return None

    def none(body: Object) -> None:
        body["status"]["allocatable"][relations.GPU] = "0"

    return everywhere(events, f"node-{name[1:]}", none)


@edit("placement")
def a_taint(events: Events, rng: Random) -> Events | None:
    name = _node_of_a_gpu_pod(events, rng)
    if name is None:
        return None

    def tainted(body: Object) -> None:
        body["spec"]["taints"] = [{"key": "keep-out", "effect": "NoSchedule"}]

    return everywhere(events, f"node-{name[1:]}", tainted)


@edit("placement")
def another_node(events: Events, rng: Random) -> Events | None:
    """A pod is on the tainted master instead, all its life."""
    places = bindings(events)
    if not places:
        return None

    def moved(body: Object) -> None:
        if body["spec"].get("nodeName"):
            body["spec"]["nodeName"] = "n0"

    return everywhere(events, events[rng.choice(places)].uid, moved)


@edit("condition-transitions")
def running_and_restarting(events: Events, rng: Random) -> Events | None:
    places = [i for own in jobs(events).values() for i in own if "Running" in true(events[i])]
    if not places:
        return None
    at = rng.choice(places)

    def also(body: Object) -> None:
        body["status"]["conditions"].append({"type": "Restarting", "status": "True"})

    return [*events[:at], changed(events[at], also), *events[at + 1 :]]


@edit("condition-transitions")
def taken_back(events: Events, rng: Random) -> Events | None:
    """A job that has ended runs again for a moment."""
    places = [
        i for own in jobs(events).values() for i in own if true(events[i]) & {"Succeeded", "Failed"}
    ]
    if not places:
        return None
    at = rng.choice(places)

    def back(body: Object) -> None:
        body["status"]["conditions"] = [
            {"type": "Created", "status": "True"},
            {"type": "Running", "status": "True"},
        ]

    return insert(events, at + 1, changed(events[at], back))


@edit("start-and-completion")
def another_start(events: Events, rng: Random) -> Events | None:
    places = [
        i
        for own in jobs(events).values()
        for i in own
        if "startTime" in events[i].object["status"]
        and not events[i].object["spec"]["runPolicy"]["suspend"]
        and "Suspended" not in true(events[i])
        and i != own[-1]
    ]
    if not places:
        return None
    at = rng.choice(places)

    def other(body: Object) -> None:
        body["status"]["startTime"] = "2001-01-01T00:00:00Z"

    return insert(events, at + 1, changed(events[at], other), events[at])


@edit("start-and-completion")
def no_completion(events: Events, rng: Random) -> Events | None:
    for own in (found := list(jobs(events).values())) and rng.sample(found, len(found)):
        ended = [i for i in own if true(events[i]) & {"Succeeded", "Failed"}]
        gone = _gone(events, events[own[0]].uid)
        if ended and gone - events[ended[0]].mono > 15:

            def without(body: Object) -> None:
                body["status"].pop("completionTime", None)

            return everywhere(events, events[own[0]].uid, without)
    return None


def _gone(events: Events, uid: str) -> float:
    return next((e.mono for e in events if e.uid == uid and e.type == "DELETED"), events[-1].mono)


@edit("replica-counts")
def blank(events: Events, rng: Random) -> Events | None:
    places = [i for own in jobs(events).values() for i in own if _active(events[i]) and i != own[0]]
    if not places:
        return None
    at = rng.choice(places)

    def emptied(body: Object) -> None:
        body["status"]["replicaStatuses"] = {}

    return insert(events, at + 1, changed(events[at], emptied), events[at])


def _active(event: Event) -> bool:
    counts = event.object["status"].get("replicaStatuses") or {}
    return any(status.get("active") for status in counts.values())


@edit("replica-counts")
def one_too_many(events: Events, rng: Random) -> Events | None:
    """A status that stands for long counts an active pod that there is not."""
    places = [
        (own[n], uid)
        for uid, own in jobs(events).items()
        for n in range(len(own))
        if _active(events[own[n]])
        and (events[own[n + 1]].mono if n + 1 < len(own) else _gone(events, uid))
        - events[own[n]].mono
        > 12
    ]
    if not places:
        return None
    at, _ = rng.choice(places)

    def more(body: Object) -> None:
        for status in body["status"]["replicaStatuses"].values():
            status["active"] = status.get("active", 0) + 50

    return [*events[:at], changed(events[at], more), *events[at + 1 :]]


def _elastic(events: Events) -> dict[str, list[int]]:
    return {
        uid: own
        for uid, own in jobs(events).items()
        if "elasticPolicy" in events[own[0]].object["spec"]
    }


@edit("scale-selector")
def a_selector_of_nobody(events: Events, rng: Random) -> Events | None:
    places = [i for own in _elastic(events).values() for i in own if _active(events[i])]
    if not places:
        return None
    at = rng.choice(places)

    def other(body: Object) -> None:
        body["status"]["replicaStatuses"]["Worker"]["selector"] = "app=nobody"

    return [*events[:at], changed(events[at], other), *events[at + 1 :]]


@edit("replica-bounds")
def too_many_asked_for(events: Events, rng: Random) -> Events | None:
    places = [i for own in _elastic(events).values() for i in own]
    if not places:
        return None
    at = rng.choice(places)

    def more(body: Object) -> None:
        body["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 1000

    return [*events[:at], changed(events[at], more), *events[at + 1 :]]


def _lines(events: Events, *types: str) -> list[int]:
    return [i for i, e in enumerate(events) if e.source == "progress" and e.type in types]


@edit("ranks")
def a_rank_twice(events: Events, rng: Random) -> Events | None:
    places = [i for i in _lines(events, "step") if events[i].object["rank"] > 0]
    if not places:
        return None
    at = rng.choice(places)

    def same(body: Object) -> None:
        body["rank"] = 0

    return [*events[:at], changed(events[at], same), *events[at + 1 :]]


@edit("ranks")
def another_world(events: Events, rng: Random) -> Events | None:
    places = [i for i in _lines(events, "step") if events[i].object["rank"] > 0]
    if not places:
        return None
    at = rng.choice(places)

    def larger(body: Object) -> None:
        body["world"] += 1

    return [*events[:at], changed(events[at], larger), *events[at + 1 :]]


def _surviving_job(events: Events, rng: Random) -> list[int] | None:
    """Step lines of a job that finished an epoch, in order."""
    by_job: dict[str, list[int]] = defaultdict(list)
    owner: dict[str, str] = {}
    for i, event in enumerate(events):
        if event.kind == "Pod":
            owner[event.uid] = event.object["metadata"]["ownerReferences"][0]["uid"]
        elif event.source == "progress" and event.type == "step":
            by_job[owner[event.uid]].append(i)
    found = [own for own in by_job.values() if any(events[i].object["epoch"] for i in own)]
    return rng.choice(found) if found else None


@edit("steps-and-samples")
def a_skipped_sample(events: Events, rng: Random) -> Events | None:
    """A sample of the first epoch is in no line of the job, in all its tries."""
    own = _surviving_job(events, rng)
    if own is None:
        return None
    sample = rng.randrange(40)
    edited = list(events)

    def without(body: Object) -> None:
        body["ids"] = [i for i in body["ids"] if i != sample]

    for i in own:
        if events[i].object["epoch"] == 0:
            edited[i] = changed(events[i], without)
    return edited


@edit("steps-and-samples")
def a_sample_twice(events: Events, rng: Random) -> Events | None:
    own = _surviving_job(events, rng)
    if own is None:
        return None

    def again(body: Object) -> None:
        body["ids"] = [*body["ids"], *body["ids"], 0]

    edited = list(events)
    for i in own:
        edited[i] = changed(events[i], again)
    return edited


@edit("steps-and-samples")
def lost_checkpoints(events: Events, rng: Random) -> Events | None:
    """The last process group says that it went on from far behind."""
    own = _surviving_job(events, rng)
    if own is None or max(events[i].object["step"] for i in own) < 8:
        return None
    last = events[own[-1]]
    body = {
        **last.object,
        "generation": "late",
        "step": 1,
        "event": "resume",
        "rank": 0,
        "world": 1,
    }
    line = msgspec.structs.replace(last, type="resume", object=body)
    return insert(events, own[-1] + 1, line)


@edit("restarts")
def above_max_restarts(events: Events, rng: Random) -> Events | None:
    places = _lines(events, "step")
    if not places:
        return None
    at = rng.choice(places)

    def more(body: Object) -> None:
        body["restart"] = 101

    return [*events[:at], changed(events[at], more), *events[at + 1 :]]


@edit("restarts")
def no_backoff_limit(events: Events, rng: Random) -> Events | None:
    """A job that restarted containers had a backoff limit of 0."""
    all_jobs = jobs(events)
    for i in (found := of(events, "Pod", "MODIFIED")) and rng.sample(found, len(found)):
        event = events[i]
        restarts = sum(
            c["restartCount"] for c in event.object["status"].get("containerStatuses") or ()
        )
        if not restarts:
            continue
        owner = event.object["metadata"]["ownerReferences"][0]["uid"]
        versions = [events[j] for j in all_jobs[owner]]
        ended = [v.mono for v in versions if true(v) & {"Succeeded", "Failed"}]
        until = min([*ended, _gone(events, owner)])
        if until - event.mono < 20:
            continue

        def limited(body: Object) -> None:
            body["spec"]["runPolicy"]["backoffLimit"] = 0

        return everywhere(events, owner, limited)
    return None


@edit("churn")
def a_group_in_a_loop(events: Events, rng: Random) -> Events | None:
    for i in rng.sample(found := of(events, "PodGroup", "ADDED"), len(found)):
        group = events[i]
        job = group.object["metadata"]["ownerReferences"][0]["uid"]
        if any(
            true(events[j]) & {"Restarting", "Suspended"}
            or events[j].object["spec"]["runPolicy"]["suspend"]
            for j in jobs(events)[job]
        ):
            continue
        loop = []
        for n in range(5):
            loop.append(msgspec.structs.replace(group, type="DELETED", uid=f"{group.uid}-{n}"))
            loop.append(msgspec.structs.replace(group, uid=f"{group.uid}-{n + 1}"))
        return insert(events, i + 1, *loop)
    return None


@edit("finished-stays")
def a_pod_after_the_end(events: Events, rng: Random) -> Events | None:
    for own in (found := list(jobs(events).values())) and rng.sample(found, len(found)):
        job = events[own[0]]
        ended = [events[i].mono for i in own if true(events[i]) & {"Succeeded", "Failed"}]
        pods = [
            i
            for i in of(events, "Pod", "ADDED")
            if events[i].object["metadata"]["ownerReferences"][0]["uid"] == job.uid
        ]
        if not ended or not pods:
            continue
        late = next((i for i, e in enumerate(events) if e.mono > ended[0] + 12), None)
        if late is None or _gone(events, job.uid) <= events[late].mono:
            continue
        born = events[late]

        def young(body: Object) -> None:
            body["metadata"].pop("creationTimestamp")
            body["metadata"]["name"] += "-late"

        pod = changed(events[pods[0]], young, t=born.t, mono=born.mono, uid="late")
        return insert(events, late, pod)
    return None


@edit("leftovers")
def a_service_that_stays(events: Events, rng: Random) -> Events | None:
    places = [i for i in of(events, "Service", "DELETED") if events[-1].mono - events[i].mono > 25]
    if not places:
        return None
    at = rng.choice(places)
    return [*events[:at], *events[at + 1 :]]


@edit("recovery")
def a_fault_that_is_not_survived(events: Events, rng: Random) -> Events | None:
    """Nothing is heard of a job's training any more after a fault, until long after the bound."""
    elastic = _elastic(events)
    for uid in (found := list(elastic)) and rng.sample(found, len(found)):
        own = elastic[uid]
        job = events[own[0]]
        running = [i for i in own if "Running" in true(events[i])]
        ended = [events[i].mono for i in own if true(events[i]) & {"Succeeded", "Failed"}]
        until = min([*ended, _gone(events, uid)])
        if not running or until - events[running[0]].mono < 12:
            continue
        pods = {
            e.uid
            for e in events
            if e.kind == "Pod" and e.object["metadata"]["ownerReferences"][0]["uid"] == uid
        }
        at = running[0] + 1
        wanted = {"kind": job.kind, "namespace": job.namespace, "name": job.name, "within_s": 10}
        fault = msgspec.structs.replace(
            events[running[0]],
            source="fault",
            type="proven",
            kind="freeze",
            rv=0,
            object={"id": "late", "recovers": wanted},
        )
        rest = [e for e in events[at:] if e.source != "progress" or e.uid not in pods]
        return insert([*events[:at], *rest], at, fault)
    return None
