"""Gangs of which a part is bound, and groups that come and go."""

from __future__ import annotations

import pytest

from clusters.kube import PODS
from clusters.resources import is_bound
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.workloads import Program, gang_pods, pytorchjob
from suites import pods
from tests.proofs import breaking

pytestmark = pytest.mark.proof


@pytest.mark.proves("G16", by="a pod of a waiting gang was bound by hand", rule="gang-atomicity")
def test_part_of_a_gang_is_bound(system: SystemUnderTest, ns: str) -> None:
    kube, scheduler = system.cluster.kube, system.scheduler
    kube.create(scheduler.group("gang", ns, 3))
    for pod in gang_pods("gang", 2):  # the third one never comes
        scheduler.join(pod, "gang")
        kube.create(pod, namespace=ns)
    pods.wait_created(kube, ns, 2)
    node, _ = breaking.gpu_node(kube)
    breaking.bind(kube, ns, "gang-0", node)
    breaking.hold(
        kube, PODS, ns, breaking.grace(system, "gang_partial") + breaking.OVER,
        lambda found: sum(map(is_bound, found)) == 1, "one of a gang of three is bound",
    )  # fmt: skip


@pytest.mark.proves("G15", by="a job's group was deleted and made again in a loop", rule="churn")
def test_a_group_comes_and_goes(system: SystemUnderTest, ns: str) -> None:
    kube, what = system.cluster.kube, system.scheduler.group_resource()
    assert what is not None
    program = Program(seconds=600)
    kube.create(pytorchjob("job", master=False, workers=2, program=program), namespace=ns)
    pods.wait_bound(kube, ns, 2, deadline=pods.ADMISSION)
    (group,) = kube.find(what, ns)
    meta = group["metadata"]
    again = {
        "apiVersion": what.api_version,
        "kind": what.kind,
        "metadata": {"name": meta["name"], "ownerReferences": meta["ownerReferences"]},
        "spec": group["spec"],
    }
    times = int(breaking.grace(system, "churn_times")) + 2
    for _ in range(times):
        kube.delete(what, meta["name"], ns)
        kube.apply(again, namespace=ns)  # the operator may have been quicker
