"""Limits of the systems' clients, and what is held back until all gangs are there."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import yaml

from clusters import local
from clusters.cluster import Cluster
from clusters.kube import Object
from clusters.local import LocalProcess
from fixtures.systems.protocols import GangScheduler
from fixtures.systems.schedulers import kueue_manifests as kueue

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Limits:
    """Requests a second that the client of a system may make, and how much it writes to its log.

    Attributes:
        qps, burst: None: as the product is released.
        verbosity: of its log; None: as it is installed.
    """

    name: str
    qps: int | None = None
    burst: int | None = None
    verbosity: int | None = None


#: what is released says: 50 and 100 of kube-scheduler, of Kueue's shipped configuration, and of
#: Volcano's controllers and webhooks; 2,000 of Volcano's scheduler
RELEASED = {"kube-scheduler": (50, 100)}
LIMITS = {
    "default": Limits("default"),
    "raised": Limits("raised", 2000, 4000),
    # Volcano is installed with -v=3, which is two lines for each pod and node that it looks at
    "raised-silent": Limits("raised, log level 0", 2000, 4000, 0),
}
_VERBOSITY = re.compile(r"--?v=\d+")
#: seconds that coscheduling's pods hold their place while their siblings are looked for: the
#: default of its API. The 10 of upstream's examples is too short here: see the report
PERMIT_WAIT = 60


@dataclass(frozen=True)
class Setup:
    """How one scheduler takes part.

    Attributes:
        kubernetes: version of the control plane.
        processes: of which it consists, the one that decides first.
        held: the process that is started only when all gangs are there; "" where a queue is held.
    """

    scheduler: str
    kubernetes: str
    processes: tuple[str, ...]
    held: str


SETUPS = {
    setup.scheduler: setup
    for setup in (
        Setup(
            "coscheduling", "1.34.4",
            ("scheduler-plugins-scheduler", "scheduler-plugins-controller"),
            "scheduler-plugins-scheduler",
        ),
        Setup(
            "volcano", "1.34.4", ("volcano-scheduler", "volcano-controllers", "volcano-admission"),
            "volcano-scheduler",
        ),
        Setup("kueue", "1.34.4", ("kueue-controller-manager", "kube-scheduler"), ""),
        Setup("native", "1.36.3", ("kube-scheduler",), "kube-scheduler"),
    )
}  # fmt: skip


def limit(
    cluster: Cluster, scheduler: GangScheduler, setup: Setup, limits: Limits, permit_wait: int
) -> dict[str, str]:
    """Start the processes of a scheduler again with these limits.

    Returns:
        process -> what is set of it, for the report.
    """
    processes = local.of(cluster)
    told: dict[str, str] = {}
    for name in setup.processes:
        state = processes.state(name)
        assert state is not None
        process, told[name] = _limited(state.process, limits, permit_wait)
        process = _silenced(process, limits)
        processes.start(process)
    scheduler.restart(cluster)  # once more, since only this waits until it really answers
    return told


def _silenced(process: LocalProcess, limits: Limits) -> LocalProcess:
    """With the log's verbosity, where its arguments name one."""
    if limits.verbosity is None:
        return process
    argv = [f"-v={limits.verbosity}" if _VERBOSITY.fullmatch(a) else a for a in process.argv]
    return replace(process, argv=tuple(argv))


def _limited(process: LocalProcess, limits: Limits, permit_wait: int) -> tuple[LocalProcess, str]:
    configs = [a.partition("=")[2] for a in process.argv if a.startswith("--config=")]
    if configs:  # the last one wins: upstream's own may come before
        return process, _in_file(configs[-1], process.name, limits, permit_wait)
    if process.name == "scheduler-plugins-controller":
        # its flags are named otherwise; it only keeps the groups' status, and is no bottleneck
        return process, "qps 200, burst 400"
    kept = tuple(a for a in process.argv if not a.startswith("--kube-api-"))
    if limits.qps is None:
        return replace(process, argv=kept), "as released"
    flags = (f"--kube-api-qps={limits.qps}", f"--kube-api-burst={limits.burst}")
    return replace(process, argv=(*kept, *flags)), f"qps {limits.qps}, burst {limits.burst}"


def _in_file(path: str, name: str, limits: Limits, permit_wait: int) -> str:
    with open(path) as file:
        config: Object = yaml.safe_load(file)
    connection = config.setdefault("clientConnection", {})
    if limits.qps is not None:
        connection |= {"qps": limits.qps, "burst": limits.burst}
    elif not name.startswith("kueue"):  # whose own file says 50 and 100 as it is shipped
        connection |= dict(zip(("qps", "burst"), RELEASED["kube-scheduler"], strict=True))
    told = f"qps {connection['qps']}, burst {connection['burst']}"
    for profile in config.get("profiles") or []:
        for plugin in profile.get("pluginConfig") or []:
            if plugin["name"] == "Coscheduling":
                plugin["args"]["permitWaitingTimeSeconds"] = permit_wait
                told += f", permit wait {permit_wait} s"
    with open(path, "w") as file:
        yaml.safe_dump(config, file, sort_keys=False)
    return told


@contextmanager
def held(cluster: Cluster, setup: Setup) -> Iterator[Callable[[], None]]:
    """Nobody is admitted inside; yields what lets the scheduler go.

    A process that decides is away meanwhile. Kueue cannot be away, as its webhook takes part in
    making pods: its queue is held by its own means (``stopPolicy``).
    """
    processes = local.of(cluster)
    if setup.held:
        state = processes.state(setup.held)
        assert state is not None
        process = state.process
        processes.stop(setup.held)
        yield lambda: processes.launch(process)
        return

    def policy(word: str) -> None:
        cluster.kube.patch(kueue.CLUSTER_QUEUES, kueue.NAME, {"spec": {"stopPolicy": word}})

    policy("Hold")
    yield lambda: policy("None")
