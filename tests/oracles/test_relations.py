"""Facts of the products."""

from __future__ import annotations

import pytest

from oracles import relations


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4", 4),
        (4, 4),
        ("1k", 1000),
        ("2Ki", 2048),
        ("1500m", 1),
        ("1e3", 1000),
        ("2.5", 2),
        ("1Gi", 2**30),
        ("", 0),
        ("x", 0),
        ("xKi", 0),
        (None, 0),
    ],
)
def test_quantities(text: object, number: int) -> None:
    assert relations.quantity(text) == number


def _pod(*containers: dict[str, object], init: tuple[dict[str, object], ...] = ()) -> object:
    return {"spec": {"containers": list(containers), "initContainers": list(init)}}


def _asks(n: int, field: str = "limits", **more: object) -> dict[str, object]:
    return {"resources": {field: {relations.GPU: str(n)}}, **more}


@pytest.mark.parametrize(
    ("pod", "gpus"),
    [
        (_pod(_asks(1), _asks(2, "requests")), 3),
        (_pod(_asks(1), init=(_asks(4), _asks(3))), 4),
        (_pod(_asks(2), init=(_asks(1), _asks(1, restartPolicy="Always"))), 3),
        (_pod({"resources": {}}, {}), 0),
        ({}, 0),
    ],
)
def test_gpus_of_a_pod(pod: relations.Object, gpus: int) -> None:
    assert relations.gpus(pod) == gpus


def test_selectors() -> None:
    assert relations.selector("a=b,c/d=e") == {("a", "b"), ("c/d", "e")}
    for text in ("a!=b", "a in (b)", "a==b", "=b", ""):
        with pytest.raises(ValueError, match="not an equality selector"):
            relations.selector(text)


def test_the_controlling_owner_comes_before_others() -> None:
    references = [{"kind": "A", "uid": "1"}, {"kind": "B", "uid": "2", "controller": True}]
    found = relations.owner({"metadata": {"ownerReferences": references}})
    assert found is not None
    assert found.kind == "B"
    assert relations.owner({}) is None


def test_replica_and_minimum() -> None:
    labels = {relations.REPLICA_TYPE: "PS", relations.REPLICA_INDEX: "3"}
    assert relations.replica(labels) == ("ps", 3)
    assert relations.replica({relations.REPLICA_INDEX: "x"}) == ("", -1)
    assert relations.minimum({"spec": {"minMember": 3}}) == 3
    assert relations.minimum({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}) == 2
    assert relations.minimum({"spec": {"podSets": [{"count": 3}, {"count": 1}]}}) == 4
    assert relations.minimum({}) == 0


@pytest.mark.parametrize(
    ("labels", "annotations", "spec", "group"),
    [
        ({relations.COSCHEDULING_GROUP: "g"}, {}, {"schedulerName": "s"}, "g"),
        ({relations.COSCHEDULING_GROUP: "g"}, {}, {}, ""),
        ({}, {relations.VOLCANO_GROUP: "g"}, {"schedulerName": "volcano"}, "g"),
        ({}, {}, {"schedulingGroup": {"podGroupName": "g"}}, "g"),
        ({relations.KUEUE_QUEUE: "q", relations.KUEUE_GROUP: "g"}, {}, {}, "g"),
        ({relations.KUEUE_GROUP: "g"}, {}, {"schedulerName": "s"}, "g"),
        ({relations.KUEUE_QUEUE: "q"}, {}, {}, ""),
        ({}, {}, {}, ""),
    ],
)
def test_the_group_of_a_pod(
    labels: relations.Object, annotations: relations.Object, spec: relations.Object, group: str
) -> None:
    pod = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    assert relations.group_name(pod) == group


def test_whether_a_workload_is_admitted() -> None:
    def workload(*conditions: tuple[str, str]) -> relations.Object:
        return {"status": {"conditions": [{"type": t, "status": s} for t, s in conditions]}}

    assert relations.admitted(workload(("QuotaReserved", "True"), ("Admitted", "True")))
    assert not relations.admitted(workload(("QuotaReserved", "True"), ("Admitted", "False")))
    assert not relations.admitted({})
