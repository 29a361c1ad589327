"""Local processes: what runs beside an embedded control plane, where no node runs containers.

A cluster whose capabilities hold ``LOCAL_PROCESSES`` has no real containers, so that a system is
not installed as a Deployment but started as a process of this host::

    processes = local.of(cluster)          # NotApplicable where the provider cannot
    port = processes.port()
    processes.start(
        LocalProcess(
            "volcano-scheduler", (str(binary), f"--kubeconfig={path}", f"--healthz={port}"),
            ready=f"http://127.0.0.1:{port}/healthz", system="volcano", key=key,
        )
    )

A process has a folder of its own in the cluster's folder, with its log and what it is started
with; it outlives this process, is started again when it ends (as a kubelet would do), and ends
with its cluster. How it is found again: :mod:`clusters.belonging`.
"""

from __future__ import annotations

import json
import shutil
import ssl
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from clusters import belonging, keeping, ledger, ports
from clusters.cluster import Capability, Cluster
from clusters.errors import ProcessError

#: seconds from a start to ready; measured: 0.2 to 4 on 2 busy cores
READY_DEADLINE = 60.0
#: starts without ever being ready after which nobody waits any longer
HOPELESS = 4
_LOOK = 0.05


@dataclass(frozen=True)
class LocalProcess:
    """A program to run.

    Attributes:
        name: unique in its cluster, like a deployment's.
        argv: the program's path and its arguments.
        env: variables on top of this process's own.
        ready: a URL that answers 200 when it works (its certificate is not checked); None: it is
            ready as soon as it runs.
        restarts: start it again when it ends.
        leaves: files outside of its folder that have to be there, as their place is fixed in the
            program; made empty, and gone with the last process of any cluster that needs them.
        system: what it belongs to, such as ``volcano``.
        key: of what is installed; tells whether the same is running already.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    ready: str | None = None
    restarts: bool = True
    leaves: tuple[str, ...] = ()
    system: str = ""
    key: str = ""


@dataclass(frozen=True)
class State:
    """A local process as it is now.

    Attributes:
        pid: of the program itself; None while it does not run.
        restarts: how often it was started again because it had ended.
    """

    process: LocalProcess
    pid: int | None
    restarts: int


def of(cluster: Cluster) -> LocalProcesses:
    """The local processes of a cluster. Raises NotApplicable where the provider has none."""
    cluster.require(Capability.LOCAL_PROCESSES)
    return LocalProcesses(ledger.folder(cluster.name))


class LocalProcesses:
    """The local processes of one cluster. Any process of the harness may use it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    # files ---------------------------------------------------------------------------------

    def folder(self, name: str) -> Path:
        """A folder of the process's own, for configuration and certificates; made if need be.

        Its log is not in there: some programs watch the folder of their configuration, and would
        read it anew with every line that they write.
        """
        path = self._folder / "processes" / name / "own"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def log_file(self, name: str) -> Path:
        """Where it writes."""
        return self._folder / "processes" / name / "log"

    def log(self, name: str) -> str:
        """What it wrote, over all its starts; "" when there is nothing."""
        try:
            return self.log_file(name).read_text(errors="replace")
        except OSError:
            return ""

    def port(self) -> int:
        """A port of 127.0.0.1 that no cluster has, kept for this one as long as it is there."""
        return ports.take(self._folder)

    # running -------------------------------------------------------------------------------

    def start(self, process: LocalProcess, *, deadline: float = READY_DEADLINE) -> None:
        """Start it and wait until it is ready; one of the same name is ended before.

        Raises:
            ProcessError: it cannot be started, ends again and again, or is not ready in time;
                with the end of its log.
        """
        self.launch(process)
        self.wait_ready(process.name, deadline=deadline)

    def launch(self, process: LocalProcess) -> None:
        """As :meth:`start`, without waiting: several may start at once. Raises ProcessError."""
        self.stop(process.name)
        own = self.folder(process.name)
        folder = own.parent
        if shutil.which(process.argv[0]) is None:
            raise ProcessError(f"{process.name}: {process.argv[0]} is not a program")
        # before it runs: whoever finds this one killed finds what was started
        (folder / "process.json").write_text(json.dumps(asdict(process), indent=1))
        for file in map(Path, process.leaves):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        keeping.start(
            self._folder, folder, process.argv, env=process.env, cwd=own, restarts=process.restarts
        )

    def wait_ready(self, name: str, *, deadline: float = READY_DEADLINE) -> None:
        """Wait until it is ready. Raises ProcessError, with the end of its log."""
        end = time.monotonic() + deadline
        seen = "it does not run"
        while time.monotonic() < end:
            state = self.state(name)
            if state is None:
                raise ProcessError(f"{name} was never started")
            if state.pid is not None:
                seen = "" if state.process.ready is None else _asked(state.process.ready)
                if not seen:
                    return
            elif keeping.keeper(self._folder / "processes" / name) is None:
                self._fail(name, "it ended")
            if state.restarts >= HOPELESS:
                self._fail(name, f"it ended {state.restarts} times")
            time.sleep(_LOOK)
        self._fail(name, f"not within {deadline:.0f} s: {seen}")

    def stop(self, *names: str) -> None:
        """Kill processes, without notice; no error for those that do not run."""
        for name in names:
            keeping.stop(self._folder, self._folder / "processes" / name)
            if (state := self.state(name)) is not None:
                self._tidy(state.process)

    def restart(self, *names: str, deadline: float = READY_DEADLINE) -> None:
        """Kill processes at once, start them anew, wait until all are ready.

        Raises:
            ProcessError: one was never started, or does not get ready.
        """
        states = [self.state(name) for name in names]
        self.stop(*names)
        for name, state in zip(names, states, strict=True):
            if state is None:
                raise ProcessError(f"{name} was never started")
            self.launch(state.process)
        for name in names:
            self.wait_ready(name, deadline=deadline)

    def forget(self, name: str) -> None:
        """Kill it and remove its folder."""
        self.stop(name)
        shutil.rmtree(self._folder / "processes" / name, ignore_errors=True)

    def stop_all(self) -> None:
        """Kill every process of the cluster, whatever is written down about it."""
        self.stop(*self.names())
        for _ in range(3):  # what was just being started may show only now
            left = belonging.alive(self._folder)
            if not left:
                return
            for pid in left:
                belonging.kill(pid)

    # looking -------------------------------------------------------------------------------

    def names(self, system: str | None = None) -> list[str]:
        """Names of the processes that were started, of one *system* or of all."""
        found = [path.parent.name for path in self._folder.glob("processes/*/process.json")]
        states = {name: self.state(name) for name in sorted(found)}
        return [
            name
            for name, state in states.items()
            if state is not None and (system is None or state.process.system == system)
        ]

    def state(self, name: str) -> State | None:
        """How it is; None when it was never started."""
        folder = self._folder / "processes" / name
        try:
            data = json.loads((folder / "process.json").read_text())
        except (OSError, ValueError):
            return None
        tuples = {key: tuple(data[key]) for key in ("argv", "leaves")}
        process = LocalProcess(**{**data, **tuples})
        return State(process, *keeping.program(self._folder, folder))

    def runs(self, name: str, key: str) -> bool:
        """Whether it runs, and is what *key* stands for."""
        state = self.state(name)
        return state is not None and state.pid is not None and state.process.key == key

    def ended(self) -> list[str]:
        """Names of the processes that should run and do not."""
        states = {name: self.state(name) for name in self.names()}
        return [name for name, state in states.items() if state is None or state.pid is None]

    def _tidy(self, process: LocalProcess) -> None:
        """Remove what it left outside of its folder, unless others still need it."""
        if not process.leaves:
            return
        needed: set[str] = set()
        for note in self._folder.parent.glob("*/processes/*/process.json"):
            other = LocalProcesses(note.parents[2])
            if (other._folder, note.parent.name) != (self._folder, process.name):
                state = other.state(note.parent.name)
                needed |= set(state.process.leaves) if state is not None and state.pid else set()
        for path in (Path(file) for file in process.leaves if file not in needed):
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder in (Path("/tmp"), Path(tempfile.gettempdir())):
                    break
                try:
                    folder.rmdir()
                except OSError:  # it holds something else, or is not ours to remove
                    break

    def _fail(self, name: str, why: str) -> None:
        raise ProcessError(
            f"{name} is not ready: {why}",
            output=self.log(name)[-6000:],
            hint=f"its log: {self.log_file(name)}",
        )


def _asked(url: str) -> str:
    """Why *url* does not answer 200; "" when it does."""
    trust = ssl._create_unverified_context()  # of a process that we started on this host
    try:
        with urllib.request.urlopen(url, timeout=2, context=trust) as answer:
            return "" if answer.status == 200 else f"{url} answers {answer.status}"
    except (OSError, ValueError) as error:
        return f"{url}: {error}"
