"""Clusters of kind: real nodes in containers of the Docker engine."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from clusters import cache, deviceplugin, doctor, engine, fakegpus, ledger, parts, podnetwork
from clusters.cluster import Capability, Cluster, ClusterSpec, no_such_cluster
from clusters.command import run
from clusters.engine import Engine
from clusters.errors import ClusterError, WrongName
from clusters.parallel import in_parallel
from clusters.parts import plan
from clusters.progress import say, step
from clusters.providers import containers, kindcommand, kindconfig, kindnodes, made
from clusters.providers.containers import PREFIX
from clusters.providers.embedded import provider as embedded
from clusters.topology import GpuMode
from oracles.errors import UsageError

#: half a gigabyte each; more than anybody should start by mistake
MOST_NODES = 20
_IMPORT = 'docker exec -i "$0" ctr -n k8s.io images import --digests - <"$1"'


class KindProvider:
    """See :class:`clusters.cluster.ClusterProvider`."""

    name = "kind"
    capabilities = frozenset(Capability) - {Capability.LOCAL_PROCESSES, Capability.DEVICE_PLUGIN}

    def prepare(self, kubernetes: Iterable[str], programs: Iterable[str] = ()) -> None:
        """See ``ClusterProvider.prepare``."""
        parts.source()
        doctor.preflight()
        self.sweep()
        embedded.sweep()
        plan.announce(kubernetes, programs)

    def create(self, spec: ClusterSpec) -> Cluster:
        """Create it; on failure, what there is of it is removed and the reason told."""
        if spec.topology.size > MOST_NODES:
            raise UsageError(
                f"topology {spec.topology.name} has {spec.topology.size} nodes, kind takes"
                f" {MOST_NODES} here: each is a container with a kubelet",
                hint="--provider embedded",
            )
        docker = engine.ensure()
        _refuse_taken(docker, spec.name)
        image = parts.node_image(spec.kubernetes)
        # pods wait for their image in the nodes: it is there before the first node is
        parts.base_image()
        program = parts.host_binary("kind")
        if spec.topology.gpu.mode is GpuMode.DEVICE_PLUGIN:
            parts.program(deviceplugin.PROGRAM)
        with made.locked(spec.name):
            _refuse_taken(docker, spec.name)
            ledger.write(
                spec.name, provider=self.name, kubernetes=spec.kubernetes,
                topology=spec.topology.name, run=spec.run,
            )  # fmt: skip
            try:
                with step(f"create cluster {spec.topology.name} {spec.kubernetes}") as detail:
                    folder = kindconfig.write(spec, image)
                    kindcommand.create(docker, program, spec.name, folder, detail)
                    cluster = self._cluster(spec.name)
                    kindnodes.start_gpus(docker, cluster)
                    detail("pod network")
                    kindnodes.connect(docker, cluster)
                    detail("nodes Ready")
                    kindnodes.wait_ready(cluster)
                    kindnodes.restore_gpus(cluster)
                    detail("DNS")
                    kindnodes.wait_dns(docker, cluster)
            except BaseException:
                made.give_up(spec, self._remove)
                raise
            ledger.update(spec.name, ready=True)
        return cluster

    def get(self, name: str) -> Cluster:
        """A cluster that is up; restored first when its nodes were restarted behind our back."""
        docker = engine.find()
        known = self.names()
        if docker is None or name not in known:
            raise no_such_cluster(name, known)
        cluster = self._cluster(name)
        with made.locked(name):
            kindnodes.heal(docker, cluster)
        return cluster

    def describe(self, name: str) -> Cluster:
        """A cluster as it was made, whatever state its nodes are in. Raises ClusterError."""
        known = self.names()
        if name not in known:
            raise no_such_cluster(name, known)
        return self._cluster(name)

    def names(self) -> list[str]:
        """Names of our clusters, half-made ones included."""
        written = {entry.name for entry in ledger.entries() if entry.provider == self.name}
        return sorted(written | self.nodes().keys())

    def nodes(self) -> dict[str, tuple[bool, ...]]:
        """Of each of our clusters that has containers: whether each node's runs."""
        docker = engine.find()
        there = containers.clusters(docker) if docker is not None else {}
        return {name: found.running for name, found in there.items() if found.mine}

    def strangers(self) -> list[str]:
        """Names of clusters of this tool that were made with another cache folder."""
        docker = engine.find()
        there = containers.clusters(docker) if docker is not None else {}
        return sorted(name for name, found in there.items() if not found.mine)

    def left_over(self) -> list[str]:
        """Names of the clusters that nobody alive wants: their run was killed."""
        entries = {name: ledger.read(name) for name in self.names()}
        return [name for name, entry in entries.items() if entry is None or entry.left_over]

    def sweep(self) -> None:
        """Remove what killed runs left."""
        engine.ensure()  # containers of an engine that was killed show when it is up again
        for name in self.left_over():
            with made.locked(name):
                entry = ledger.read(name)  # somebody may have been faster, and made it anew
                if entry is None or entry.left_over:
                    say(f"removing cluster {name}: its run is gone")
                    self._remove(name)

    def delete(self, name: str) -> None:
        """Remove its containers, volumes and folder."""
        with made.locked(name):
            self._remove(name)

    def load_image(
        self, cluster: Cluster, references: Iterable[str], nodes: Iterable[str] | None = None
    ) -> None:
        """Stream images from the engine into the nodes' containerd."""
        docker = engine.ensure()
        wanted = list(references)
        for reference in wanted:
            if not docker.has_image(reference):
                raise ClusterError(
                    f"the image {reference} is not in the Docker engine",
                    hint=f"docker pull or docker load it (DOCKER_HOST={docker.host})",
                )
        ids = containers.ids_of(docker, wanted)
        names = cluster.container_names
        into = list(names.values()) if nodes is None else [names[node] for node in nodes]

        def lacks(node: str) -> set[str]:
            there = containers.images_of(docker, node, wanted)
            # the same name may stand for another image by now
            return {reference for reference in wanted if there.get(reference) != ids[reference]}

        lacking = dict(zip(into, in_parallel(lacks, into), strict=True))
        missing = sorted(set().union(*lacking.values()))
        if not missing:
            return
        with cache.workspace("load") as work:
            archive = work / "images.tar"
            docker.docker("save", "-o", str(archive), *missing, timeout=600)

            def bring(node: str) -> None:
                run(["sh", "-c", _IMPORT, node, str(archive)], timeout=600, env=docker.env())

            in_parallel(bring, [node for node in into if lacking[node]])

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
        since = kindnodes.next_second()
        docker.docker("start", self._container(cluster, node), timeout=120)
        podnetwork.disconnect(partial(kindnodes.shell, docker), node)
        kindnodes.recover(docker, cluster, node, since)

    def restart_kubelet(self, cluster: Cluster, node: str) -> None:
        """Restart the kubelet; returns when it has registered and the GPUs are back."""
        docker = engine.ensure()
        self.node_exec(cluster, node, ["systemctl", "stop", "kubelet"])
        since = kindnodes.next_second()
        self.node_exec(cluster, node, ["systemctl", "start", "kubelet"])
        kindnodes.recover(docker, cluster, node, since)

    # -----------------------------------------------------------------------------------------

    def _remove(self, name: str) -> None:
        docker = engine.revived()
        if docker is not None:
            containers.remove(docker, name)
        ledger.forget(name)

    def _cluster(self, name: str) -> Cluster:
        folder = ledger.folder(name)
        entry, topology = made.restore(name)
        plugged = topology.gpu.mode is GpuMode.DEVICE_PLUGIN
        return Cluster(
            name=name,
            provider=self.name,
            kubernetes=entry.kubernetes,
            topology=topology,
            kubeconfig=folder / "kubeconfig",
            context=f"kind-{PREFIX}{name}",
            run=entry.run,
            capabilities=self.capabilities | ({Capability.DEVICE_PLUGIN} if plugged else set()),
            shared=folder / "shared",
            container_names={n: n for n in fakegpus.node_names(PREFIX + name, topology)},
        )

    def _container(self, cluster: Cluster, node: str) -> str:
        if node not in cluster.container_names:
            raise ClusterError(
                f"{cluster.name} has no node {node!r}",
                hint=f"its nodes: {', '.join(cluster.container_names)}",
            )
        return cluster.container_names[node]


def _refuse_taken(docker: Engine, name: str) -> None:
    there = containers.clusters(docker)
    if name in there and not there[name].mine:
        raise WrongName(
            f"a cluster named {name!r} is there already, made with another cache folder",
            hint="use another name",
        )
    if name in there or ledger.read(name) is not None:
        raise made.taken(name)
