"""Storms: the same seed makes the same one; one that fails is shrunk."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from places import Place

from chaos import session
from chaos.errors import FaultError, NotProven
from chaos.faults.base import Planned, Proof
from chaos.session import Handover
from chaos.storm import blowing, deeds, failing, schedule, storming
from chaos.storm.blowing import Storm
from chaos.storm.deeds import Fleet
from chaos.storm.schedule import DEEDS, ROUGH, Schedule, Strike
from chaos.storm.shrinking import shrink
from chaos.undo import PowerOn
from clusters.errors import ApiError, ClusterError
from clusters.kube import PODS, PYTORCHJOBS
from oracles.errors import UsageError
from oracles.history import Event, Header, write
from oracles.outcome import Outcome
from oracles.relations import JOB_NAME


def test_the_same_seed_makes_the_same_storm(tmp_path: Path) -> None:
    one = schedule.make(7, 20)
    assert one == schedule.make(7, 20)
    assert one != schedule.make(8, 20)
    one.write(tmp_path / "s.json")
    assert Schedule.read(tmp_path / "s.json") == one


def test_a_storm_has_its_time_and_begins_with_jobs() -> None:
    it = schedule.make(1, 20)
    assert [strike.deed for strike in it.strikes[:3]] == ["pytorchjob", "tfjob", "gang"]
    assert [strike.number for strike in it.strikes] == list(range(len(it.strikes)))
    times = [strike.at for strike in it.strikes]
    assert times == sorted(times)
    assert 900 < times[-1] < 20 * 60
    assert {strike.deed for strike in it.strikes} - set(DEEDS) == set()
    assert len({strike.deed for strike in it.strikes}) > 15


def test_all_deeds_come_and_the_rough_ones_can_be_left_out() -> None:
    deeds_of = {s.deed for seed in range(5) for s in schedule.make(seed, 30).strikes}
    assert deeds_of == set(DEEDS)
    soft = {s.deed for seed in range(5) for s in schedule.make(seed, 30, rough=False).strikes}
    assert soft == set(DEEDS) - ROUGH


def test_every_deed_is_known_how_to_be_done() -> None:
    made = {"pytorchjob", "tfjob", "gang", "finish"}
    assert set(deeds._MAKERS) == set(DEEDS) - made


@pytest.mark.parametrize("text", ["", "{}", '{"seed": 1, "seconds": 2, "strikes": [{}]}'])
def test_what_is_no_schedule(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(UsageError):
        Schedule.read(tmp_path / "s.json")
    with pytest.raises(UsageError, match="no readable schedule"):
        Schedule.read(tmp_path / "none.json")


# shrinking ---------------------------------------------------------------------------------


@pytest.mark.parametrize("culprits", [{3}, {0, 19}, {4, 5, 13}, set(range(20))])
def test_only_what_is_needed_stays(culprits: set[int]) -> None:
    found, used = shrink(range(20), lambda part: culprits <= set(part), runs=500)
    assert set(found) == culprits
    assert found == sorted(found)
    assert used < 300


def test_it_asks_no_more_often_than_allowed() -> None:
    asked = []

    def fails(part: Sequence[int]) -> bool:
        asked.append(part)
        return {1, 18} <= set(part)

    found, used = shrink(range(20), fails, runs=6)
    assert used == len(asked) == 6
    assert {1, 18} <= set(found)


def test_random_culprits() -> None:
    rng = random.Random(1)
    for _ in range(20):
        culprits = set(rng.sample(range(30), rng.randint(1, 5)))
        assert set(shrink(range(30), lambda part: culprits <= set(part), runs=999)[0]) == culprits  # noqa: B023


# blowing -----------------------------------------------------------------------------------


class Off(Planned):
    name = "node off"

    def __init__(self, place: Place, trouble: Exception | None = None) -> None:
        super().__init__(place.site)
        self.trouble = trouble

    def look(self) -> list[PowerOn]:
        return [PowerOn(node="n1")]

    def inject(self) -> None:
        self.site.provider.stop_node(self.site.cluster, "n1")

    def proof(self, *, deadline: float = 30.0) -> Proof:
        if self.trouble:
            raise self.trouble
        return Proof("n1 is off", {}, 1.0)


@pytest.fixture
def it(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("chaos.session.provider", lambda name: place.provider)
    place.provider.get = lambda name: place.site.cluster  # type: ignore[attr-defined]
    words = Handover(
        cluster="mine", provider="kind", operator="training-operator", scheduler="coscheduling",
        namespace="t", folder=str(tmp_path),
    )  # fmt: skip
    monkeypatch.setattr(blowing, "GONE", 0.0)
    monkeypatch.setattr(blowing, "AGAIN", 0.05)
    monkeypatch.setattr("chaos.looking.look", lambda site: {})
    return session.open_session(words)


def strikes(*deed: str, lasts: float = 0.0) -> Schedule:
    made = [
        Strike(number=n, at=0.01 * n, deed=d, lasts=lasts)  # type: ignore[arg-type]
        for n, d in enumerate(deed)
    ]
    return Schedule(seed=1, seconds=1, strikes=tuple(made))


def test_what_lasts_is_mended_at_its_time(
    it: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deeds, "fault", lambda *words: Off(place))
    storm = blowing.blow(it, strikes("stop node", "stop node", lasts=0.05), tmp_path)
    assert (storm.done, storm.broken, storm.unsure) == (2, [], [])
    assert place.provider.calls == ["stop n1", "stop n1", "start n1", "start n1"]
    log = (tmp_path / blowing.LOG).read_text()
    assert '"what": "mended"' in log


def test_what_finds_nothing_to_hit_is_missed(
    it: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storm = blowing.blow(it, strikes("delete pod", "finish", "cut pods", "cordon"), tmp_path)
    assert (storm.done, storm.missed) == (0, 4)
    assert storming.of_storm(storm, {}).outcome is Outcome.INCONCLUSIVE
    monkeypatch.setattr(deeds, "fault", lambda *words: Off(place, NotProven("it is on")))
    storm = blowing.blow(it, strikes("stop node"), tmp_path)
    assert storm.missed == 1
    assert place.provider.calls == ["stop n1", "start n1"]


def test_jobs_that_do_not_end_are_a_broken_promise(
    it: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(it: Any, fleet: Fleet, strike: Strike) -> str:
        place.kube.put(PYTORCHJOBS, {"metadata": {"name": "s0"}}, "t")
        fleet.jobs["s0"] = "PyTorchJob"
        return "s0"

    monkeypatch.setattr(deeds, "submit", submit)
    storm = blowing.blow(it, strikes("pytorchjob"), tmp_path)
    assert len(storm.broken) == 1
    assert "PyTorchJob s0 succeeds" in storm.broken[0]
    assert storming.of_storm(storm, {}).outcome is Outcome.FAIL
    assert ("pytorchjobs", "t", "s0") not in place.kube.objects


def test_a_cluster_that_is_not_as_before_is_told(
    it: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = iter([{"n1: Ready": "True"}, {"n1: Ready": "False"}])
    monkeypatch.setattr("chaos.looking.look", lambda site: next(states))
    storm = blowing.blow(it, strikes("finish"), tmp_path)
    assert storm.unsure == ["the cluster is not as before: n1: Ready: 'True' became 'False'"]


def test_whom_a_strike_hits(it: Any, place: Place) -> None:
    def pod(name: str, job: str, **status: Any) -> None:
        state = {"podIP": "10.0.0.1", "containerStatuses": [{"state": {"running": {}}}], **status}
        meta = {"name": name, "labels": {"training.kubeflow.org/job-name": job}}
        spec = {"containers": [{"name": "main"}]}
        place.kube.put(PODS, {"metadata": meta, "spec": spec, "status": state}, "t")

    for name, job in (("b", "s1"), ("a", "s1"), ("c", "s2")):
        pod(name, job)
    pod("d", "s1", podIP="")
    fleet = Fleet(told={"s2"})

    def hit(pick: float) -> str:
        strike = Strike(number=1, at=0, deed="delete pod", pick=pick)
        return deeds.fault(it, fleet, strike)._pod  # type: ignore[attr-defined,no-any-return]

    assert [hit(pick) for pick in (0.0, 0.4, 0.6, 1.0)] == ["a", "a", "b", "b"]
    fleet.told.add("s1")
    with pytest.raises(FaultError, match="no pod to hit"):
        hit(0.5)


def test_storms_that_fail_alike() -> None:
    def result(*reasons: str) -> storming.Result:
        verdict = storming.of_storm(Storm(broken=list(reasons)), {})
        return storming.Result(strikes("gang"), Storm(), verdict, Path("x"))

    one = result("TFJob s3 succeeds within 300 s of calm: not within 300 s; last seen: x")
    other = result("TFJob s17 succeeds within 300 s of calm: not within 300 s; last seen: y")
    assert one.signature == other.signature
    assert not one.signature & result("no services of deleted jobs are left").signature
    assert "chaos storm --replay x/schedule.json" in one.text()


def test_a_storm_that_is_late_mends_before_it_strikes_again(
    it: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what is frozen makes each strike wait, and stays frozen for as long as all of them."""
    made = iter("abc")

    def slow(*words: Any) -> Off:
        time.sleep(0.1)  # longer than to the next strikes, and than it lasts
        fault = Off(place)
        fault.name = next(made)
        return fault

    monkeypatch.setattr(deeds, "fault", slow)
    blowing.blow(it, strikes("freeze etcd", "freeze etcd", "freeze etcd", lasts=0.05), tmp_path)
    log = [json.loads(line) for line in (tmp_path / blowing.LOG).read_text().splitlines()]
    told = [line["said"][-1] for line in log if line["what"] == "mended"]
    order = [line["what"] for line in log if line["what"] in ("done", "mended")]
    assert told == ["a", "b", "c"]
    assert order == ["done", "done", "mended", "done", "mended", "mended"]


