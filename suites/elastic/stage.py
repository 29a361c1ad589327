"""What every test of an elastic job needs, in one place: a job, faults, waits, figures."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chaos.faults.base import Fault, Proof
from chaos.faults.pod import DeletePod
from chaos.faults.process import KillAgent
from chaos.faults.signals import SignalProcess, StopProcess
from chaos.processes import Which
from chaos.site import Site
from clusters import crowding
from clusters.cluster import Cluster, ClusterProvider
from clusters.errors import ApiError, WaitTimeout
from clusters.kube import PODS, PYTORCHJOBS, Kube, Object
from fixtures.plugin.given import Expecting, Measuring
from fixtures.runtimes import Runtime, with_etcd
from fixtures.systems import rendezvous
from fixtures.workloads import SAMPLES, control, order
from oracles import samples
from oracles.errors import HarnessError
from oracles.progress import Event, ProgressLine
from suites import jobs, training
from suites.elastic import checks, trainer
from suites.elastic.agents import Agents
from suites.training import Training

#: the container that the operator looks for
CONTAINER = "pytorch"
#: seconds until training goes on; measured 51-82 with torchrun's own read_timeout of 60 s
GOES_ON = 120.0
#: seconds until a job that was told to finish has succeeded
FINISHED = 90.0
#: what torchrun's agents raise when another one closed their rendezvous
CLOSED = "RendezvousClosedError"
#: words of logs that tell one trouble from another
SYMPTOMS = (
    CLOSED,
    "RendezvousConnectionError",
    "RendezvousTimeoutError",
    "connectFullMesh failed",
    "wait timeout after",
    "DistStoreError",
    "DistNetworkError",
    "Connection reset by peer",
    "EtcdException",
    # a key of the rendezvous' store that is waited for in vain, as the keys of timeouts are written
    "/MASTER_ADDR",
)
#: what an etcd answers that its host keeps from working
STARVED = "etcdserver: request timed out"
#: threads to run per core (load average of a minute) from which on nobody is to blame for slowness:
#: with 23 of them agents took 73 s from the start of their container to their first line, else 5
STARVING = 15
#: seconds for which processes are frozen. Agents miss three heartbeats, one every 5 s, before the
#: others count one as dead (torch.distributed.elastic: keep_alive_interval, keep_alive_max_attempt)
FROZEN = 20.0

Injecting = Callable[..., Proof]


@dataclass
class Stage:
    """One test's job and what it is given. ``job`` is the name, ``training`` what it tells."""

    cluster: Cluster
    provider: ClusterProvider
    runtime: Runtime
    namespace: str
    injecting: Injecting
    expect: Expecting
    measure: Measuring
    job: str = "job"
    _training: Training | None = field(default=None, repr=False)
    _frozen: list[StopProcess] = field(default_factory=list, repr=False)

    @property
    def kube(self) -> Kube:
        """The cluster's API."""
        return self.cluster.kube

    @property
    def training(self) -> Training:
        """What the job's processes tell. There is none before :meth:`start`."""
        assert self._training is not None, "the job is not started"
        return self._training

    def worker(self, index: int) -> str:
        """Name of a worker's pod."""
        return f"{self.job}-worker-{index}"

    # the job -------------------------------------------------------------------------------

    def start(
        self,
        workers: int,
        low: int,
        high: int,
        *,
        backend: str = "c10d",
        etcd: tuple[str, int] | None = None,
        named: bool = True,
        **more: Any,
    ) -> Training:
        """Submit the job; more as :func:`suites.elastic.trainer.start` takes it.

        Args:
            etcd: host and port of one that is there; None: with an etcd backend, one of its own.
            named: tell agents to meet under the job's name; only with an etcd backend.
        """
        runtime = self.runtime
        if backend != "c10d":
            host, port = etcd or self.serve_etcd()
            runtime, variables = with_etcd(runtime)
            where = {"rdzvHost": host, "rdzvPort": port, **({"rdzvId": self.job} if named else {})}
            more["policy"] = {**where, **(more.get("policy") or {})}
            more["environment"] = {**variables, **(more.get("environment") or {})}
        return self.follow(
            trainer.start(
                self.cluster, runtime, self.namespace, self.job, workers=workers, low=low,
                high=high, backend=backend, **more,
            )
        ).training  # fmt: skip

    def serve_etcd(self) -> tuple[str, int]:
        """Run an etcd in the test's namespace; host and port."""
        return rendezvous.etcd(self.cluster, self.namespace)

    def follow(self, told: Training) -> Stage:
        """Take what a job that was submitted elsewhere tells for the job's."""
        self._training = told
        return self

    def scale(self, workers: int) -> None:
        """Ask for so many workers, through the scale subresource."""
        jobs.scale(self.kube, PYTORCHJOBS, self.namespace, self.job, workers)

    def tell(self, *orders: str) -> None:
        """Give the training processes orders (``fixtures.workloads.order``)."""
        control(self.training.folder.parent, *orders)

    def finish(self) -> Object:
        """Tell the job to finish, and wait until it has succeeded; the job."""
        self.tell(order("finish"))
        with self.expect("the job succeeds once its training ends"):
            return self.ends("Succeeded", FINISHED)

    def ends(self, condition: str, deadline: float) -> Object:
        """Wait for a condition of the job; the job."""
        return jobs.wait_condition(
            self.kube, PYTORCHJOBS, self.namespace, self.job, condition, deadline=deadline
        )

    def pods(self) -> list[Object]:
        """The job's pods."""
        return self.kube.find(PODS, self.namespace, labels=jobs.of(self.job))

    def agents(self) -> Agents:
        """The job's agents, as they are now."""
        return Agents.of(self.pods())

    # disturbing ----------------------------------------------------------------------------

    def inject(self, fault: Fault, *, within: float = GOES_ON, by: str = "progress") -> Proof:
        """Break something that the job has to get over within so many seconds."""
        wanted = {
            "kind": PYTORCHJOBS.kind, "namespace": self.namespace, "name": self.job,
            "within_s": within, "by": by,
        }  # fmt: skip
        return self.injecting(fault, recovers=wanted)

    def kill_agent(self, index: int, sign: signal.Signals = signal.SIGKILL) -> KillAgent:
        """The fault that ends an agent in a pod that stays."""
        return KillAgent(
            self.cluster, self.provider, self.namespace, self.worker(index), CONTAINER, sign
        )

    def signal(
        self, index: int, which: Which, sign: signal.Signals = signal.SIGKILL
    ) -> SignalProcess:
        """The fault that ends a process of a worker's pod."""
        site = Site(self.cluster, self.provider)
        return SignalProcess(site, self.namespace, self.worker(index), CONTAINER, which, sign)

    def freeze(self, index: int, which: Which) -> StopProcess:
        """The fault that stops processes of a worker's pod until it is recovered."""
        site = Site(self.cluster, self.provider)
        fault = StopProcess(site, self.namespace, self.worker(index), CONTAINER, which)
        self._frozen.append(fault)
        return fault

    def thaw(self) -> float:
        """Let everything that was frozen go on; when it does, in seconds since 1970."""
        for fault in self._frozen:
            fault.recover()
        return time.time()

    def delete_pod(self, index: int, *, grace: int = 0) -> DeletePod:
        """The fault that deletes a worker's pod."""
        return DeletePod(self.cluster, self.namespace, self.worker(index), grace=grace)

    # judging -------------------------------------------------------------------------------

    def symptoms(self) -> str:
        """What agents and workers say of their trouble, in words that reports can be told by."""
        found = [
            f"{pod} says {', '.join(words)}"
            for pod, text in self._logs().items()
            if (words := [word for word in SYMPTOMS if word in text])
        ]
        counts = {
            line.pod: line.restart for line in self.training.lines() if line.event is Event.START
        }
        if len(set(counts.values())) > 1:
            found.append(f"agents' restart counts differ: {counts}")
        return "; ".join(found) or "no trouble in the logs"

    def _logs(self) -> dict[str, str]:
        """Pod -> the logs of its agent and of the one before: kubelets keep no older ones."""
        logs = {}
        for pod in self.pods():
            name = pod["metadata"]["name"]
            logs[name] = ""
            for previous in (False, True):
                with suppress(ApiError):  # there was none before
                    logs[name] += self.kube.logs(self.namespace, name, CONTAINER, previous=previous)
        return logs

    def open_to_all(self, *, but: str) -> None:
        """Assert that no agent except that of the pod *but* was told that its rendezvous is closed.

        Whoever is told so ends; that its kubelet starts it again does not make it right.
        """
        told = [pod for pod, text in self._logs().items() if pod != but and CLOSED in text]
        self.measure("agents that met a closed rendezvous", len(told), "agents")
        assert not told, (
            f"the agents of {', '.join(sorted(told))} met a closed rendezvous ({CLOSED}),"
            f" because that of {but} left"
        )

    def goes_on(
        self, what: str, since: float, *, world: int | None = None, deadline: float = GOES_ON
    ) -> list[ProgressLine]:
        """Expect five steps after *since*; those of the process group that did them."""
        with self.expect(f"training goes on after: {what}"):
            return self.trains(since=since, world=world, deadline=deadline)

    def trains(
        self, *, since: float, world: int | None = None, deadline: float = GOES_ON
    ) -> list[ProgressLine]:
        """Wait for five steps after *since*; those of the process group that did them.

        Raises:
            WaitTimeout: with what agents and workers say of their trouble.
            HarnessError: the host keeps them from going on.
        """
        try:
            return self.training.wait_steps(5, world=world, since=since, deadline=deadline)
        except WaitTimeout as error:
            told = f"{error}; {self.symptoms()}"
            if why := self._starved():
                hint = "run it again with less beside it"
                raise HarnessError(f"{why}, so that nobody can say: {told}", hint=hint) from error
            raise WaitTimeout(told) from error

    def _starved(self) -> str:
        """What tells that the host has too little CPU for a bound of seconds; "" for nothing."""
        if told := sorted(pod for pod, text in self._logs().items() if STARVED in text):
            return f"the etcd, which is ours, answered {', '.join(told)} {STARVED!r}"
        crowd = crowding.of(self.cluster)
        return str(crowd) if crowd and crowd.threads > STARVING * crowd.cores else ""

    def sound(self, group: list[ProgressLine] | None = None) -> None:
        """Assert that what was trained is right: samples, steps, losses, ranks, one world."""
        lines = self.training.lines()
        wrong = samples.faults(lines, size=SAMPLES, interval=trainer.INTERVAL)
        wrong += checks.replays(lines) + checks.beside(lines)
        if group is not None:
            wrong += training.rank_faults(group)
        assert not wrong, "; ".join(wrong)
