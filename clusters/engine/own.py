"""An engine of our own: dockerd with its own data root, socket, pid file and configuration.

It lives beside whatever else the host has: nothing in /etc or /var is touched, images and
containers lie in the cache folder, and all that is in /run is below one folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from clusters import cache
from clusters.engine import capabilities, leftovers
from clusters.engine.client import SOCKET
from clusters.engine.install import which
from clusters.engine.runtime import install_shim
from clusters.errors import EngineError
from clusters.progress import say, step

#: seconds for dockerd to answer after its start (measured: 1-3; a large data root takes longer)
START_TIMEOUT = 90.0
#: seconds for dockerd to stop its containers and end; it gives each container 10 s itself
STOP_TIMEOUT = 60.0
#: seconds between two looks at a process that is not our child
_LOOK = 0.1

_children: list[subprocess.Popen[bytes]] = []  # kept, so that their end is noticed


def run_dir() -> Path:
    """The folder with socket, pid file, exec root and configuration."""
    return SOCKET.parent


def data_root() -> Path:
    """Where our engine keeps images and containers."""
    return cache.root() / "docker"


def log() -> Path:
    """Our engine's log."""
    return cache.root() / "logs" / "dockerd.log"


def _pid_file() -> Path:
    return run_dir() / "docker.pid"


def _config_file() -> Path:
    return run_dir() / "daemon.json"


def _containerd_pid_file() -> Path:
    return run_dir() / "exec" / "containerd" / "containerd.pid"


def _marker(root: Path) -> Path:
    return root / ".muster-engine"


def pid() -> int | None:
    """Process id of our dockerd; None when it does not run, whatever the pid file says."""
    try:
        number = int(_pid_file().read_text())
        exe = Path(os.readlink(f"/proc/{number}/exe")).name
        args = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    # a pid is given to another process some time after a reboot or a kill; an upgraded
    # package leaves "dockerd (deleted)"
    ours = exe.startswith("dockerd") and str(_config_file()).encode() in args
    return number if ours else None


def died() -> bool:
    """Whether our engine was killed: what runs in it runs on, and nobody answers for it."""
    return _pid_file().exists() and pid() is None  # one that is told to stop takes its file along


def healthy() -> bool:
    """Whether our engine runs, on the data root that it was started with, and was seen to work.

    A data root that was removed under a running engine (an emptied cache) leaves an engine that
    answers and can do nothing.
    """
    number = pid()
    if number is None:
        return False
    try:
        config = json.loads(_config_file().read_text())
        if not all(Path(r["path"]).exists() for r in config.get("runtimes", {}).values()):
            return False
        return _marker(Path(config["data-root"])).read_text() == str(number)
    except (OSError, ValueError, KeyError):
        return False


def start() -> None:
    """Start our engine, after removing what is left of a former one.

    Raises:
        EngineError: it did not come up; holds the end of its log.
    """
    stop()
    with step("start the Docker engine"):
        data_root().mkdir(parents=True, exist_ok=True)
        run_dir().mkdir(parents=True, exist_ok=True)
        _config_file().write_text(json.dumps(_config(), indent=1))
        process = _spawn()
        _await_answer(process)


def confirm() -> None:
    """Note that the engine that runs has been seen to work; :func:`healthy` asks for it."""
    _marker(data_root()).write_text(str(pid()))


def _config() -> dict[str, object]:
    config: dict[str, object] = {
        "data-root": str(data_root()),
        "exec-root": str(run_dir() / "exec"),
        "pidfile": str(_pid_file()),
        "hosts": [f"unix://{SOCKET}"],
        # a chatty container must not fill the disk
        "log-driver": "json-file",
        "log-opts": {"max-size": "50m", "max-file": "2"},
    }
    lacking = capabilities.lacking()
    if lacking:
        shim = install_shim(which("runc") or "/usr/sbin/runc")
        say(f"this host lacks {', '.join(lacking)}: containers start through {shim.name}")
        config |= {
            "runtimes": {"muster": {"path": str(shim)}},
            "default-runtime": "muster",
        }
    if "CAP_SYS_RESOURCE" in lacking:
        config["oom-score-adjust"] = 0  # lower than its parent's needs that capability
    return config


