"""Pods that failed because of their node, not of their container."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.faults.base import Fault, Proof
from clusters.cluster import Capability
from clusters.kube import PODS
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from suites import tables
from suites.cast import ANSWER, Cast, failed
from suites.recovery.expiring import ExpirePods

KINDS = ["PyTorchJob", "TFJob"]
#: restart policy -> whether such a pod is replaced; its container got SIGTERM or SIGKILL, so for
#: ExitCode its code is a retryable one
REPLACED = {"Always": True, "OnFailure": True, "ExitCode": True, "Never": False}


@pytest.mark.behaviour("R03")
@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_failed_by_its_kubelet_is_replaced(
    system: SystemUnderTest,
    ns: str,
    expect: Expecting,
    inject: Callable[[Fault], Proof],
    kind: str,
) -> None:
    """The worker's kubelet fails it; whether it is replaced, the job's policy says."""
    system.cluster.require(Capability.CONTAINERS)
    cast = Cast(system, ns, expect)
    for policy in REPLACED:
        cast.add(kind, policy.lower(), restart=policy)
    before = cast.run()
    workers = {policy: f"{policy.lower()}-worker-0" for policy in REPLACED}
    inject(ExpirePods(system.cluster, ns, list(workers.values())))

    wanted = {
        w: tables.anew(before[w]["metadata"]["uid"])
        for policy, w in workers.items()
        if REPLACED[policy]
    }
    with tables.judged() as table:
        late = tables.reach(system.cluster.kube, PODS, ns, wanted, deadline=ANSWER)
        for policy, worker in workers.items():
            job = cast.job(policy.lower())
            if worker in late:
                table.broke(policy, f"its worker is not replaced: {late[worker]}")
            if REPLACED[policy]:
                table.hold(policy, not failed(job), "the job Failed")
        never = [policy.lower() for policy in workers if not REPLACED[policy]]
        for name, seen in cast.reach(dict.fromkeys(never, failed)).items():
            table.broke(name, f"its worker failed for good, and the job is {seen}")
