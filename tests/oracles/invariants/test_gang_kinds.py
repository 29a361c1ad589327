"""All or nothing, as each product tells of its gangs: a good and a bad history of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from oracles import relations
from tests.oracles.build import History, Job, Pod, Thing, broken, each, exercised, names

RULE = "gang-atomicity"
PART = "part of a gang stayed bound"


def _volcano(h: History, size: int) -> list[Pod]:
    spec = {"minMember": size, "queue": "default", "minResources": {"nvidia.com/gpu": str(size)}}
    Thing(h, "PodGroup", "train", spec=spec, status={"phase": "Inqueue"})
    notes = {relations.VOLCANO_GROUP: "train"}
    return [h.pod(f"w{i}", annotations=notes, schedulerName="volcano") for i in range(size)]


def _native(h: History, size: int) -> list[Pod]:
    Thing(h, "PodGroup", "train", spec={"schedulingPolicy": {"gang": {"minCount": size}}})
    member = {"podGroupName": "train"}
    return [h.pod(f"w{i}", schedulingGroup=member) for i in range(size)]


@pytest.mark.parametrize("make", [_volcano, _native])
def test_a_whole_gang_is_fine_and_a_part_is_told(make: Any) -> None:
    h = History()
    h.node("n1", gpus=8)
    pods = make(h, 3)
    each(pods, lambda pod: pod.bind("n1"))
    h.after(60)
    assert names(h) == set()
    assert exercised(h, RULE) == 1

    h = History()
    h.node("n1", gpus=8)
    pods = make(h, 3)
    bound = each(pods[:2], lambda pod: pod.bind("n1"))
    h.after(60)
    assert broken(h) == [(RULE, PART, (2, *bound))]
    assert h.judge().violations[0].subject == "PodGroup t/train"


def _workload(h: History, name: str, owner: Thing | None = None, **pod_sets: int) -> Thing:
    sets = [{"name": role, "count": count} for role, count in pod_sets.items()]
    return Thing(h, "Workload", name, owner=owner, spec={"queueName": "default", "podSets": sets})


def _admit(workload: Thing, *, admitted: bool = True) -> int:
    condition = {"type": "Admitted", "status": str(admitted), "reason": "Admitted"}
    return workload.change(status={"conditions": [condition]})


def _group(h: History, size: int) -> list[Pod]:
    labels = {relations.KUEUE_QUEUE: "default", relations.KUEUE_GROUP: "train"}
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    return [h.pod(f"w{i}", labels=labels, schedulingGates=gates) for i in range(size)]


def _job(h: History, size: int) -> tuple[Job, Thing]:
    job = h.job("train", "TFJob", PS=1, Worker=size - 1)
    return job, _workload(h, "tfjob-train-1a2b3", job, ps=1, worker=size - 1)


def test_kueues_pods_may_come_one_by_one_once_their_workload_is_admitted() -> None:
    h = History()
    h.node("n1", gpus=8)
    pods = _group(h, 3)
    workload = _workload(h, "train", main=3)
    _admit(workload)
    pods[0].bind("n1")
    h.after(100)  # room by quota is not room on a node: nobody promised that here
    pods[1].bind("n1")
    h.after(100)

    assert RULE not in names(h)
    assert exercised(h, RULE) == 1


def test_a_pod_of_kueues_that_is_bound_without_the_admission_is_told() -> None:
    h = History()
    pods = _group(h, 3)
    workload = _workload(h, "train", main=3)
    bound = pods[0].bind("n1")
    h.after(60)

    assert broken(h) == [(RULE, PART, (workload.added, bound))]
    [violation] = h.judge().violations
    assert violation.subject == "Workload t/train"
    assert "bound for 60.0 s without its admission, and its minimum is 3" in violation.message


def test_all_of_kueues_pods_bound_without_the_admission_are_told() -> None:
    h = History()
    pods = _group(h, 2)
    _workload(h, "train", main=2)
    each(pods, lambda pod: pod.bind("n1"))
    h.after(60)

    assert names(h) == {RULE}


def test_a_job_that_kueue_admits_is_a_gang() -> None:
    h = History()
    job, workload = _job(h, 3)
    _admit(workload)
    job.pod("PS", 0, group=False).bind("n1")
    h.after(60)

    assert RULE not in names(h)
    assert exercised(h, RULE) == 1


def test_a_jobs_pods_without_the_admission_are_told() -> None:
    h = History()
    job, workload = _job(h, 3)
    bound = [job.pod("PS", 0, group=False).bind("n1")]
    bound.append(job.pod("Worker", 0, group=False).bind("n1"))
    h.after(60)

    told = [found for found in broken(h) if found[0] == RULE]
    assert told == [(RULE, PART, (workload.added, *bound))]


def test_a_workload_that_is_evicted_may_take_the_pods_grace_to_leave() -> None:
    h = History()
    pods = _group(h, 2)
    workload = _workload(h, "train", main=2)
    _admit(workload)
    each(pods, lambda pod: pod.bind("n1"))
    h.after(10)
    _admit(workload, admitted=False)
    pods[0].gone()
    h.after(30)
    pods[1].gone()
    h.after(60)

    assert RULE not in names(h)


def test_after_an_eviction_the_next_admission_is_asked_for() -> None:
    h = History()
    pods = _group(h, 2)
    workload = _workload(h, "train", main=2)
    _admit(workload)
    each(pods, lambda pod: pod.bind("n1"))
    _admit(workload, admitted=False)
    each(pods, lambda pod: pod.gone())
    [again, _] = _group(h, 2)
    again.bind("n1")
    h.after(60)

    assert RULE in names(h)


def test_that_kueue_is_away_is_no_excuse() -> None:
    h = History()
    kueue = h.pod("kueue", "kueue-system", labels={"app.kubernetes.io/name": "kueue"})
    kueue.run()
    pods = _group(h, 3)
    _workload(h, "train", main=3)
    kueue.gone()
    pods[0].bind("n1")
    h.after(60)

    assert names(h) == {RULE}


def test_a_workload_made_and_deleted_for_ever_is_told() -> None:
    h = History()
    job = h.job("train", "TFJob", Worker=2)
    for _ in range(6):
        workload = _workload(h, "tfjob-train", job, worker=2)
        h.after(2)
        workload.gone()
        h.after(2)

    assert "churn" in names(h)
    [violation] = [v for v in h.judge().violations if v.invariant == "churn"]
    assert violation.behaviour == "G15"
