"""Probes: each is shown the bad case, and says so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from places import Place
from test_aim import event, history

from chaos import actions, probes, session
from chaos.actions import common
from chaos.errors import NotProven, NotReached
from chaos.faults.api import ApiTrouble
from chaos.faults.base import Proof, Scope
from chaos.probes import made, training
from chaos.proxy import Counts
from chaos.session import Handover, Session
from clusters.cluster import Capability
from clusters.errors import Unreachable, WaitTimeout
from clusters.kube import PODS, PYTORCHJOBS, Object
from clusters.resources import Resource
from oracles.errors import HarnessError, NotApplicable
from oracles.history import BEGIN, GAP, Event
from oracles.progress import Event as Told
from oracles.progress import ProgressLine

LABEL = "training.kubeflow.org/job-name"


@pytest.fixture
def it(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session on objects in memory, with a history that has only its header."""
    words = Handover(
        cluster="mine", provider="kind", operator="training-operator", scheduler="coscheduling",
        namespace="t", folder=str(tmp_path), history=str(history(tmp_path / "h.jsonl")),
    )  # fmt: skip
    monkeypatch.setattr("chaos.session.provider", lambda name: place.provider)
    place.provider.get = lambda name: place.site.cluster  # type: ignore[attr-defined]
    monkeypatch.setattr(made, "ARRIVES", 0.2)
    found = session.open_session(words)
    session.use(found)
    yield found
    session.use(None)
    found.close()


@contextmanager
def raises(error: type[Exception], match: str | None = None) -> Iterator[None]:
    """As pytest's; the activities that follow are done all the same."""
    with pytest.raises(error, match=match):
        yield
    session.current().failed = ""


def pod(
    place: Place, name: str, uid: str = "u", node: str = "", job: str = "work", phase: str = "",
    **more: Any,
) -> Object:  # fmt: skip
    """A pod of a job, in memory. *more*: ready, started, restarts, going."""
    ready = more.get("ready")
    state = {"running": {"startedAt": more["started"]}} if "started" in more else {}
    status = {"name": "main", "containerID": more.get("container", f"c-{uid}"), "state": state}
    return place.kube.put(
        PODS,
        {
            "metadata": {
                "name": name, "uid": f"{name}-{uid}", "labels": {LABEL: job},
                "resourceVersion": "1",
                **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if more.get("going") else {}),
            },
            "spec": {"nodeName": node} if node else {},
            "status": {
                "phase": phase or ("Running" if node else "Pending"),
                "conditions": [] if ready is None else [{"type": "Ready", "status": str(ready)}],
                "containerStatuses": [{**status, "restartCount": more.get("restarts", 0)}],
            },
        },
        "t",
    )  # fmt: skip


# how often pods were made ------------------------------------------------------------------


def was_made(it: Session, *names_and_uids: str, job: str = "work", t: float = 0.0) -> None:
    """Write into the history that pods were seen: ``work-worker-0/a``, ..."""
    events = []
    for number, each in enumerate(names_and_uids, start=1):
        name, _, uid = each.partition("/")
        labels = {"metadata": {"labels": {LABEL: job, "app": "gang"}}}
        made_of = event(number, "Pod", name, labels, uid=f"{name}-{uid}", rv=number)
        events.append(Event(**{**_fields(made_of), "t": t or float(number)}))
    assert it.stream is not None
    history(it.stream.path, *events)


def _fields(of: Event) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__struct_fields__}


def test_each_pod_was_made_once(it: Session, place: Place) -> None:
    pod(place, "w-0", "a")
    was_made(it, "w-0/a", "w-1/a", "w-0/a")
    was_made(it, "other/a", "other/b", job="other")
    assert probes.each_pod_once(job="work") == 2
    with raises(AssertionError, match="w-0 was made 1 times, not 2"):
        probes.each_pod_once(job="work", times=2)


def test_a_job_that_makes_a_pod_over_and_over(it: Session) -> None:
    was_made(it, "w-0/a", "w-1/a", "w-1/b", "w-1/c")
    with raises(AssertionError, match=r"w-1 was made 3 times, not 1 \(uids w-1-a, w-1-b"):
        probes.each_pod_once(job="work")
    with raises(AssertionError, match="w-1 was made 3 times, not 2"):
        probes.each_pod_once(job="work", again=["w-1"])
    with raises(AssertionError, match="w-1 was made 3 times, not 2"):
        probes.each_pod_once(job="work", again=["w-1"], exact=False)


