"""Two replicas of a system, of which one leads: the leader dies, the other one takes over."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from chaos import processes
from chaos.errors import FaultError, NotProven
from chaos.faults.base import Proof
from chaos.faults.systems import SystemFault
from chaos.processes import Which
from chaos.site import Site
from chaos.target import Target
from chaos.undo.steps import Delete, Patch, Step
from clusters.cluster import Capability
from clusters.errors import WaitTimeout
from clusters.kube import DEPLOYMENTS, PODS, Object, Resource, conditions
from oracles.errors import NotApplicable

LEASES = Resource("coordination.k8s.io/v1", "leases", "Lease")
ROLES = Resource("rbac.authorization.k8s.io/v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding")
#: name of what lets both replicas hold the lease
ACCESS = "muster-leases"
#: seconds until two replicas are Ready, and until the second one leads: a lease lasts 15 s
TWO, TAKEN_OVER = 90.0, 60.0


@dataclass(frozen=True)
class Election:
    """How a product elects a leader: the flags that switch it on, and the lease's name."""

    flags: tuple[str, ...]
    lease: str


#: a kube-scheduler, which coscheduling's is, has its lease where its flags say, which count before
#: its file (Kubernetes 1.28, cmd/kube-scheduler/app/options: ApplyLeaderElectionTo)
_SCHEDULER_LEASE = "muster-scheduler"
#: training-operator 1.8.1, cmd/training-operator.v1/main.go (the lease lies in its own namespace)
ELECTIONS = {
    "training-operator": Election(("--leader-elect",), "1ca428e5.training-operator.kubeflow.org"),
    "coscheduling": Election(
        (
            "--leader-elect=true",
            f"--leader-elect-resource-name={_SCHEDULER_LEASE}",
            "--leader-elect-resource-namespace={namespace}",
        ),
        _SCHEDULER_LEASE,
    ),
}


class FailOver(SystemFault):
    """Run two replicas with leader election, then kill the one that leads.

    Their own rights do not reach to leases there (manifests of training-operator 1.8.1 and
    coscheduling 0.28.9), so a role is added for as long as this lasts.
    """

    word = "fail over"

    def __init__(self, site: Site, target: Target) -> None:
        super().__init__(site, target)
        site.cluster.require(Capability.NODE_EXEC, Capability.OWN_CLUSTER)
        if target.name not in ELECTIONS:
            raise NotApplicable(f"{target.name} is not known to elect a leader")
        self._election = ELECTIONS[target.name]
        self._flags = [f.format(namespace=target.namespace) for f in self._election.flags]
        self._leader = ""

    def look(self) -> Sequence[Step]:
        """Its deployment; its former form is written back, and the role removed."""
        found = self.target.deployments(self.site)
        if len(found) != 1:
            raise FaultError(f"{self.about} has {len(found)} deployments, one was expected")
        (self._deployment,) = found
        spec = self._deployment["spec"]
        before = {
            "replicas": spec.get("replicas", 1),
            "strategy": spec.get("strategy"),
            "template": {"spec": {"containers": spec["template"]["spec"]["containers"]}},
        }
        name, space = self._deployment["metadata"]["name"], self.target.namespace
        return [
            Patch.of(DEPLOYMENTS, name, {"spec": before}, space),
            Delete.of(BINDINGS, ACCESS, space),
            Delete.of(ROLES, ACCESS, space),
            Delete.of(LEASES, self._election.lease, space),
        ]

    def inject(self) -> None:
        """Make it two, wait for a leader, kill that. Raises FaultError when none leads."""
        self.plan()
        kube, space = self.site.kube, self.target.namespace
        account = self._deployment["spec"]["template"]["spec"].get("serviceAccountName", "default")
        kube.apply(*_access(space, account))
        containers = [dict(c) for c in self._deployment["spec"]["template"]["spec"]["containers"]]
        containers[0]["args"] = [*containers[0].get("args", []), *self._flags]
        body = {"spec": {"replicas": 2, "template": {"spec": {"containers": containers}}}}
        kube.patch(DEPLOYMENTS, self._deployment["metadata"]["name"], body, space)
        try:
            pods = kube.wait(
                PODS, self._two_ready, namespace=space, deadline=TWO, why="two replicas Ready"
            )
            self._leader = self._holder(not_this="", deadline=TWO)
        except WaitTimeout as error:
            raise FaultError(f"{self.about} has no two replicas with a leader: {error}") from error
        leading = next((p for p in pods if self._leader.startswith(p["metadata"]["name"])), None)
        if leading is None:
            raise FaultError(f"{self._leader} leads, which is none of the two replicas")
        name = leading["spec"]["containers"][0]["name"]
        _, chosen = processes.find(self.site, leading, name, Which.MAIN)
        self._done = time.time()
        processes.send(self.site, leading["spec"]["nodeName"], chosen, signal.SIGKILL)

    def proof(self, *, deadline: float = TAKEN_OVER) -> Proof:
        """Somebody else holds the lease. Raises NotProven."""
        try:
            now = self._holder(not_this=self._leader, deadline=max(deadline, TAKEN_OVER))
        except WaitTimeout as error:
            raise NotProven(f"{self._leader} was killed, but nobody took over: {error}") from error
        return Proof(
            f"another replica of {self.about} leads",
            {
                "leader before": self._leader,
                "leader now": now,
                "taken over after": f"{time.time() - self._done:.1f} s",
            },
            self._done,
        )

    def _two_ready(self, pods: list[Object]) -> list[Object] | None:
        ready = [
            pod
            for pod in pods
            if conditions(pod).get("Ready") == "True"
            and "deletionTimestamp" not in pod["metadata"]
            and self._flags[0] in (pod["spec"]["containers"][0].get("args") or [])
        ]
        return ready if len(ready) == 2 else None

    def _holder(self, *, not_this: str, deadline: float) -> str:
        def other(leases: list[Object]) -> str | None:
            for lease in leases:
                holder = str(lease["spec"].get("holderIdentity") or "")
                if holder and holder != not_this:
                    return holder
            return None

        return self.site.kube.wait(
            LEASES, other, namespace=self.target.namespace, deadline=deadline,
            fields=f"metadata.name={self._election.lease}", why="a leader",
        )  # fmt: skip


def _access(namespace: str, account: str) -> tuple[Object, Object]:
    meta = {"name": ACCESS, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    verbs = ["get", "list", "watch", "create", "update", "patch"]
    return (
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": meta,
            "rules": [
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}
            ],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": ACCESS},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    )
