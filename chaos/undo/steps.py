"""What undoes a fault, as data: written to disk before the fault, and done by whoever comes next.

Every step can be done twice, and done when there is nothing to undo: the object may be gone, the
node may have been restarted, the process may have ended.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Annotated, Any, Literal

import urllib3
from pydantic import Field

from chaos.site import Site
from clusters import deviceplugin, local
from clusters.cluster import Capability
from clusters.deviceplugin import Offer
from clusters.errors import ApiError, ClusterError
from clusters.kube import Resource
from clusters.processes import start_of
from oracles.strict import Strict

#: seconds that a script on a node may take
SCRIPT = 60.0


class OnNode(Strict):
    """A shell script on a node: rules removed, a process continued, a unit stopped.

    Attributes:
        only_if_on: the node may be off, and what is to be undone is gone with its power.
    """

    do: Literal["on node"] = "on node"
    node: str
    script: str
    only_if_on: bool = True

    def run(self, site: Site) -> None:
        """Do it."""
        if self.only_if_on and not site.answers(self.node):
            return
        site.on(self.node, self.script, timeout=SCRIPT)


class PowerOn(Strict):
    """Start a node that was stopped; over when it is Ready with its GPUs."""

    do: Literal["power on"] = "power on"
    node: str

    def run(self, site: Site) -> None:
        """Do it."""
        site.cluster.require(Capability.NODE_POWER)
        site.provider.start_node(site.cluster, self.node)


class StartKubelet(Strict):
    """Start a node's kubelet; over when it has registered and the GPUs are back."""

    do: Literal["start kubelet"] = "start kubelet"
    node: str

    def run(self, site: Site) -> None:
        """Do it."""
        site.provider.restart_kubelet(site.cluster, self.node)


class Patch(Strict):
    """Write an object's former values back.

    Attributes:
        body: a dict is a merge patch, a list a JSON patch.
        uid: only the object that has it: another one of its name was never changed.
    """

    do: Literal["patch"] = "patch"
    api_version: str
    plural: str
    kind: str
    name: str
    namespace: str | None = None
    body: dict[str, Any] | list[Any]
    subresource: str = ""
    uid: str = ""

    @classmethod
    def of(
        cls,
        what: Resource,
        name: str,
        body: dict[str, Any] | list[Any],
        namespace: str | None = None,
        *,
        subresource: str = "",
        uid: str = "",
    ) -> Patch:
        """For an object of a kind."""
        return cls(
            api_version=what.api_version, plural=what.plural, kind=what.kind, name=name,
            namespace=namespace, body=body, subresource=subresource, uid=uid,
        )  # fmt: skip

    def run(self, site: Site) -> None:
        """Do it, if the object is still there."""
        what = _resource(self.api_version, self.plural, self.kind, self.namespace)
        if self.uid:
            found = site.kube.get(what, self.name, self.namespace)
            if found is None or found["metadata"].get("uid") != self.uid:
                return
        try:
            site.kube.patch(
                what, self.name, self.body, self.namespace, subresource=self.subresource
            )
        except ApiError as error:
            if error.status != 404:
                raise


class OfferGpus(Strict):
    """Let a node's device plugin offer its former devices."""

    do: Literal["offer GPUs"] = "offer GPUs"
    node: str
    count: int
    unhealthy: tuple[int, ...]

    def run(self, site: Site) -> None:
        """Do it; a node that is off finds it when it is on again."""
        deviceplugin.change(site.cluster, self.node, Offer(self.count, self.unhealthy))


class Delete(Strict):
    """Remove an object that was made for the fault."""

    do: Literal["delete"] = "delete"
    api_version: str
    plural: str
    kind: str
    name: str
    namespace: str | None = None
    grace: int | None = None

    @classmethod
    def of(
        cls, what: Resource, name: str, namespace: str | None = None, *, grace: int | None = None
    ) -> Delete:
        """For an object of a kind."""
        return cls(
            api_version=what.api_version, plural=what.plural, kind=what.kind, name=name,
            namespace=namespace, grace=grace,
        )  # fmt: skip

    def run(self, site: Site) -> None:
        """Do it, if it is still there."""
        what = _resource(self.api_version, self.plural, self.kind, self.namespace)
        site.kube.delete(what, self.name, self.namespace, grace=self.grace)


class InPod(Strict):
    """A command in a container of a pod, if that very pod still runs."""

    do: Literal["in pod"] = "in pod"
    namespace: str
    pod: str
    uid: str
    container: str
    command: list[str]

    def run(self, site: Site) -> None:
        """Do it."""
        pods = _resource("v1", "pods", "Pod", self.namespace)
        found = site.kube.get(pods, self.pod, self.namespace)
        if found is None or found["metadata"].get("uid") != self.uid:
            return
        if found.get("status", {}).get("phase") != "Running":
            return
        done = site.kube.exec(self.namespace, self.pod, self.command, container=self.container)
        if done.code:
            raise ClusterError(
                f"{self.command[0]} in {self.namespace}/{self.pod}: exit code {done.code}:"
                f" {done.stderr.strip()[-300:]}"
            )


class Continue(Strict):
    """SIGCONT to a process of this host, if it is still the same one."""

    do: Literal["continue"] = "continue"
    pid: int
    start: int

    def run(self, site: Site) -> None:
        """Do it."""
        if start_of(self.pid) == self.start:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)


class StartLocal(Strict):
    """Start processes of this host that belong to the cluster, those that do not run."""

    do: Literal["start local"] = "start local"
    names: tuple[str, ...]

    def run(self, site: Site) -> None:
        """Do it; over when they are ready."""
        there = local.of(site.cluster)
        for name in self.names:
            state = there.state(name)
            if state is not None and state.pid is None:
                there.launch(state.process)
        for name in self.names:
            there.wait_ready(name)


class ForgetLocal(Strict):
    """End a process of this host that was started for a fault."""

    do: Literal["forget local"] = "forget local"
    name: str

    def run(self, site: Site) -> None:
        """Do it."""
        local.of(site.cluster).forget(self.name)


class Ask(Strict):
    """A request to a server on this host; no error when it is not there any more."""

    do: Literal["ask"] = "ask"
    method: str
    url: str

    def run(self, site: Site) -> None:
        """Do it."""
        with suppress(urllib3.exceptions.HTTPError):
            urllib3.request(self.method, self.url, timeout=5.0, retries=False)


class Reinstall(Strict):
    """Install the operator or the scheduler as it was before.

    Attributes:
        operator, scheduler: as on the command line, ``NAME[:VERSION]``; the operator is installed
            for the scheduler. "" leaves one of them as it is.
    """

    do: Literal["reinstall"] = "reinstall"
    operator: str = ""
    scheduler: str
    which: Literal["operator", "scheduler"]

    def run(self, site: Site) -> None:
        """Do it; over when it answers."""
        from fixtures.systems import registry

        gangs = registry.scheduler(self.scheduler)
        if self.which == "scheduler":
            gangs.install(site.cluster)
        else:
            registry.operator(self.operator).install(site.cluster, gangs)


Step = Annotated[
    OnNode
    | PowerOn
    | StartKubelet
    | Patch
    | OfferGpus
    | Delete
    | InPod
    | Continue
    | StartLocal
    | ForgetLocal
    | Ask
    | Reinstall,
    Field(discriminator="do"),
]


def _resource(api_version: str, plural: str, kind: str, namespace: str | None) -> Resource:
    return Resource(api_version, plural, kind, namespaced=namespace is not None)