def test_the_lost_one_is_replaced_once(it: Session) -> None:
    was_made(it, "w-0/a", "w-1/a", "w-1/b")
    assert probes.each_pod_once(job="work", again=["w-1"]) == 2
    with raises(AssertionError, match="w-0 was made 1 times, not 2"):
        probes.each_pod_once(job="work", again=["w-0", "w-1"])
    with raises(AssertionError, match=r"w-2 was made 0 times, not 2 \(uids none\)"):
        probes.each_pod_once(job="work", again=["w-1", "w-2"])
    assert probes.each_pod_once(job="work", again=["w-0", "w-1"], exact=False) == 2


def test_those_of_a_lost_node_are_made_once_more(it: Session, place: Place) -> None:
    with raises(NotReached, match="nobody looked which pods work had"):
        probes.each_pod_once(job="work", again_with="w-0")
    for name, node in (("w-0", "n1"), ("w-1", "n2"), ("w-2", "n1")):
        pod(place, name, "a", node)
    probes.same_pods(job="work")
    was_made(it, "w-0/a", "w-1/a", "w-2/a", "w-0/b", "w-2/b")
    assert probes.each_pod_once(job="work", again_with="w-2") == 3
    with raises(AssertionError, match="w-0 was made 2 times, not 1"):
        probes.each_pod_once(job="work", again_with="w-1")


def test_a_history_that_cannot_tell(it: Session, place: Place) -> None:
    with raises(NotReached, match="no pods of work"):
        probes.each_pod_once(job="work")
    pod(place, "w-0", "b")
    was_made(it, "w-0/a")
    with raises(HarnessError, match="1 of 1 pods are not in the history"):
        probes.each_pod_once(job="work")
    place.kube.delete(PODS, "w-0", "t")
    assert it.stream is not None
    history(it.stream.path, event(9, "Pod", "", source=GAP, type=BEGIN, namespace=""))
    with raises(HarnessError, match="has a gap"):
        probes.each_pod_once(job="work")
    was_made(it, "w-0/c")
    with raises(AssertionError, match="made 2 times"):
        probes.each_pod_once(job="work")


def test_what_had_been_made_when_the_fault_was_there(it: Session) -> None:
    was_made(it, "g-0/a", t=10.0)
    was_made(it, "g-1/a", t=20.0)
    it.since = 15.0
    assert probes.made_before_fault(app="gang", most=1) == ["g-0"]
    it.since = 25.0
    with raises(NotReached, match=r"2 pods had been made .*\(g-0, g-1\), 1 to 1"):
        probes.made_before_fault(app="gang", most=1)
    it.since = 5.0
    with raises(NotReached, match="0 pods"):
        probes.made_before_fault(app="gang")


# the same as before, or anew ---------------------------------------------------------------


def test_pods_that_are_not_the_same(it: Session, place: Place) -> None:
    with raises(NotReached, match="work has no pods"):
        probes.same_pods(job="work")
    pod(place, "w-0", "a", "n1")
    pod(place, "w-1", "a", "n1")
    assert probes.same_pods(job="work") == probes.same_pods(job="work", containers=True)
    pod(place, "w-1", "a", "n1", restarts=1)
    assert probes.same_pods(job="work") == ["w-0", "w-1"]
    with raises(AssertionError, match=r"\('main', 'c-a', 0\).*\('main', 'c-a', 1\)"):
        probes.same_pods(job="work", containers=True)
    assert probes.same_pods(job="work", containers=True, pod="w-0") == ["w-0"]
    pod(place, "w-1", "b", "n1")
    with raises(AssertionError, match="w-1-b"):
        probes.same_pods(job="work")
    pod(place, "w-1", "a", "n1", going=True)
    with raises(AssertionError, match="and later"):
        probes.same_pods(job="work")


def test_a_pod_of_a_silent_node_runs_and_is_not_ready(it: Session, place: Place) -> None:
    pod(place, "w-0", "a", "n1", ready=True)
    pod(place, "w-1", "a", "n2", ready=False)
    assert probes.pods_running(2, job="work", within=0) == 2
    with raises(AssertionError, match="2 pods run and are Ready"):
        probes.pods_running(2, job="work", within=0, ready=True)


