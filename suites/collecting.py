"""Whether a cluster's garbage collector knows the jobs' kinds.

It learns of a new kind when it next looks at what the API server serves, which is every 30 s
(kube-controller-manager, garbage collector, resync period). Jobs that are deleted before leave
their pods behind for up to a minute: measured on an embedded cluster that was 12 s old, where all
children of eight deleted jobs were there 30 s later. That is no fault of an operator.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from clusters.cluster import Capability, Cluster
from clusters.errors import WaitTimeout
from clusters.kube import Kube, Object, Resource, until_true
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.systems.answering import own_namespace
from fixtures.systems.deployments import CRDS
from fixtures.systems.operators import trainer_manifests
from fixtures.workloads import Program, pytorchjob, tfjob, trainjob

CONFIGMAPS = Resource("v1", "configmaps", "ConfigMap")
#: seconds in which it deletes what was left by a job of a kind that it knows: measured 0.1 to 1.2
AT_ONCE = 4.0
#: seconds until it knows: two of its looks, and the time that it takes to read all jobs
KNOWN = 90.0

_PROGRAM = Program(seconds=1)
#: kind -> an object of it, of that name, that makes no pods where none may be made
_OWNERS: dict[str, Callable[[str], Object]] = {
    "PyTorchJob": lambda name: pytorchjob(name, workers=1, program=_PROGRAM),
    "TFJob": lambda name: tfjob(name, ps=0, workers=1, gpus=0, program=_PROGRAM),
    "TrainJob": lambda name: trainjob(
        name, runtime=trainer_manifests.TORCH, runtime_kind=trainer_manifests.RUNTIMES.kind,
        suspend=True,
    ),
    "JobSet": trainer_manifests.jobset,
}  # fmt: skip

#: uids of the definitions of kinds that it is known to know
_known: set[str] = set()


def wait(system: SystemUnderTest) -> None:
    """Wait until it deletes at once what deleted jobs leave; once for each installation.

    Raises:
        ClusterError: it does not: a fault of the cluster.
    """
    cluster = system.cluster
    if Capability.OWN_CLUSTER not in cluster.capabilities:
        return  # somebody's, and not made just now
    kinds = [what for what in system.operator.recorded() if what.kind in _OWNERS]
    uids = _uids(cluster, kinds)
    if uids <= _known:
        return
    with own_namespace(cluster.kube) as namespace:
        none = {"pods": "0", "services": "0"}  # these jobs are to make nothing
        cluster.kube.create(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "nothing"},
                "spec": {"hard": none},
            },
            namespace=namespace,
        )
        for what in kinds:
            until_true(
                lambda what=what: _collects(cluster.kube, namespace, what),  # type: ignore[misc]
                deadline=KNOWN,
                why=f"the garbage collector knows {what.kind}s",
                every=0.1,
            )
    _known.update(uids)


def _uids(cluster: Cluster, kinds: list[Resource]) -> set[str]:
    """Uids of the kinds' definitions."""
    names = [f"{what.plural}.{what.api_version.partition('/')[0]}" for what in kinds]
    found = [cluster.kube.get(CRDS, name) for name in names]
    return {item["metadata"]["uid"] for item in found if item is not None}


def _collects(kube: Kube, namespace: str, what: Resource) -> bool:
    """Whether what belongs to a new job is deleted at once with it."""
    name = f"probe-{secrets.token_hex(3)}"
    owner = kube.create(_OWNERS[what.kind](name), namespace=namespace)
    meta = {
        "name": name,
        "ownerReferences": [
            {
                "apiVersion": what.api_version,
                "kind": what.kind,
                "name": name,
                "uid": owner["metadata"]["uid"],
            }
        ],
    }
    kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, namespace=namespace)
    kube.delete(what, name, namespace)
    try:
        kube.wait(
            CONFIGMAPS, lambda found: None if found else True, namespace=namespace,
            fields=f"metadata.name={name}", deadline=AT_ONCE, why="collected",
        )  # fmt: skip
    except WaitTimeout:
        return False
    return True
