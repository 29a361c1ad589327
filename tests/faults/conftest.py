"""One real cluster for all tests of faults; after each test it is as it was before."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos import looking, undo
from chaos.injecting import Injector
from chaos.site import Site
from chaos.standing import make_namespace, remove_namespace
from clusters import addons
from clusters.cluster import ClusterSpec
from clusters.errors import ClusterError
from clusters.kube import PODS, Kube, Object
from clusters.parts import pins
from clusters.providers.kind import KindProvider
from clusters.topology import load
from fixtures import workloads
from fixtures.systems import registry
from fixtures.systems.protocols import GangScheduler, Operator
from oracles.recorder import Kind, Recorder

#: name of a cluster that is up, with operator and scheduler, and is used instead of a new one
REUSE = "MUSTER_FAULTS_CLUSTER"
OPERATOR, SCHEDULER = "training-operator", "coscheduling"
#: seconds within which a cluster is as it was before
BACK = 90.0


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """A kind cluster of the topology gpu-2x4, with an operator and a gang scheduler."""
    kind = KindProvider()
    if name := os.environ.get(REUSE):
        undo.mend(Site(kind.describe(name), kind))
        yield Site(kind.get(name), kind)
        return
    name = f"faults-{os.getpid()}"
    kind.sweep()
    spec = ClusterSpec(
        name, load("gpu-2x4"), pins.pins().kubernetes.default, "faults", mounts=addons.mounts()
    )
    try:
        cluster = kind.create(spec)
        addons.install(cluster, operator=OPERATOR, scheduler=SCHEDULER)
        yield Site(cluster, kind)
    finally:
        kind.delete(name)


@pytest.fixture(scope="session")
def kube(site: Site) -> Kube:
    """A client of it."""
    return site.kube


@pytest.fixture(scope="session")
def operator() -> Operator:
    """Its operator."""
    return registry.operator(OPERATOR)


@pytest.fixture(scope="session")
def scheduler() -> GangScheduler:
    """Its scheduler."""
    return registry.scheduler(SCHEDULER)


@pytest.fixture
def space(site: Site) -> Iterator[str]:
    """A namespace, until the test ends."""
    name = make_namespace(site.cluster, "fault", f"faults-{secrets.token_hex(2)}")
    yield name
    remove_namespace(site.cluster, name)


@pytest.fixture
def inject(site: Site, space: str) -> Iterator[Injector]:
    """Injects; when the test is over all is mended, and the cluster as it was before."""
    end = time.monotonic() + BACK
    while wrong := looking.troubles(site):  # what the former test's end set off may be on its way
        assert time.monotonic() < end, "the cluster is not in order:\n" + "\n".join(wrong)
        time.sleep(0.5)
    before = looking.look(site)
    injector = Injector(site)
    yield injector
    injector.close()
    end = time.monotonic() + BACK
    while different := _different(site, before):
        assert time.monotonic() < end, "the cluster is not as before:\n" + "\n".join(different)
        time.sleep(0.5)


def _different(site: Site, before: looking.State) -> list[str]:
    try:
        return looking.differences(before, looking.look(site))
    except ClusterError as error:  # a busy API server; asked again until the deadline
        return [str(error)]


@pytest.fixture
def pods(site: Site, space: str) -> Callable[..., list[Object]]:
    """``pods("a", 2, **template)``: controllable pods that run, on worker nodes."""

    def make(name: str, count: int = 1, *, node: str = "", **more: object) -> list[Object]:
        made = workloads.gang_pods(name, count, **more)  # type: ignore[arg-type]
        for pod in made:
            pod["spec"]["restartPolicy"] = "Always"
            if node:
                pod["spec"]["nodeName"] = node
            site.kube.create(pod, namespace=space)

        def run(items: list[Object]) -> list[Object] | None:
            up = [
                i for i in items if i["status"].get("podIP") and i["status"]["phase"] == "Running"
            ]
            return sorted(up, key=lambda i: i["metadata"]["name"]) if len(up) == count else None

        return site.kube.wait(
            PODS, run, namespace=space, labels=f"app={name}", deadline=60, why=f"pods {name} run"
        )

    return make


@pytest.fixture
def recorder(site: Site, operator: Operator, scheduler: GangScheduler, tmp_path: Path):
    """Records the cluster."""
    group = scheduler.group_resource()
    assert group is not None
    with Recorder(
        Kube(site.cluster.kubeconfig, site.cluster.context), tmp_path / "history.jsonl",
        run="faults", cluster=site.cluster.name, kinds=[Kind(group.api_version, group.kind)],
        progress=site.cluster.shared,
    ) as it:  # fmt: skip
        yield it