def _spawn() -> subprocess.Popen[bytes]:
    dockerd = which("dockerd")
    if dockerd is None:
        raise EngineError("dockerd is not installed", hint="apt-get install docker.io")
    log().parent.mkdir(parents=True, exist_ok=True)
    if log().exists():
        log().replace(log().with_suffix(".log.1"))
    path = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
    with log().open("ab") as handle:
        process = subprocess.Popen(
            [dockerd, "--config-file", str(_config_file())],
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": path, "DOCKER_HOST": ""},
            cwd="/",
            start_new_session=True,
        )
    _children.append(process)
    return process


def _await_answer(process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_TIMEOUT
    while not _ping():
        if process.poll() is not None:
            raise EngineError(
                f"dockerd ended with code {process.returncode}:\n{_log_tail()}",
                hint=f"see {log()}",
            )
        if time.monotonic() > end:
            process.terminate()
            raise EngineError(
                f"dockerd does not answer after {START_TIMEOUT:.0f} s:\n{_log_tail()}",
                hint=f"see {log()}",
            )
        time.sleep(_LOOK)


def _ping() -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(str(SOCKET))
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return connection.recv(64).split(b" ")[1:2] == [b"200"]
    except OSError:
        return False


def stop() -> bool:
    """Stop our engine, its containers and its containerd, and unmount what they left.

    Returns whether it ran.

    Raises:
        EngineError: it, or its containerd, did not end.
    """
    number = pid()
    roots = [data_root(), run_dir() / "exec"]
    with contextlib.suppress(OSError, ValueError, KeyError):
        roots.append(Path(json.loads(_config_file().read_text())["data-root"]))
    containerd = _containerd()
    if number is not None:
        with step("stop the Docker engine"):
            _end(number, "dockerd", signal.SIGTERM, STOP_TIMEOUT)
    if containerd is not None:  # it goes with dockerd; after a SIGKILL of dockerd it may not
        _end(containerd, "containerd", signal.SIGTERM, 20.0)
    leftovers.kill_containers(_containerd_pid_file().with_name("containerd.sock"))
    leftovers.unmount(roots)
    # a containerd.pid whose process is gone, or is a zombie that nobody reaps, makes the next
    # dockerd wait in vain for that containerd instead of starting one
    for path in (_pid_file(), SOCKET, _containerd_pid_file()):
        path.unlink(missing_ok=True)
    return number is not None


def forget() -> None:
    """Remove what a stopped engine has in /run; images stay in the cache."""
    if pid() is None and not any(p.is_relative_to(run_dir()) for p in leftovers.mounts()):
        shutil.rmtree(run_dir(), ignore_errors=True)


def _containerd() -> int | None:
    """Process id of the containerd that our dockerd started."""
    try:
        number = int(_containerd_pid_file().read_text())
        args = Path(f"/proc/{number}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return number if str(_containerd_pid_file().parent).encode() in args else None


def _end(number: int, name: str, first: signal.Signals, patience: float) -> None:
    """Signal a process, wait for its end, and use SIGKILL when it takes longer than *patience*."""
    for sign, seconds in ((first, patience), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, sign)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not _runs(number):
                return
            time.sleep(_LOOK)
    raise EngineError(f"{name} (pid {number}) does not end, not even with SIGKILL")


def _runs(number: int) -> bool:
    for child in _children:
        child.poll()  # ours would stay a zombie
    try:
        state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def _log_tail() -> str:
    try:
        lines = log().read_text(errors="replace").splitlines()[-12:]
    except OSError:
        return "  (no log)"
    return "\n".join(f"  | {line}" for line in lines)
