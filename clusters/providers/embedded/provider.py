"""See :mod:`clusters.providers.embedded`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import yaml

from clusters import belonging, cache, doctor, fakegpus, ledger, local, parts
from clusters.cluster import Capability, Cluster, ClusterSpec, no_such_cluster
from clusters.doctor import Needs
from clusters.errors import ClusterError
from clusters.local import LocalProcesses
from clusters.parts import pins, plan
from clusters.progress import say, step
from clusters.providers import made
from clusters.providers.embedded import nodes
from clusters.providers.embedded.controlplane import ControlPlane
from clusters.topology import GpuMode, Node, Topology
from oracles.errors import NotApplicable, UsageError

NAME = "embedded"
PREFIX = "muster-"
#: GB of memory: 0.7 for the control plane, what systems take comes on top
MEMORY = 1.5
#: GB of disk: a cluster takes 0.1; building all programs, with Go's caches, took 12
DISK, BUILD_DISK = 2.0, 14.0


class EmbeddedProvider:
    """See :class:`clusters.cluster.ClusterProvider`."""

    name = NAME
    capabilities = frozenset(
        {Capability.OWN_CLUSTER, Capability.NODE_POWER, Capability.LOCAL_PROCESSES}
    )

    def prepare(self, kubernetes: Iterable[str], programs: Iterable[str] = ()) -> None:
        """See ``ClusterProvider.prepare``."""
        parts.source()
        versions, wanted = list(kubernetes), list(programs)
        cold = plan.cold_processes(versions, wanted)
        disk = BUILD_DISK if cold else DISK
        doctor.preflight(Needs(disk, MEMORY, instances=0, watches=0, docker=False))
        sweep()
        plan.tell(cold)

    def create(self, spec: ClusterSpec) -> Cluster:
        """Create it; on failure, what there is of it is removed and the reason told."""
        pins.kubernetes_pin(spec.kubernetes)
        if spec.topology.gpu.mode is GpuMode.DEVICE_PLUGIN:
            raise UsageError(
                f"provider {NAME} has no GPUs of mode {GpuMode.DEVICE_PLUGIN}: there is no kubelet",
                hint="--provider kind, or --gpu-mode patched",
            )
        _refuse_taken(spec.name)
        # what has to be built is not part of how long a cluster takes
        parts.control_plane(spec.kubernetes)
        for program in ("etcd", "kwok"):
            parts.program(program)
        with made.locked(spec.name):
            _refuse_taken(spec.name)
            ledger.write(
                spec.name, provider=self.name, kubernetes=spec.kubernetes,
                topology=spec.topology.name, run=spec.run,
            )  # fmt: skip
            try:
                with step(
                    f"create embedded cluster {spec.topology.name} {spec.kubernetes}"
                ) as say_:
                    folder = ledger.folder(spec.name)
                    layout = yaml.safe_dump(spec.topology.model_dump(mode="json"))
                    (folder / "topology.yaml").write_text(layout)
                    plane = _plane(spec.name, spec.kubernetes, spec.topology)
                    plane.start(say_)
                    cluster = self._cluster(spec.name)
                    say_("nodes")
                    expected = of(cluster)
                    nodes.make(cluster.kube, expected, spec.kubernetes)
                    plane.wait_ready()
                    nodes.wait_ready(cluster.kube, expected)
            except BaseException:
                kept = _keep_logs(spec.name)  # the cluster's folder goes
                made.give_up(spec, _remove, note=f"; the logs are in {kept}")
                raise
            ledger.update(spec.name, ready=True)
        return cluster

    def get(self, name: str) -> Cluster:
        """A cluster that is up; its processes are started again when the host was booted."""
        known = self.names()
        if name not in known:
            raise no_such_cluster(name, known)
        cluster = self._cluster(name)
        with made.locked(name):
            if ended := local.of(cluster).ended():
                with step(f"restore cluster {name}: {', '.join(ended)} ended"):
                    _plane(name, cluster.kubernetes, cluster.topology).heal()
                    processes = local.of(cluster)
                    processes.restart(*processes.ended())  # the systems on it
                    nodes.wait_ready(cluster.kube, of(cluster))
        return cluster

    def names(self) -> list[str]:
        """Names of our clusters, half-made ones included."""
        return sorted(entry.name for entry in ledger.entries() if entry.provider == self.name)

    def left_over(self) -> list[str]:
        """Names of the clusters that nobody alive wants: their run was killed."""
        entries = ledger.entries()
        return [e.name for e in entries if e.provider == self.name and e.left_over]

    def delete(self, name: str) -> None:
        """Kill its processes, remove its folder."""
        with made.locked(name):
            _remove(name)

    def load_image(
        self, cluster: Cluster, references: Iterable[str], nodes: Iterable[str] | None = None
    ) -> None:
        """Not possible: nothing runs images."""
        self._cannot(Capability.LOAD_IMAGE)

    def node_exec(
        self, cluster: Cluster, node: str, command: list[str], *, timeout: float = 30.0
    ) -> str:
        """Not possible: nodes are not real."""
        self._cannot(Capability.NODE_EXEC)

    def stop_node(self, cluster: Cluster, node: str) -> None:
        """Its heartbeats end, and nothing that happens to its pods is told any more."""
        nodes.heartbeat(cluster.kube, node, on=False)

    def start_node(self, cluster: Cluster, node: str) -> None:
        """Its heartbeats come again; returns when it is Ready and may get pods."""
        nodes.heartbeat(cluster.kube, node, on=True)
        nodes.wait_ready(cluster.kube, {node: of(cluster)[node]})

    def restart_kubelet(self, cluster: Cluster, node: str) -> None:
        """Not possible: there is none."""
        self._cannot(Capability.NODE_EXEC)

    # -----------------------------------------------------------------------------------------

    def _cannot(self, what: Capability) -> NoReturn:
        raise NotApplicable(f"provider {self.name} cannot {what.value}")

    def _cluster(self, name: str) -> Cluster:
        folder = ledger.folder(name)
        entry, topology = made.restore(name)
        return Cluster(
            name=name,
            provider=self.name,
            kubernetes=entry.kubernetes,
            topology=topology,
            kubeconfig=folder / "kubeconfig",
            context=PREFIX + name,
            run=entry.run,
            capabilities=self.capabilities,
        )


def of(cluster: Cluster) -> dict[str, Node]:
    """Node name -> what the topology says of it."""
    return fakegpus.node_names(PREFIX + cluster.name, cluster.topology)


def sweep() -> None:
    """Remove what killed runs left."""
    for name in EmbeddedProvider().left_over():
        with made.locked(name):
            entry = ledger.read(name)  # somebody may have been faster, and made it anew
            if entry is not None and entry.left_over:
                say(f"removing cluster {name}: its run is gone")
                _remove(name)


def _keep_logs(name: str) -> Path:
    """The file into which its processes' logs were copied."""
    kept = cache.root() / "logs" / f"embedded-{name}.log"
    kept.parent.mkdir(exist_ok=True)
    processes = LocalProcesses(ledger.folder(name))
    kept.write_text("\n".join(f"==> {it}\n{processes.log(it)}" for it in processes.names()))
    return kept


def _remove(name: str) -> None:
    folder = ledger.folder(name)
    LocalProcesses(folder).stop_all()
    if left := belonging.alive(folder):
        raise ClusterError(
            f"processes of cluster {name} do not end: {', '.join(map(str, left))}",
            hint=f"kill -9 {' '.join(map(str, left))}, then python -m clusters down {name}",
        )
    ledger.forget(name)


def _plane(name: str, kubernetes: str, topology: Topology) -> ControlPlane:
    return ControlPlane(ledger.folder(name), kubernetes, PREFIX + name, topology.size)


def _refuse_taken(name: str) -> None:
    if ledger.read(name) is not None:
        raise made.taken(name)
