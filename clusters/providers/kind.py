"""Clusters of kind: real nodes in containers of the Docker engine."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import yaml

from clusters import cache, engine, fakegpus, ledger, parts, podnetwork
from clusters.cluster import Capability, Cluster, ClusterSpec, no_such_cluster
from clusters.command import run, run_logged
from clusters.engine import Engine
from clusters.errors import ClusterError, CommandError, TopologyError
from clusters.kube import NODES, SERVICES, Object, conditions, epoch, until_true
from clusters.progress import say, step
from clusters.providers import kindconfig
from clusters.topology import Node, load

#: kind's own label on its containers; the value is the cluster's name there
LABEL = "io.x-k8s.kind.cluster"
#: what tells our clusters from other kind clusters of the host, also when the ledger is lost
PREFIX = "muster-"
#: seconds; measured 19-30 on 2 cores
CREATE_TIMEOUT = 300.0
_IMPORT = 'docker exec -i "$0" ctr -n k8s.io images import --digests - <"$1"'


class KindProvider:
    """See :class:`clusters.cluster.ClusterProvider`."""

    name = "kind"
    capabilities = frozenset(Capability)

    def create(self, spec: ClusterSpec) -> Cluster:
        """Create it; on failure, what there is of it is removed and the reason told."""
        docker = engine.ensure()
        if spec.name in self.names():
            raise ClusterError(
                f"a cluster named {spec.name!r} is there already",
                hint=f"python -m clusters down {spec.name}, or use another name",
            )
        image = parts.node_image(spec.kubernetes)
        # pods wait for their image in the nodes: it is there before the first node is
        parts.base_image()
        ledger.write(
            spec.name, provider=self.name, kubernetes=spec.kubernetes,
            topology=spec.topology.name, run=spec.run,
        )  # fmt: skip
        folder = ledger.folder(spec.name)
        (folder / "shared").mkdir(exist_ok=True)
        (folder / "topology.yaml").write_text(yaml.safe_dump(spec.topology.model_dump()))
        config = kindconfig.render(spec, image, folder / "shared")
        (folder / "kind.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        try:
            with step(f"create cluster {spec.topology.name} {spec.kubernetes}") as detail:
                detail("kind create")
                self._kind_create(docker, spec.name, folder)
                cluster = self._cluster(docker, spec.name)
                detail("pod network")
                self._network(docker, cluster)
                detail("nodes Ready")
                self._wait_nodes(cluster)
                fakegpus.restore(cluster.kube, self._topology_nodes(cluster))
                detail("DNS")
                self._wait_dns(docker, cluster)
        except BaseException:
            say(f"removing what there is of cluster {spec.name}")
            with suppress(ClusterError, CommandError):
                self.delete(spec.name)
            raise
        ledger.update(spec.name, ready=True)
        return cluster

    def get(self, name: str) -> Cluster:
        """A cluster that is up."""
        docker = engine.find()
        known = self.names()
        if docker is None or name not in known:
            raise no_such_cluster(name, known)
        return self._cluster(docker, name)

    def names(self) -> list[str]:
        """Names of our clusters, half-made ones included."""
        docker = engine.find()
        containers: set[str] = set()
        if docker is not None:
            text = docker.docker(
                "ps", "-a", "--filter", f"label={LABEL}", "--format", f'{{{{.Label "{LABEL}"}}}}'
            )
            containers = {n.removeprefix(PREFIX) for n in text.split() if n.startswith(PREFIX)}
        written = {e.name for e in ledger.entries() if e.provider == self.name}
        return sorted(containers | written)

    def delete(self, name: str) -> None:
        """Remove its containers, volumes and folder."""
        docker = engine.find()
        if docker is not None:
            ids = docker.docker("ps", "-aq", "--filter", f"label={LABEL}={PREFIX}{name}").split()
            if ids:
                # not `kind delete`: it asks the nodes first, and they may be broken
                docker.docker("rm", "-f", "-v", *ids, timeout=180)
        ledger.forget(name)

    def load_image(self, cluster: Cluster, references: Iterable[str]) -> None:
        """Stream images from the engine into every node's containerd."""
        docker = engine.ensure()
        wanted = list(references)
        for reference in wanted:
            if not docker.has_image(reference):
                raise ClusterError(
                    f"the image {reference} is not in the Docker engine",
                    hint=f"docker pull or docker load it (DOCKER_HOST={docker.host})",
                )
        nodes = list(cluster.container_names.values())
        missing = [r for r in wanted if not all(self._has_image(docker, n, r) for n in nodes)]
        if not missing:
            return
        work = cache.root() / "work"
        work.mkdir(exist_ok=True)
        archive = work / f"load-{time.time_ns():x}.tar"
        try:
            docker.docker("save", "-o", str(archive), *missing, timeout=600)
            for node in nodes:
                run(
                    ["sh", "-c", _IMPORT, node, str(archive)],
                    timeout=600, env=docker.env(),
                )  # fmt: skip
        finally:
            archive.unlink(missing_ok=True)

    def node_exec(
        self, cluster: Cluster, node: str, command: list[str], *, timeout: float = 30.0
    ) -> str:
        """``docker exec`` in the node's container."""
        container = self._container(cluster, node)
        return engine.ensure().docker("exec", container, *command, timeout=timeout)

    def stop_node(self, cluster: Cluster, node: str) -> None:
        """Kill the node's container: no pod on it gets a signal to end by."""
        engine.ensure().docker("kill", self._container(cluster, node))

    def start_node(self, cluster: Cluster, node: str) -> None:
        """Start its container again, and restore what went with the old one."""
        docker = engine.ensure()
        started = time.time()
        docker.docker("start", self._container(cluster, node), timeout=120)
        podnetwork.disconnect(partial(_shell, docker), node)
        self._recover(docker, cluster, node, started)

    def restart_kubelet(self, cluster: Cluster, node: str) -> None:
        """Restart the kubelet; returns when it has registered and the GPUs are back."""
        docker = engine.ensure()
        started = time.time()
        self.node_exec(cluster, node, ["systemctl", "restart", "kubelet"])
        self._recover(docker, cluster, node, started)

    # -----------------------------------------------------------------------------------------

    def _recover(self, docker: Engine, cluster: Cluster, node: str, since: float) -> None:
        until_true(
            lambda: self._kubelet_up(docker, self._container(cluster, node)),
            deadline=90, why=f"kubelet of {node} running",
        )  # fmt: skip
        # Docker gives addresses anew when containers start: every node's routes may have changed
        self._network(docker, cluster)
        cluster.kube.wait(
            NODES, partial(_ready_since, node, since), deadline=120, why=f"{node} Ready again"
        )
        fakegpus.restore(cluster.kube, self._topology_nodes(cluster))
        self._wait_dns(docker, cluster)

    def _kubelet_up(self, docker: Engine, container: str) -> bool:
        try:
            docker.docker("exec", container, "systemctl", "is-active", "--quiet", "kubelet")
        except CommandError:
            return False
        return True

    def _kind_create(self, docker: Engine, name: str, folder: Path) -> None:
        log = folder / "kind-create.log"
        try:
            run_logged(
                [str(parts.host_binary("kind")), "create", "cluster", "--name", PREFIX + name,
                 "--config", str(folder / "kind.yaml"), "--kubeconfig", str(folder / "kubeconfig"),
                 "--retain"],
                log, timeout=CREATE_TIMEOUT, env=docker.env(),
            )  # fmt: skip
        except CommandError as error:
            raise ClusterError(
                f"kind could not create cluster {name}: {_kind_reason(error.output)}",
                hint=f"python -m clusters doctor; the whole log was:\n{error.output[-2000:]}",
            ) from error
        os.chmod(folder / "kubeconfig", 0o600)

    def _cluster(self, docker: Engine, name: str) -> Cluster:
        folder = ledger.folder(name)
        entry = ledger.read(name)
        if entry is None or not (folder / "kubeconfig").exists():
            raise ClusterError(
                f"cluster {name!r} was not completed, or its folder is gone",
                hint=f"python -m clusters down {name}",
            )
        try:
            topology = load(str(folder / "topology.yaml"))
        except TopologyError as error:
            raise ClusterError(f"cluster {name!r} has a damaged folder: {error}") from error
        names = fakegpus.node_names(PREFIX + name, topology)
        return Cluster(
            name=name,
            provider=self.name,
            kubernetes=entry.kubernetes,
            topology=topology,
            kubeconfig=folder / "kubeconfig",
            context=f"kind-{PREFIX}{name}",
            run=entry.run,
            capabilities=self.capabilities,
            shared=folder / "shared",
            container_names={node: node for node in names},
        )

    def _topology_nodes(self, cluster: Cluster) -> dict[str, Node]:
        return fakegpus.node_names(PREFIX + cluster.name, cluster.topology)

    def _network(self, docker: Engine, cluster: Cluster) -> None:
        cidrs = podnetwork.pod_cidrs(cluster.kube, len(cluster.container_names))
        podnetwork.connect(partial(_shell, docker), self._addresses(docker, cluster), cidrs)

    def _addresses(self, docker: Engine, cluster: Cluster) -> dict[str, str]:
        names = list(cluster.container_names)
        found = json.loads(docker.docker("inspect", *names))
        return {
            item["Name"].lstrip("/"): item["NetworkSettings"]["Networks"]["kind"]["IPAddress"]
            for item in found
        }

    def _wait_nodes(self, cluster: Cluster) -> None:
        count = len(cluster.container_names)

        def ready(items: list[Object]) -> bool | None:
            up = [i for i in items if conditions(i).get("Ready") == "True"]
            return True if len(up) == count else None

        cluster.kube.wait(NODES, ready, deadline=90, why="all nodes Ready")

    def _wait_dns(self, docker: Engine, cluster: Cluster) -> None:
        service = cluster.kube.get(SERVICES, "kube-dns", "kube-system")
        if service is None:
            raise ClusterError("the cluster has no DNS service kube-dns in kube-system")
        address = service["spec"]["clusterIP"]
        for node in cluster.container_names:
            until_true(
                partial(podnetwork.dns_answers, partial(_shell, docker), node, address),
                deadline=90, why=f"cluster DNS ({address}) answering on {node}", every=0.3,
            )  # fmt: skip

    def _has_image(self, docker: Engine, container: str, reference: str) -> bool:
        full = reference if "." in reference.split("/")[0] else f"docker.io/{reference}"
        listed = docker.docker("exec", container, "ctr", "-n", "k8s.io", "images", "ls", "-q")
        return full in listed.split()

    def _container(self, cluster: Cluster, node: str) -> str:
        if node not in cluster.container_names:
            raise ClusterError(
                f"{cluster.name} has no node {node!r}",
                hint=f"its nodes: {', '.join(cluster.container_names)}",
            )
        return cluster.container_names[node]


def _shell(docker: Engine, node: str, script: str) -> str:
    return docker.docker("exec", node, "bash", "-c", script, timeout=30)


def _ready_since(node: str, since: float, items: list[Object]) -> bool | None:
    """Whether *node* is Ready by a heartbeat sent after the time *since* (epoch seconds)."""
    for item in items:
        if item["metadata"]["name"] != node:
            continue
        for condition in item["status"].get("conditions") or []:
            if condition["type"] == "Ready" and condition["status"] == "True":
                # whole seconds: only a later one is surely after the restart
                return True if epoch(condition["lastHeartbeatTime"]) > since else None
    return None


def _kind_reason(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith("ERROR")]
    return lines[-1].removeprefix("ERROR: ") if lines else output.strip().splitlines()[-1]