def test_pods_of_a_lost_node_run_anew(it: Session, place: Place) -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
    it.since = 1767225630.5  # half a minute later
    pod(place, "w-0", "a", "n1", ready=True, started=early)
    pod(place, "w-1", "a", "n2", ready=True, started=early)
    probes.same_pods(job="work")

    def again() -> list[str]:
        return probes.pods_run_again(2, job="work", of="w-0", within=0)

    with raises(AssertionError, match="2 pods run, w-0 anew"):
        again()
    pod(place, "w-0", "a", "n1", ready=False, started=late)
    with raises(AssertionError):
        again()
    pod(place, "w-0", "a", "n1", ready=True, started=late)
    assert again() == ["w-0"]
    pod(place, "w-0", "b", "n1", ready=True, started=early)
    assert again() == ["w-0"]
    cluster = it.site.cluster
    object.__setattr__(cluster, "capabilities", cluster.capabilities - {Capability.CONTAINERS})
    with raises(NotApplicable):
        again()


def test_pods_that_end_and_one_that_is_gone(it: Session, place: Place) -> None:
    pod(place, "w-0", "a", "n1", phase="Succeeded")
    pod(place, "w-1", "a", "n1", phase="Failed")
    assert probes.pods_succeed(1, job="work", within=0) == 1
    with raises(AssertionError, match="2 pods succeed"):
        probes.pods_succeed(2, job="work", within=0)
    with raises(AssertionError, match="w-0 gone"):
        probes.pod_is_gone("w-0", within=0)
    assert probes.pod_is_gone("w-2", within=0)


def test_a_node_that_tells_of_itself_again(it: Session, place: Place) -> None:
    it.mended = 1767225630.0
    lease = {"metadata": {"name": "n1"}, "spec": {"renewTime": "2026-01-01T00:00:29.000000Z"}}
    from chaos.faults.failover import LEASES

    place.kube.put(LEASES, lease, "kube-node-lease")
    with raises(WaitTimeout, match="a sign of life of n1"):
        probes.node_is_heard("n1", within=0)
    lease["spec"]["renewTime"] = "2026-01-01T00:00:31.000000Z"
    assert probes.node_is_heard("n1", within=0)


# held on the watch -------------------------------------------------------------------------


class Watched:
    """Answers a list with the objects in memory, then a watch with what is to come."""

    def __init__(self, place: Place, what: Resource) -> None:
        self.coming: list[Object | Exception] = []
        self.place = place
        self.what = what
        place.kube.list_with_version = self._list  # type: ignore[attr-defined]
        place.kube.watch = self._watch  # type: ignore[attr-defined]

    def _list(self, what: Resource, namespace: str, **more: Any) -> tuple[list[Object], str]:
        assert what == self.what
        return self.place.kube.find(what, namespace, **more), "1"

    def _watch(self, what: Resource, namespace: str, **more: Any) -> Iterator[Object]:
        if not self.coming:
            time.sleep(0.05)
        while self.coming:
            found = self.coming.pop(0)
            if isinstance(found, Exception):
                raise found
            yield found

    def comes(self, item: Object, type: str = "MODIFIED") -> None:
        """The watch brings it, and the list does not have it yet."""
        item["metadata"].setdefault("resourceVersion", "2")
        self.coming.append({"type": type, "object": item})


def two_jobs(place: Place, *nodes: str) -> None:
    """Two jobs of two pods each, on these nodes."""
    for number, node in enumerate(nodes):
        job = "first" if number < 2 else "second"
        pod(place, f"{job}-{number % 2}", "a", node, job=job)


def whole(**more: Any) -> str:
    return probes.one_gang_whole(["first", "second"], 2, within=0, seconds=0.1, **more)


def test_exactly_one_of_two_gangs(it: Session, place: Place) -> None:
    Watched(place, PODS)
    two_jobs(place, "", "", "n1", "n1")
    assert whole() == "second"


@pytest.mark.parametrize(
    "nodes", [("n1", "", "n1", ""), ("n1", "n1", "n1", "n1"), ("", "", "", ""), ("n1", "n1")]
)
def test_not_one_of_two_gangs(it: Session, place: Place, nodes: tuple[str, ...]) -> None:
    Watched(place, PODS)
    two_jobs(place, *nodes)
    with raises(AssertionError, match="all 2 pods of one of first, second bound"):
        whole()