@pytest.mark.parametrize("proven", [True, False])
def test_what_does_not_mend_is_tried_again_when_other_things_are_mended(
    it: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proven: bool
) -> None:
    """Nobody reaches the API server while etcd is frozen, for instance."""
    first = Off(place, None if proven else NotProven("nobody answers"))
    other = Off(place)
    heal = type(other).recover
    away: list[Off] = [other]

    def recover(fault: Off) -> None:
        if fault is first and away:
            raise ClusterError("no answer")
        heal(fault)
        if fault is other:
            away.clear()

    monkeypatch.setattr(Off, "recover", recover)
    faults = iter([first, other])
    monkeypatch.setattr(deeds, "fault", lambda *words: next(faults))
    storm = blowing.blow(it, strikes("freeze scheduler", "freeze etcd", lasts=0.02), tmp_path)
    assert storm.unsure == []
    assert it.injector.open == []
    assert storm.done == (2 if proven else 1)


def test_what_never_mends_is_told(
    it: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recover(fault: Off) -> None:
        raise ClusterError("no answer")

    monkeypatch.setattr(Off, "recover", recover)
    monkeypatch.setattr(deeds, "fault", lambda *words: Off(place))
    storm = blowing.blow(it, strikes("stop node", "stop node"), tmp_path)
    assert any("node off is not mended: no answer" in line for line in storm.unsure)
    assert storming.of_storm(storm, {}).outcome is Outcome.INCONCLUSIVE


def test_what_was_not_submitted_is_not_waited_for(
    it: Any, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor left, if it was: a request without an answer may have been heard."""

    def create(body: Any, **more: Any) -> None:
        place.kube.put(PYTORCHJOBS, {"metadata": {"name": body["metadata"]["name"]}}, "t")
        raise ApiError("failed calling webhook", status=500)

    monkeypatch.setattr(place.kube, "create", create, raising=False)
    monkeypatch.setattr(deeds, "shared_folder", lambda *words: tmp_path)
    monkeypatch.setattr(deeds.workloads, "elastic_program_job", lambda name, **more: {
        "metadata": {"name": name}})  # fmt: skip
    storm = blowing.blow(it, strikes("pytorchjob"), tmp_path)
    assert (storm.done, storm.missed, storm.broken) == (0, 1, [])
    assert ("pytorchjobs", "t", "s0") not in place.kube.objects


# failing -----------------------------------------------------------------------------------


def failed_history(path: Path, *, leaving: bool, gone: float | None = None) -> Path:
    """*gone*: seconds between the pod's end and the job's."""
    meta: dict[str, Any] = {"name": "s1-worker-0", "labels": {JOB_NAME: "s1"}}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Failed", "status": "True"}]
    seen = [
        ("Pod", "s1-worker-0", {"metadata": meta, "status": {"phase": "Failed"}}),
        ("Pod", "s2-worker-0", {"metadata": {"deletionTimestamp": "x"}, "status": {}}),
        ("TFJob", "s1", {"metadata": {"name": "s1"}, "status": {"conditions": conditions}}),
    ]
    events = [
        Event(
            seq=n, t=float(n), mono=float(n), source="watch", type="MODIFIED", kind=kind,
            namespace="t", name=name, rv=n, object=item,
        )
        for n, (kind, name, item) in enumerate(seen, 1)
    ]  # fmt: skip
    if gone is not None:
        events[1] = replace(events[0], seq=2, t=2.0, mono=2.0, rv=2, type="DELETED")
        events[2] = replace(events[2], t=2.0 + gone, mono=2.0 + gone)
    versions = {"versions": {"training-operator": "1.8.1"}}
    write(path, Header(run="r", cluster="c", started=0.0, facts=versions), events)
    return path


@pytest.mark.parametrize(
    ("leaving", "kind", "version", "outcome", "said"),
    [
        (True, "TFJob", "1.8.1", "KNOWN", "while its pod was leaving: s1-worker-0"),
        (False, "TFJob", "1.8.1", "FAIL", "no pod of it was leaving: s1-worker-0 Failed"),
        (True, "TFJob", "9.9.9", "FAIL", "while its pod was leaving"),
        (True, "PyTorchJob", "1.8.1", "FAIL", "PyTorchJob s1 is Failed"),
    ],
)
def test_a_job_that_failed_is_told_with_how_its_pods_were(
    tmp_path: Path, leaving: bool, kind: str, version: str, outcome: str, said: str
) -> None:
    path = failed_history(tmp_path / "history.jsonl", leaving=leaving)
    (line,) = failing.told(path, {"s1": kind})
    verdict = storming.of_storm(Storm(done=1, broken=[line]), {"training-operator": version})
    assert verdict.outcome == outcome, line
    assert said in line or kind == "PyTorchJob"


def test_a_known_fault_hides_no_other(tmp_path: Path) -> None:
    path = failed_history(tmp_path / "history.jsonl", leaving=True)
    (line,) = failing.told(path, {"s1": "TFJob"})
    storm = Storm(done=1, broken=[line, "PyTorchJob s2 succeeds within 300 s of calm: no"])
    verdict = storming.of_storm(storm, {"training-operator": "1.8.1"})
    assert verdict.outcome is Outcome.FAIL
    assert verdict.reasons[0].startswith("PyTorchJob s2")


@pytest.mark.parametrize(
    ("gone", "said"),
    [(0.1, "while its pod was leaving: s1-worker-0"), (60.0, "no pod of it was leaving: it had")],
)
def test_a_pod_that_has_just_gone_counts_as_leaving(tmp_path: Path, gone: float, said: str) -> None:
    """The operator's cache is late: what it sees may be gone already."""
    path = failed_history(tmp_path / "history.jsonl", leaving=False, gone=gone)
    (line,) = failing.told(path, {"s1": "TFJob"})
    assert said in line
