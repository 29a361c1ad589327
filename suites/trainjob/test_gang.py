"""TrainJobs whose runtime asks for a group: ``podGroupPolicy.coscheduling``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.cluster import Capability
from clusters.kube import PODS, Object
from clusters.topology import GPU
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting, Measuring
from fixtures.systems import manifests
from fixtures.systems.errors import SystemNotReady
from fixtures.systems.operators import trainer_manifests
from suites import groups, pods, promises
from suites.pods import ADMISSION, HOLD
from suites.trainjob.stage import KIND, TrainJobs, of

pytestmark = pytest.mark.jobs(KIND)

#: seconds within which the operator makes a job's group
MADE = 15.0
#: what pods of ours ask for besides GPUs, in thousandths of a CPU
CPU = 50


@pytest.mark.behaviour("G01", case="TrainJob")
def test_a_trainjob_with_room_is_bound_whole(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    trainjobs: TrainJobs,
    expect: Expecting,
) -> None:
    """Its group asks for as many pods as it has nodes, and is told of as scheduled."""
    promises.require_gang_jobs(system.scheduler)
    gpus(4)
    trainjobs.add("gang", nodes=4, gpus=1)
    with expect("all 4 pods are bound"):
        pods.wait_bound(trainjobs.kube, ns, 4, labels=of("gang"), deadline=ADMISSION)
    groups.asks_for_all(system, ns, 4)
    with expect("its group is reported as scheduled"):
        groups.wait(
            system, ns, lambda group: group.admitted is True, deadline=ADMISSION,
            why="the job's group scheduled",
        )  # fmt: skip


@pytest.mark.behaviour("G04", case="TrainJob")
def test_too_little_room_binds_no_node_then_all(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    trainjobs: TrainJobs,
    expect: Expecting,
    measure: Measuring,
) -> None:
    """One GPU less than its nodes need: nobody is bound until it is free."""
    promises.require_gang_jobs(system.scheduler)
    total = system.cluster.topology.gpus
    gpus(total)
    kube = system.cluster.kube
    blockers = pods.block_gpus(kube, ns, 2)
    nodes = total - 1
    trainjobs.add("gang", nodes=nodes, gpus=1)
    members = of("gang")
    pods.wait_created(kube, ns, nodes, labels=members)
    held = pods.hold_unbound(kube, ns, labels=members, seconds=HOLD, least=nodes)
    measure("held unbound", held, "pods")
    before = {p["metadata"]["uid"] for p in kube.find(PODS, ns, labels=members)}
    for name in blockers:
        kube.delete(PODS, name, ns, grace=0)
    with expect(f"all {nodes} pods are bound once the room is free"):
        bound = pods.wait_bound(kube, ns, nodes, labels=members, deadline=ADMISSION)
    assert before == {pod["metadata"]["uid"] for pod in bound}, "members were made again"


@pytest.mark.behaviour("G09")
@pytest.mark.parametrize(
    "own", [False, True], ids=["TrainJob, as its runtime says", "TrainJob, resources of its own"]
)
def test_the_group_of_a_trainjob_asks_for_what_its_pods_ask_for(
    system: SystemUnderTest,
    ns: str,
    gpus: Callable[[int], int],
    trainjobs: TrainJobs,
    expect: Expecting,
    own: bool,
) -> None:
    """kubeflow/trainer#2525: what a TrainJob itself says of each node's resources is left out.

    The GPUs stand among the requests, too: only those are added up (k8s.io/component-helpers,
    PodRequests), and nobody makes requests of the limits in a template.
    """
    promises.require_gang_jobs(system.scheduler)
    gpus(2)
    if own:
        asks = {"requests": {"cpu": f"{CPU}m", GPU: 1}, "limits": {GPU: 1}}
        trainer = {"numNodes": 2, "numProcPerNode": 1, "resourcesPerNode": asks}
        trainjobs.add("asks", nodes=2, spec={"trainer": trainer}, node_selector={"gpu": "yes"})
    else:
        trainjobs.add("asks", nodes=2, gpus=1, alter=_request_limits)
    with expect("all 2 pods are bound"):
        bound = pods.wait_bound(trainjobs.kube, ns, 2, labels=of("asks"), deadline=ADMISSION)
    assert sum(map(pods.gpus_of, bound)) == 2, "its pods do not ask for a GPU each"
    with expect("the job's group is made"):
        group = groups.wait(system, ns, lambda _: True, deadline=MADE, why="the job's group")
    found = {key: str(value) for key, value in group.resources.items()}
    assert found == {"cpu": f"{2 * CPU}m", GPU: "2"}, (
        f"its pods ask for {2 * CPU}m of CPU and 2 GPUs, its group for {found}"
    )


def _request_limits(runtime: Object) -> None:
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            resources = container["resources"]
            resources["requests"] |= resources.get("limits", {})


@pytest.mark.exclusive
@pytest.mark.behaviour("G01", case="TrainJob, with no more rights than its manifests give")
def test_the_rights_of_the_manifests_are_enough_for_gangs(system: SystemUnderTest) -> None:
    """kubeflow/trainer#2787: it watches what it may not read, and never begins with TrainJobs.

    Every other test has the rights added (fixtures/systems/operators/trainer_manifests.py).
    """
    promises.require_gang_jobs(system.scheduler)
    system.cluster.require(Capability.OWN_CLUSTER)
    kube, operator = system.cluster.kube, system.operator
    added = manifests.labelled(trainer_manifests.rights(), operator.name)
    for item in added:
        what = kube.resource(item["apiVersion"], item["kind"])
        kube.delete(what, item["metadata"]["name"])
    try:
        operator.restart(system.cluster)
    except SystemNotReady as error:
        why = str(error).partition("\n")[0]
        raise AssertionError(f"started with the rights of its manifests, {why}") from None
    finally:
        kube.apply(*added)
        operator.restart(system.cluster)