def test_one_of_two_gangs_and_not_for_long(it: Session, place: Place) -> None:
    watched = Watched(place, PODS)
    two_jobs(place, "n1", "n1", "", "")
    late = pod(place, "second-0", "a", "n1", job="second")
    two_jobs(place, "n1", "n1", "", "")
    watched.comes(late)
    with raises(AssertionError, match=r"first alone was whole; .*first: 2 of 2; second: 1"):
        whole()


def test_pods_that_lose_a_place(it: Session, place: Place) -> None:
    watched = Watched(place, PODS)
    two_jobs(place, "n1", "n1", "n1", "n1")
    assert probes.pods_stay_bound(4, seconds=0.1) == 4
    watched.comes(place.kube.find(PODS, "t")[0], "DELETED")
    with raises(AssertionError, match="3 of 3 pods are bound, not 4"):
        probes.pods_stay_bound(4, seconds=0.1)


def test_pods_that_wait(it: Session, place: Place) -> None:
    watched = Watched(place, PODS)
    with raises(NotReached, match="0 pods exist, 2 were to be held unbound"):
        probes.pods_stay_unbound(seconds=0.1, least=2)
    two_jobs(place, "", "")
    assert probes.pods_stay_unbound(seconds=0.1, least=2) == 2
    two_jobs(place, "", "n1")
    late = place.kube.find(PODS, "t")[1]
    two_jobs(place, "", "")
    watched.comes(late)
    with raises(AssertionError, match="pod first-1 is bound to n1"):
        probes.pods_stay_unbound(seconds=0.1, least=2)


def test_a_pod_that_nobody_was_to_make(it: Session, place: Place) -> None:
    watched = Watched(place, PODS)
    assert probes.pod_stays_away("w-0", seconds=0.1) == 0.1
    watched.comes({"metadata": {"name": "w-0", "uid": "b"}, "spec": {}, "status": {}}, "ADDED")
    with raises(NotReached, match=r"pod w-0 is there \(b\)"):
        probes.pod_stays_away("w-0", seconds=0.1)


def job(condition: str = "Running") -> Object:
    """A job that has a condition."""
    told = [{"type": condition, "status": "True"}]
    return {"metadata": {"name": "work", "resourceVersion": "7"}, "status": {"conditions": told}}


def test_a_job_that_is_looked_at(it: Session, place: Place) -> None:
    watched = Watched(place, PYTORCHJOBS)
    with raises(AssertionError, match="there is no PyTorchJob work"):
        probes.job_never_has("work", "Failed", seconds=0.1)
    place.kube.put(PYTORCHJOBS, job(), "t")
    assert probes.job_never_has("work", "Failed", seconds=0.1)
    watched.comes(job("Failed"))
    with raises(AssertionError, match=r"PyTorchJob work is Failed \(version 7\)"):
        probes.job_never_has("work", "Failed", seconds=0.1)
    watched.comes(job(), "DELETED")
    with raises(AssertionError, match="there is no PyTorchJob work"):
        probes.job_never_has("work", "Failed", seconds=0.1)


def test_nobody_looked_at_a_job(it: Session, place: Place) -> None:
    watched = Watched(place, PYTORCHJOBS)
    place.kube.put(PYTORCHJOBS, job(), "t")
    watched.coming.append(Unreachable("gone"))
    with raises(HarnessError, match="broke after"):
        probes.job_never_has("work", "Failed", seconds=0.1)


def test_what_the_fault_had_to_keep_from_a_job(it: Session, place: Place) -> None:
    watched = Watched(place, PYTORCHJOBS)
    place.kube.put(PYTORCHJOBS, job(), "t")
    assert probes.job_has_not("work", "Succeeded", seconds=0.1)
    watched.comes(job("Succeeded"))
    with raises(NotReached, match="PyTorchJob work is Succeeded"):
        probes.job_has_not("work", "Succeeded", seconds=0.1)


# training ----------------------------------------------------------------------------------


