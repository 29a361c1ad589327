"""What is kept of objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from oracles import relations
from oracles.pruning import Pruner, metadata

META = {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "7"}


def kept(api_version: str, kind: str, **parts: Any) -> dict[str, Any]:
    meta = {**META, **parts.pop("metadata", {})}
    raw = msgspec.json.encode({"apiVersion": api_version, "kind": kind, "metadata": meta, **parts})
    item = Pruner(api_version, kind).prune(raw)
    assert metadata(item).resourceVersion == "7"
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(item))
    return found


def test_metadata() -> None:
    much = {
        "labels": {"a": "b"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "1"},
        "ownerReferences": [{"kind": "PyTorchJob", "name": "j", "uid": "v", "controller": True}],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 3,
        "finalizers": ["x"],
    }
    noise = {"managedFields": [{}], "selfLink": "/x", "generateName": "x-"}
    found = kept("v1", "ConfigMap", metadata={**much, **noise}, data={"secret": "x"})
    much["annotations"] = {"mine": "1"}
    assert found == {"metadata": {**META, **much}}


def test_a_pod_keeps_what_is_judged() -> None:
    container = {
        "name": "pytorch",
        "image": "i",
        "volumeMounts": [{}],
        "resources": {"limits": {relations.GPU: "2"}},
        "env": [
            {"name": "PET_NNODES", "value": "1:3"},
            {"name": "PET_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "TF_CONFIG", "value": "{}"},
            {"name": "PASSWORD", "value": "x"},
        ],
    }
    spec = {
        "nodeName": "n1",
        "schedulerName": "s",
        "nodeSelector": {"gpu": "yes"},
        "tolerations": [{"key": "k"}],
        "priority": 5,
        "priorityClassName": "high",
        "terminationGracePeriodSeconds": 3,
        "schedulingGroup": {"podGroupName": "g"},
    }
    state = {"name": "pytorch", "ready": True, "restartCount": 2, "containerID": "c://1"}
    state["state"] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    condition = {"type": "Ready", "status": "True", "reason": "r", "message": "m"}
    status = {"phase": "Running", "podIP": "10.0.0.1", "hostIP": "172.18.0.2"}
    found = kept(
        "v1",
        "Pod",
        spec={**spec, "containers": [container], "volumes": [{}], "dnsPolicy": "x"},
        status={
            **status,
            "conditions": [{**condition, "lastProbeTime": None}],
            "containerStatuses": [{**state, "imageID": "sha256:1"}],
            "podIPs": [{"ip": "10.0.0.1"}],
            "qosClass": "Burstable",
        },
    )
    assert found == {
        "metadata": META,
        "spec": {
            **spec,
            "containers": [
                {
                    "name": "pytorch",
                    "resources": container["resources"],
                    "env": container["env"][:3],  # type: ignore[index]
                }
            ],
        },
        "status": {**status, "conditions": [condition], "containerStatuses": [state]},
    }
    assert relations.gpus(found) == 2
    assert relations.group_name(found) == "g"


def test_a_node_keeps_what_it_has() -> None:
    status = {"capacity": {"cpu": "2", relations.GPU: "4"}, "allocatable": {relations.GPU: "4"}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    found = kept(
        "v1",
        "Node",
        spec={"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
        status={
            **status,
            "conditions": [{**ready, "lastHeartbeatTime": "2026-01-01T00:00:09Z"}],
            "images": [{"names": ["i"]}],
            "nodeInfo": {"kernelVersion": "6"},
        },
    )
    assert found["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}]
    assert found["status"] == {**status, "conditions": [ready]}


@pytest.mark.parametrize("nothing", [None, {}])
def test_what_is_null_or_empty_is_no_trouble(nothing: object) -> None:
    assert kept("v1", "Pod", spec={"containers": nothing and []}, status={"conditions": None})
    assert kept("v1", "Node", spec=nothing, metadata={"annotations": None})


def test_any_other_kind_is_whole_and_says_its_version() -> None:
    parts = {"spec": {"minMember": 3, "x": [1, {"y": None}]}, "status": {"phase": "Running"}}
    found = kept("scheduling.x-k8s.io/v1alpha1", "PodGroup", **parts)
    assert found == {"metadata": META, "apiVersion": "scheduling.x-k8s.io/v1alpha1", **parts}


def test_what_has_another_form_is_kept_whole() -> None:
    found = kept("v1", "Pod", spec={"containers": "many"}, metadata={"managedFields": [{}]})
    assert found["spec"] == {"containers": "many"}
    assert "managedFields" not in found["metadata"]


def test_a_workload_of_kueue_does_not_repeat_its_pods() -> None:
    pods = {"name": "main", "count": 4, "template": {"spec": {"containers": [{}]}}}
    spec = {"queueName": "default", "priority": 5, "active": True, "podSets": [pods]}
    status = {"conditions": [{"type": "Admitted", "status": "True"}], "admission": {"x": 1}}
    found = kept("kueue.x-k8s.io/v1beta2", "Workload", spec=spec, status=status)
    assert found["spec"] == {**spec, "podSets": [{"name": "main", "count": 4}]}
    assert found["status"] == status
