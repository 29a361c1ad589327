"""The processes of a container, as its node sees them.

A signal is sent from the node, in its process namespace: within a container the first process is
immune to signals from its own namespace, SIGKILL included. And the node tells a process that ended
from another one with its number, by the time at which it started.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chaos.errors import FaultError, NotProven
from chaos.site import Site
from clusters.errors import CommandError
from clusters.kube import Object

#: what PyTorch's agent is called on a command line (torchrun is a script that runs the first)
_AGENT = ("torch.distributed.run", "torchrun", "torch.distributed.launch")

_LIST = r"""
for file in $(grep -ls '{id}' /proc/[0-9]*/cgroup); do
    pid=${{file#/proc/}}; pid=${{pid%/cgroup}}
    read -r stat 2>/dev/null < /proc/$pid/stat || continue
    printf '%s\t%s\n' "$stat" "$(tr '\0\n\t' '   ' < /proc/$pid/cmdline)"
done 2>/dev/null
true
"""


#: what :func:`states` says of a process that does nothing more (its parent may not know yet)
ENDED = ("gone", "Z", "X")


class Which(StrEnum):
    """Which processes of a container."""

    MAIN = "main"  #: its first one
    AGENT = "agent"  #: torchrun's
    WORKER = "worker"  #: the first that the agent started
    ALL = "all"


@dataclass(frozen=True)
class Process:
    """One process.

    Attributes:
        state: a letter as in proc(5): ``S`` sleeping, ``R`` running, ``T`` stopped, ``Z`` ended.
        start: when it began, in clock ticks since boot.
    """

    pid: int
    parent: int
    state: str
    start: int
    command: str

    @property
    def ended(self) -> bool:
        """Whether it only waits for its parent to notice."""
        return self.state in ("Z", "X")

    def __str__(self) -> str:
        return f"{self.pid} ({self.command[:60].strip()})"


def parse(text: str) -> list[Process]:
    """The processes that the node's script told of."""
    found = []
    for line in text.splitlines():
        stat, _, command = line.partition("\t")
        head, _, tail = stat.rpartition(")")
        fields = tail.split()
        if len(fields) < 20:
            continue
        pid = int(head.partition(" ")[0])
        found.append(Process(pid, int(fields[1]), fields[0], int(fields[19]), command.strip()))
    return sorted(found, key=lambda process: (process.start, process.pid))


def choose(processes: Sequence[Process], which: Which) -> list[Process]:
    """Those that are meant. None when there are none: agents are told apart by their command.

    A worker process is a child of an agent that runs the script which the agent was given; other
    children of an agent are helpers.
    """
    alive = [process for process in processes if not process.ended]
    if which is Which.ALL:
        return alive
    agents = [p for p in alive if any(word in p.command for word in _AGENT)]
    if which is Which.AGENT:
        return agents[:1]
    if which is Which.WORKER:
        parents = {agent.pid: _scripts(agent.command) for agent in agents}
        workers = [
            p
            for p in alive
            if p not in agents and parents.get(p.parent, set()) & _scripts(p.command)
        ]
        return workers[:1]
    pids = {process.pid for process in alive}
    return [p for p in alive if p.parent not in pids][:1]


def _scripts(command: str) -> set[str]:
    return {word for word in command.split() if word.endswith(".py")}


def container_id(pod: Object, container: str) -> str:
    """Id of a container that runs. Raises FaultError when it does not."""
    for status in pod.get("status", {}).get("containerStatuses") or []:
        if status["name"] == container and "running" in (status.get("state") or {}):
            return str(status["containerID"]).rpartition("/")[2]
    meta = pod["metadata"]
    raise FaultError(
        f"container {container} of pod {meta.get('namespace')}/{meta['name']} does not run"
    )


def of_container(site: Site, node: str, container: str) -> list[Process]:
    """The processes of a container, by its id, the oldest first.

    Raises:
        CommandError: the node is off.
    """
    return parse(site.on(node, _LIST.format(id=container)))


def find(site: Site, pod: Object, container: str, which: Which) -> tuple[str, list[Process]]:
    """Id of the container of a pod, and its processes that are meant.

    Raises:
        FaultError: there are none; says which ones there are.
    """
    name = f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
    task = container_id(pod, container)
    try:
        there = of_container(site, pod["spec"]["nodeName"], task)
    except CommandError as error:
        raise FaultError(f"nobody can look at the processes of {name}: {error}") from error
    chosen = choose(there, which)
    if not chosen:
        words = "; ".join(map(str, there)) or "none"
        raise FaultError(f"container {container} of {name} has no process {which}; it has: {words}")
    return task, chosen


def send(site: Site, node: str, processes: Iterable[Process], sign: signal.Signals) -> None:
    """Send a signal to those that are still the same processes.

    Of several some may have ended since they were looked for: a shell's commands come and go.

    Raises:
        FaultError: none is there any more.
    """
    parts = [
        f"if {check(process)}; then kill -{sign.value} {process.pid} && sent=1; fi"
        for process in processes
    ]
    try:
        site.on(node, "; ".join(["sent=0", *parts, '[ "$sent" = 1 ]']))
    except CommandError as error:
        raise FaultError(f"no {sign.name} could be sent on {node}: {error}") from error


def check(process: Process) -> str:
    """Shell words that are true while *process* is there, and is still the same one."""
    return (
        f'[ "$(sed "s/.*) //" /proc/{process.pid}/stat 2>/dev/null | cut -d" " -f20)"'
        f" = {process.start} ]"
    )


def thaw(processes: Iterable[Process]) -> str:
    """A script that continues those that are still there."""
    return "\n".join(f"if {check(p)}; then kill -CONT {p.pid}; fi" for p in processes) + "\ntrue"


def states(site: Site, node: str, processes: Iterable[Process]) -> dict[int, str]:
    """Pid -> state now; ``gone`` for one that is not there any more.

    Raises:
        NotProven: nobody can look.
    """
    script = "\n".join(
        f'if {check(p)}; then echo {p.pid} "$(sed "s/.*) //" /proc/{p.pid}/stat | cut -c1)";'
        f" else echo {p.pid} gone; fi"
        for p in processes
    )
    try:
        lines = site.on(node, script).splitlines()
    except CommandError as error:
        raise NotProven(f"nobody can look at processes on {node}: {error}") from error
    return {int(line.split()[0]): line.split()[1] for line in lines if len(line.split()) == 2}