class Lines:
    """What the processes of a job tell."""

    def __init__(self) -> None:
        self.lines: list[ProgressLine] = []

    def steps(self, generation: str, first: float, count: int, world: int = 2) -> None:
        """So many whole steps of a process group, one a second, from a time on."""
        for step in range(count):
            for rank in range(world):
                self.line(
                    "step", first + step, f"w-{rank}", generation=generation, step=step, rank=rank,
                    world=world,
                )  # fmt: skip

    def line(self, told: str, t: float, name: str = "w-0", **more: Any) -> None:
        """One line."""
        uid = more.pop("uid", f"{name}-a")
        self.lines.append(ProgressLine(t, Told(told), name, uid, 7, **more))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """Progress of the session's job."""
    lines = Lines()
    monkeypatch.setattr(training, "_lines", lambda job: lines.lines)
    return lines


def fault(it: Session, begun: float, since: float, mended: float = 0.0) -> None:
    """One was injected."""
    it.begun, it.happened, it.since, it.mended = begun, begun, since, mended


def trains(**more: Any) -> Object:
    return probes.trains("work", within=0, **more)


def test_an_old_group_that_outlives_the_fault_is_no_new_one(it: Session, told: Lines) -> None:
    fault(it, 100.0, 102.0)
    told.steps("old", 95.0, 30)
    assert trains(since_fault=True)["after"] == 3.0, "it may be enough for who asks for no more"
    with raises(AssertionError, match="5 steps, its world formed anew: not within"):
        trains(group="new")
    told.steps("new", 101.0, 4)  # formed before the proof was there
    with raises(AssertionError):
        trains(group="new")
    told.steps("new", 105.0, 5)
    assert trains(group="new") == {"world": 2, "after": 1.0}
    with raises(AssertionError, match="in a world of 3"):
        trains(group="new", world=3)


def test_the_same_group_trains_on(it: Session, told: Lines) -> None:
    fault(it, 100.0, 102.0)
    told.steps("older", 80.0, 5)
    told.steps("old", 95.0, 12)
    with raises(AssertionError, match="its world the same: not within"):
        trains(group="same")
    told.steps("old", 107.0, 2)
    assert trains(group="same", world=2) == {"world": 2, "after": 3.0}
    it.mended = 107.5
    with raises(AssertionError):
        trains(group="same")


def test_a_world_that_was_given_up(it: Session, told: Lines) -> None:
    fault(it, 100.0, 102.0)
    told.steps("old", 95.0, 10)
    told.steps("new", 110.0, 1, world=3)
    with raises(AssertionError, match=r"the world of 2 .* is given up: one of 3 trains 10\.0"):
        trains(group="same")


def test_nobody_trained_before(it: Session, told: Lines) -> None:
    fault(it, 100.0, 102.0)
    told.steps("new", 103.0, 9)
    for group in ("new", "same"):
        with raises(NotReached, match="no process group before"):
            trains(group=group)
    assert trains() == {"world": 2}


def test_steps_from_now_on(it: Session, told: Lines) -> None:
    now = time.time()
    fault(it, now - 50, now - 40)
    told.steps("g", now - 30, 20)
    with raises(AssertionError):
        trains(from_now=True)
    told.steps("g", now + 1, 5)
    assert trains(from_now=True)["world"] == 2


def test_a_worker_process_that_is_started_again(it: Session, place: Place, told: Lines) -> None:
    pod(place, "w-0", "a", "n1")
    fault(it, 100.0, 101.0)
    agent = {"agent_pid": 1, "agent_start": 5}
    with raises(NotReached, match="told of nothing before"):
        probes.worker_restarts("w-0", within=0)
    told.line("start", 50.0, restart=1, **agent)  # an earlier one
    told.line("step", 101.0, restart=1, **agent)
    for other in ({"uid": "w-0-b", **agent}, {"agent_pid": 1, "agent_start": 9}):
        told.line("start", 102.0, restart=2, **other)  # another pod's, another agent's
    with raises(AssertionError, match="1 restarts of the worker process of w-0"):
        probes.worker_restarts("w-0", within=0)
    told.line("start", 103.0, restart=2, **agent)
    assert probes.worker_restarts("w-0", within=0) == 1


def test_somebody_told_of_something(it: Session, told: Lines) -> None:
    fault(it, 100.0, 101.0)
    assert probes.nothing_told("work")
    told.line("start", 102.0, "w-2")
    assert probes.nothing_told("work", pod="w-1")
    assert probes.nothing_told("work", pod="w-2", before_fault=True)
    with raises(NotReached, match="w-2 has told of its start already"):
        probes.nothing_told("work")
    told.line("start", 100.5, "w-2")
    with raises(NotReached, match=r"0\.5 s before the fault"):
        probes.nothing_told("work", pod="w-2", before_fault=True)


