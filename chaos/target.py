"""What a fault of a system is about: an operator or a scheduler, where and as what it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaos.errors import FaultError
from chaos.site import Site
from clusters import local
from clusters.cluster import Capability
from clusters.kube import DEPLOYMENTS, PODS, Object, conditions
from fixtures.systems.manifests import SYSTEM
from fixtures.systems.protocols import GangScheduler, Operator

#: label of the pods that kubeadm runs for the control plane
COMPONENT = "component"
#: seconds until a system that was broken is Ready again
BACK = 90.0


@dataclass(frozen=True)
class Target:
    """An operator or a scheduler, as a fault needs it.

    Attributes:
        role: what clocks stand still while it is away.
        part: words in the name of the deployment that is meant; "" for all of the system's.
    """

    role: Literal["operator", "scheduler"]
    name: str
    namespace: str
    part: str = ""

    @classmethod
    def operator(cls, operator: Operator) -> Target:
        """An operator: all of its deployments."""
        return cls("operator", operator.name, operator.namespace)

    @classmethod
    def scheduler(cls, scheduler: GangScheduler) -> Target:
        """A scheduler: the deployment that schedules, not the ones that keep its groups' state."""
        return cls("scheduler", scheduler.name, scheduler.namespace, "scheduler")

    def deployments(self, site: Site) -> list[Object]:
        """What it is deployed as; none for the cluster's own scheduler."""
        found = site.kube.find(DEPLOYMENTS, self.namespace, labels=f"{SYSTEM}={self.name}")
        meant = [item for item in found if self._meant(item["metadata"]["name"])]
        return meant or found

    def local(self, site: Site) -> list[str]:
        """Its processes of this host, by name; none where it runs in pods."""
        if Capability.LOCAL_PROCESSES not in site.cluster.capabilities:
            return []
        found = local.of(site.cluster).names(self.name)
        return [name for name in found if self._meant(name)] or found

    def installed(self, site: Site) -> bool:
        """Whether the harness installed it, so that it can be installed otherwise."""
        return bool(self.local(site) or self.deployments(site))

    def pods(self, site: Site) -> list[Object]:
        """Its pods that are there to stay. Raises FaultError when there are none."""
        found: list[Object] = []
        for item in self.deployments(site):
            found += site.kube.find(PODS, self.namespace, labels=selector(item))
        if not found and self.role == "scheduler":  # the cluster's own
            found = site.kube.find(PODS, "kube-system", labels=f"{COMPONENT}=kube-scheduler")
        found = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        if not found:
            raise FaultError(f"{self.name} has no pods in {self.namespace}")
        return found

    def wait_back(self, site: Site, *, deadline: float = BACK) -> None:
        """Wait until each of its deployments, or the cluster's own scheduler, has a Ready pod.

        Raises:
            WaitTimeout: with what was last seen.
        """
        if names := self.local(site):
            for name in names:
                local.of(site.cluster).wait_ready(name, deadline=deadline)
            return

        def ready(pods: list[Object]) -> bool | None:
            up = [p for p in pods if conditions(p).get("Ready") == "True"]
            return True if any("deletionTimestamp" not in p["metadata"] for p in up) else None

        places = [(self.namespace, selector(item)) for item in self.deployments(site)]
        for namespace, labels in places or [("kube-system", f"{COMPONENT}=kube-scheduler")]:
            site.kube.wait(
                PODS, ready, namespace=namespace, labels=labels, deadline=deadline,
                why=f"{self.name} Ready again",
            )  # fmt: skip

    def _meant(self, name: str) -> bool:
        # scheduler-plugins-controller has the word in its name, too
        return self.part in name and not (self.part and "controller" in name)


def selector(deployment: Object) -> str:
    """The labels of a deployment's pods."""
    chosen = deployment["spec"]["selector"]["matchLabels"]
    return ",".join(f"{key}={value}" for key, value in chosen.items())
