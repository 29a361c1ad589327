"""What the group object of a job asks for: the operator writes it, or Kueue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.topology import GPU
from fixtures.plugin.given import Expecting
from fixtures.workloads import pytorchjob, tfjob
from oracles.errors import NotApplicable
from suites import groups
from suites.stage import Stage

#: seconds within which the operator makes a job's group
MADE = 15.0
#: scheduler -> the queue that its group names when the job names none; the groups of the others
#: have no queue
QUEUES = {"volcano": "default", "kueue": "default"}
#: schedulers whose groups name a priority class
CLASSES = ("volcano", "kueue")


@pytest.mark.behaviour("G09")
@pytest.mark.parametrize("kind", ["TFJob", "PyTorchJob"])
def test_the_group_asks_for_what_all_pods_ask_for(
    stage: Stage, gpus: Callable[[int], int], kind: str, expect: Expecting
) -> None:
    """Its minimum, resources, queue and priority class, of a job that names the class.

    The GPUs stand among the requests, too: of a container with requests training-operator 1.8.1
    adds up only those (pkg/controller.v1/common/util.go: AddResourceList).
    """
    if not stage.scheduler.gang_jobs:
        raise NotApplicable(f"jobs are no gangs under {stage.scheduler.name}")
    gpus(2)
    stage.priorities("Never")
    priority = stage.priority_class("high")
    policy = {"schedulingPolicy": {"priorityClass": priority}}
    job = (
        tfjob("asks", chief=1, ps=1, workers=2, gpus=1, run_policy=policy)
        if kind == "TFJob"
        else pytorchjob("asks", workers=1, gpus=1, run_policy=policy)
    )
    members = 0
    for field in ("tfReplicaSpecs", "pytorchReplicaSpecs"):
        for replica in job["spec"].get(field, {}).values():
            members += replica["replicas"]
            for container in replica["template"]["spec"]["containers"]:
                resources = container["resources"]
                resources["requests"] |= resources.get("limits", {})
    stage.kube.create(job, namespace=stage.ns)
    with expect("the job's group is made"):
        group = groups.wait(
            stage.system, stage.ns, lambda _: True, deadline=MADE, why="the job's group"
        )
    name = stage.scheduler.name
    assert group.min_member == members
    asked = {"cpu": f"{50 * members}m", GPU: "2"}
    assert {key: str(value) for key, value in group.resources.items()} == asked
    assert group.queue == QUEUES.get(name, "")
    assert group.priority_class == (priority if name in CLASSES else "")