JOINED = "INFO [default] Rendezvous'ing worker group\n"


@pytest.mark.parametrize(
    ("log", "restarts", "said"),
    [
        (JOINED, 1, ""),
        (JOINED + "INFO [default] Rendezvous complete for workers. Result:\n", 1, "had completed"),
        ("starting\n", 1, "had not begun a rendezvous; last: starting"),
        (JOINED, 2, "ended 2 times"),
    ],
)
def test_where_an_agent_was_when_it_was_killed(
    it: Session, place: Place, log: str, restarts: int, said: str
) -> None:
    pod(place, "w-1", "a", "n1", restarts=restarts)
    asked = []

    def logs(*words: str, previous: bool) -> str:
        asked.append((*words, previous))
        return log

    place.kube.logs = logs  # type: ignore[attr-defined]
    if not said:
        assert "Rendezvous'ing" in probes.ended_in_rendezvous("w-1", container="main", within=0)
        assert asked == [("t", "w-1", "main", True)]
        return
    with raises(NotReached, match=said):
        probes.ended_in_rendezvous("w-1", container="main", within=0)


def test_an_agent_that_was_not_started_again(it: Session, place: Place) -> None:
    pod(place, "w-1", "a", "n1")
    with raises(WaitTimeout):
        probes.ended_in_rendezvous("w-1", container="main", within=0)


# what stands between, and moments ----------------------------------------------------------


@pytest.mark.parametrize(("acted", "kept", "enough"), [(3, 1, True), (2, 1, False), (3, 0, False)])
def test_what_a_rule_did(it: Session, acted: int, kept: int, enough: bool) -> None:
    rule = object.__new__(ApiTrouble)
    rule.counts = lambda: Counts(9, acted, 0, kept)  # type: ignore[method-assign]
    rule.name, rule.__dict__["rule"] = "API stale", type("R", (), _RULE)()
    it.labels["rule"] = rule
    if enough:
        assert probes.rule_acted("rule", 3, kept=1) == 3
        return
    with raises(NotProven, match=f"acted on {acted} requests, and kept {kept} bytes back"):
        probes.rule_acted("rule", 3, kept=1)


_RULE = {"verbs": (), "path": "/x", "action": "stale"}


class Broken:
    """A fault of which the proof comes late, and knows of an earlier time."""

    name = "broken"
    scope = Scope.NAMESPACE
    namespace = "t"

    def __init__(self) -> None:
        self.at = 0.0

    def inject(self) -> None:
        """Note when."""
        self.at = time.time()

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """After a while."""
        time.sleep(0.2)
        return Proof("it is broken", {"a": "b"}, self.at)

    def recover(self) -> None:
        """Nothing."""


def test_after_a_fault_is_after_its_proof(it: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.safety.check", lambda *_: None)
    broken = Broken()
    common.breaks(lambda: broken, None, "")
    assert it.begun <= it.happened == broken.at
    assert it.since >= broken.at + 0.2


def test_a_fault_at_a_moment(it: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.safety.check", lambda *_: None)
    at = {"moment": "pods_made", "count": 1, "within": 0.1}
    with raises(NotReached, match="did not come within"):
        common.breaks(Broken, at, "")
    was_made(it, "w-0/a", t=time.time() - 1.0)
    found = common.breaks(Broken, at, "")
    assert found["evidence"]["a"] == "b"
    assert "pods made" in found["evidence"]["aimed at"]
    assert 1.0 <= float(found["evidence"]["seconds after it"]) < 2.0
    with raises(NotReached, match=r"came 1\.\d s ago, .* 0\.5 s later at most"):
        common.breaks(Broken, {**at, "late": 0.5}, "")


def test_programs_are_told_one_thing(it: Session, place: Place) -> None:
    assert actions.tell("work") == "finish"
    assert actions.tell("work", order="exit 3 role=worker") == "exit 3 role=worker"
    assert (place.site.cluster.shared / "t" / "work" / "control").read_text() == (  # type: ignore[operator]
        "exit 3 role=worker\n"
    )
