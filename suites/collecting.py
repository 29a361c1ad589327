"""Whether a cluster's garbage collector knows the jobs' kinds.

It learns of a new kind when it next looks at what the API server serves, which is every 30 s
(kube-controller-manager, garbage collector, resync period). Jobs that are deleted before leave
their pods behind for up to a minute: measured on an embedded cluster that was 12 s old, where all
children of eight deleted jobs were there 30 s later. That is no fault of an operator.
"""

from __future__ import annotations

import secrets

from clusters.cluster import Capability, Cluster
from clusters.errors import WaitTimeout
from clusters.kube import Kube, Resource, until_true
from fixtures.systems.answering import own_namespace
from fixtures.systems.deployments import CRDS
from fixtures.workloads import Program, pytorchjob, tfjob
from suites.cast import KINDS

CONFIGMAPS = Resource("v1", "configmaps", "ConfigMap")
#: seconds in which it deletes what was left by a job of a kind that it knows: measured 0.1 to 1.2
AT_ONCE = 4.0
#: seconds until it knows: two of its looks, and the time that it takes to read all jobs
KNOWN = 90.0

#: uids of the definitions of kinds that it is known to know
_known: set[str] = set()


def wait(cluster: Cluster) -> None:
    """Wait until it deletes at once what deleted jobs leave; once for each installation.

    Raises:
        ClusterError: it does not: a fault of the cluster.
    """
    if Capability.OWN_CLUSTER not in cluster.capabilities:
        return  # somebody's, and not made just now
    found = [cluster.kube.get(CRDS, f"{what.plural}.kubeflow.org") for what in KINDS.values()]
    uids = {item["metadata"]["uid"] for item in found if item is not None}
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
        for kind in KINDS:
            until_true(
                lambda kind=kind: _collects(cluster.kube, namespace, kind),  # type: ignore[misc]
                deadline=KNOWN,
                why=f"the garbage collector knows {kind}s",
                every=0.1,
            )
    _known.update(uids)


def _collects(kube: Kube, namespace: str, kind: str) -> bool:
    """Whether what belongs to a new job is deleted at once with it."""
    name = f"probe-{secrets.token_hex(3)}"
    program = Program(seconds=1)
    job = (
        pytorchjob(name, workers=1, program=program)
        if kind == "PyTorchJob"
        else tfjob(name, ps=0, workers=1, gpus=0, program=program)
    )
    what = KINDS[kind]
    owner = kube.create(job, namespace=namespace)
    meta = {
        "name": name,
        "ownerReferences": [
            {
                "apiVersion": what.api_version,
                "kind": kind,
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
