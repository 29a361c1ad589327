"""The control plane of an embedded cluster: etcd, Kubernetes' own three, and kwok for the nodes.

All listen on 127.0.0.1 only, each on ports of the cluster's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from clusters import parts
from clusters.local import LocalProcess, LocalProcesses
from clusters.providers.embedded import access, stages

#: processes in the order in which they start; each of a line needs those of the lines before
ORDER = (("etcd", "kube-apiserver"), ("kube-controller-manager", "kube-scheduler", "kwok"))
#: requests a second of the cluster's own components: a thousand nodes are made in one go
QPS = 2000
#: minor -> feature gates that are switched on, and the APIs that go with them
GATES = {36: (("GenericWorkload", "GangScheduling"), ("scheduling.k8s.io/v1alpha2",))}
#: nodes above which heartbeats come seldom: those of a thousand nodes at Kubernetes' own pace are
#: a hundred writes a second, and on a busy host some are too late, and their nodes taken for lost
MANY = 50


#: seconds for each to be ready; measured: up to 70 with a hundred programs at work on 2 cores
READY_DEADLINE = 240.0


@dataclass(frozen=True)
class Pace:
    """How soon a lost node is noticed, in seconds.

    Attributes:
        lease: for which a heartbeat counts; four come in that time.
        grace: without a heartbeat, after which a node is not Ready.
        toleration: of pods that say nothing, from then until they are evicted.
    """

    lease: int
    grace: int
    toleration: int


def pace(nodes: int) -> Pace:
    """Quick for a few nodes; for many so slow that heartbeats neither cost nor fail anything."""
    return Pace(300, 600, 300) if nodes > MANY else Pace(8, 12, 10)


@dataclass(frozen=True)
class ControlPlane:
    """What one cluster's control plane is made of.

    Attributes:
        folder: the cluster's.
        nodes: how many it will have.
    """

    folder: Path
    kubernetes: str
    context: str
    nodes: int

    @property
    def processes(self) -> LocalProcesses:
        """Its processes, and those of the systems on it."""
        return LocalProcesses(self.folder)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "kubeconfig"

    def start(self, detail: Callable[[str], None]) -> None:
        """Start it; returns when the API server is ready, the others following.

        Raises:
            PartError: a program cannot be had.
            ProcessError: one does not run; with the end of its log.
        """
        made = {process.name: process for process in self._made(detail)}
        first, others = ORDER
        detail("API server")
        for name in first:
            self.processes.launch(made[name])
        for name in first:
            self.processes.wait_ready(name, deadline=READY_DEADLINE)
        for name in others:
            self.processes.launch(made[name])

    def wait_ready(self) -> None:
        """Wait for the others. Raises ProcessError."""
        for name in ORDER[1]:
            self.processes.wait_ready(name, deadline=READY_DEADLINE)

    def heal(self) -> None:
        """Start those again that ended with their keepers, as all do when the host is booted."""
        for line in ORDER:
            ended = [name for name in line if name in self.processes.ended()]
            self.processes.restart(*ended)

    # the programs ---------------------------------------------------------------------------

    def _made(self, detail: Callable[[str], None]) -> list[LocalProcess]:
        detail("programs")
        binaries = parts.control_plane(self.kubernetes)
        etcd, kwok = parts.program("etcd") / "etcd", parts.program("kwok") / "kwok"
        detail("certificates")
        certs = self.folder / "certs"
        access.make_certificates(certs)
        port = self.processes.port
        database, api = port(), port()
        url = f"https://127.0.0.1:{api}"
        access.write_kubeconfig(self.kubeconfig, self.context, url, certs, "admin")
        configs: dict[str, Path] = {}
        for name in ORDER[1]:
            configs[name] = self.processes.folder(name) / "kubeconfig"
            access.write_kubeconfig(configs[name], self.context, url, certs, name)
        return [
            self._etcd(etcd, database, port()),
            self._api_server(binaries, certs, database, api),
            self._controllers(binaries, certs, configs["kube-controller-manager"], port()),
            self._scheduler(binaries, configs["kube-scheduler"], port()),
            self._kwok(kwok, configs["kwok"], port()),
        ]

    def _etcd(self, program: Path, client: int, peer: int) -> LocalProcess:
        peers = f"http://127.0.0.1:{peer}"
        return LocalProcess(
            "etcd",
            (
                str(program), f"--data-dir={self.folder / 'etcd'}", "--name=only",
                # nobody needs this data after the host's crash, and the disk is slow
                "--unsafe-no-fsync",
                f"--listen-client-urls=http://127.0.0.1:{client}",
                f"--advertise-client-urls=http://127.0.0.1:{client}",
                f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
                f"--initial-cluster=only={peers}",
                "--quota-backend-bytes=4294967296", "--log-level=warn",
            ),
            ready=f"http://127.0.0.1:{client}/health",
        )  # fmt: skip

    def _api_server(self, binaries: Path, certs: Path, database: int, port: int) -> LocalProcess:
        gates, apis = self._gates()
        toleration = pace(self.nodes).toleration
        return LocalProcess(
            "kube-apiserver",
            (
                str(binaries / "kube-apiserver"),
                f"--etcd-servers=http://127.0.0.1:{database}",
                "--bind-address=127.0.0.1", f"--secure-port={port}",
                f"--tls-cert-file={certs / 'apiserver.crt'}",
                f"--tls-private-key-file={certs / 'apiserver.key'}",
                f"--client-ca-file={certs / 'ca.crt'}",
                f"--service-account-key-file={certs / 'accounts.key'}",
                f"--service-account-signing-key-file={certs / 'accounts.key'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--authorization-mode=Node,RBAC", "--allow-privileged=true",
                "--service-cluster-ip-range=10.96.0.0/16",
                # its own address leads nowhere for pods, so it is not written into the service
                "--endpoint-reconciler-type=none",
                # nodes are born Ready here: the taint that a new one gets would only have to be
                # taken away again, two requests each, for minutes with a thousand on a busy host
                "--disable-admission-plugins=TaintNodesByCondition",
                "--max-requests-inflight=1600", "--max-mutating-requests-inflight=800",
                f"--default-not-ready-toleration-seconds={toleration}",
                f"--default-unreachable-toleration-seconds={toleration}",
                *gates, *([f"--runtime-config={apis}"] if apis else []),
            ),
            ready=f"https://127.0.0.1:{port}/readyz",
        )  # fmt: skip

    def _controllers(self, binaries: Path, certs: Path, config: Path, port: int) -> LocalProcess:
        gates, _ = self._gates()
        return LocalProcess(
            "kube-controller-manager",
            (
                str(binaries / "kube-controller-manager"), f"--kubeconfig={config}",
                f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
                "--bind-address=127.0.0.1", f"--secure-port={port}", "--leader-elect=false",
                f"--root-ca-file={certs / 'ca.crt'}",
                f"--service-account-private-key-file={certs / 'accounts.key'}",
                f"--kube-api-qps={QPS}", f"--kube-api-burst={2 * QPS}",
                f"--node-monitor-grace-period={pace(self.nodes).grace}s",
                "--node-monitor-period=1s", "--concurrent-namespace-syncs=20", *gates,
            ),
            ready=f"https://127.0.0.1:{port}/healthz",
        )  # fmt: skip

    def _scheduler(self, binaries: Path, config: Path, port: int) -> LocalProcess:
        gates, _ = self._gates()
        settings = self.processes.folder("kube-scheduler") / "config.yaml"
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(config), "qps": QPS, "burst": 2 * QPS},
        }
        settings.write_text(yaml.safe_dump(content))
        return LocalProcess(
            "kube-scheduler",
            (
                str(binaries / "kube-scheduler"), f"--config={settings}",
                f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
                "--bind-address=127.0.0.1", f"--secure-port={port}", "--v=2", *gates,
            ),
            ready=f"https://127.0.0.1:{port}/healthz",
        )  # fmt: skip

    def _kwok(self, program: Path, config: Path, port: int) -> LocalProcess:
        settings = self.processes.folder("kwok") / "kwok.yaml"
        settings.write_text(stages.config(4 if self.nodes <= MANY else 16))
        return LocalProcess(
            "kwok",
            (
                str(program), f"--kubeconfig={config}", f"--config={settings}",
                f"--manage-nodes-with-label-selector={stages.KUBELET}={stages.ON}",
                f"--node-lease-duration-seconds={pace(self.nodes).lease}",
                "--cidr=10.128.0.0/9", f"--server-address=127.0.0.1:{port}",
            ),
            ready=f"http://127.0.0.1:{port}/healthz",
        )  # fmt: skip

    def _gates(self) -> tuple[list[str], str]:
        """Flags of what is switched on beyond the defaults of this version, and its APIs."""
        gates, apis = GATES.get(int(self.kubernetes.split(".")[1]), ((), ()))
        flags = [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []
        return flags, ",".join(f"{api}=true" for api in apis)
