"""A Docker engine that answers, and how to speak to it: through the docker command.

The command knows contexts, TLS and ssh; speaking the API ourselves would mean to know them too.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters import cache
from clusters.command import run
from clusters.errors import CommandError, EngineError

#: our own engine's socket; in /run because what is there is gone after a reboot, as the engine is
SOCKET = Path("/run/muster/docker.sock")

#: what the docker command says when no engine answers
_SILENT = ("cannot connect to the docker daemon", "error during connect", "connection refused")
_DENIED = "permission denied"


@dataclass(frozen=True)
class Engine:
    """A Docker engine that answered.

    Attributes:
        host: value of DOCKER_HOST; "" for docker's own default (or the context in use).
        own: started by us, so that :func:`clusters.engine.stop` may stop it.
        cgroup_version: "1" or "2".
        data_root: its folder, on the engine's machine.
        runtime: name of its default OCI runtime.
    """

    host: str
    own: bool
    version: str
    api_version: str
    cgroup_driver: str
    cgroup_version: str
    data_root: Path
    storage_driver: str
    runtime: str

    def env(self) -> dict[str, str]:
        """Variables that make docker and kind use this engine.

        BuildKit is off: it is a plug-in that may be missing, and the images made here need none
        of it.
        """
        return {**_address(self.host), "DOCKER_BUILDKIT": "0", "DOCKER_CLI_HINTS": "false"}

    def docker(self, *args: str, timeout: float = 120.0, stdin: str | bytes | None = None) -> str:
        """Run ``docker ARGS`` and return what it printed.

        Args:
            timeout: seconds.

        Raises:
            EngineError: the engine went away.
            CommandError: anything else that docker refuses; holds its words.
        """
        try:
            return run([docker_command(), *args], timeout=timeout, stdin=stdin, env=self.env())
        except CommandError as error:
            if _is_silence(error.output):
                raise EngineError(
                    f"the Docker engine at {self.host or 'the default address'} does not answer"
                    f" any more ({' '.join(args[:2])})",
                    hint=f"see {_log()}, then run the command again: it starts a new engine"
                    if self.own
                    else "start it again",
                ) from error
            raise

    def has_image(self, ref: str) -> bool:
        """Whether the engine has the image *ref*. Raises EngineError when it does not answer."""
        try:
            self.docker("image", "inspect", "--format", "{{.Id}}", ref, timeout=30)
        except CommandError as error:
            if "no such image" in error.output.lower():
                return False
            raise
        return True


def _is_silence(output: str) -> bool:
    """Whether docker says that the engine gave no answer, rather than which answer it gave."""
    text = output.lower()
    # of a registry that refuses connections the engine tells, in the same words
    return "response from daemon" not in text and any(word in text for word in _SILENT)


def docker_command() -> str:
    """Path of the docker command. Raises EngineError where there is none."""
    found = shutil.which("docker")
    if found is None:
        raise EngineError(
            "the docker command is not installed",
            hint="install Docker (Debian: apt-get install docker.io) or run as root on Debian",
        )
    return found


def find() -> Engine | None:
    """The engine that answers, without installing or starting anything.

    DOCKER_HOST rules when it is set. Else an engine of our own that runs is kept for as long as it
    runs, even when another one comes up beside it: our clusters live in it.

    Raises:
        EngineError: DOCKER_HOST names an engine that does not answer, or this user may not use
            the engine: falling back to another one in silence would be a surprise.
    """
    named = _docker_host()
    if named:
        engine = _ask(named)
        if engine is None:
            raise EngineError(
                f"no Docker engine answers at DOCKER_HOST={named}",
                hint="start it, or unset DOCKER_HOST to use (or get) another one",
            )
        return engine
    if SOCKET.exists() and (engine := _ask(f"unix://{SOCKET}")) is not None:
        return engine
    return _ask("")


def found_default(wait: float) -> Engine | None:
    """The engine at docker's default address, given *wait* seconds to come up."""
    end = time.monotonic() + wait
    while True:
        engine = _ask("")
        if engine is not None or time.monotonic() >= end:
            return engine
        time.sleep(0.3)  # a service that starts offers nothing to wait on but its answer


def _docker_host() -> str:
    """DOCKER_HOST, unless it only spells out what is tried anyway."""
    value = os.environ.get("DOCKER_HOST", "")
    return "" if value in ("unix:///var/run/docker.sock", f"unix://{SOCKET}") else value


def _ask(host: str) -> Engine | None:
    if shutil.which("docker") is None:
        return None
    version = _query(host, "version")
    server = (version or {}).get("Server") or {}
    if not server:
        return None
    info = _query(host, "info") or {}
    if not info.get("ServerVersion"):
        return None
    return Engine(
        host=host,
        own=host == f"unix://{SOCKET}",
        version=str(server.get("Version", "")),
        api_version=str(server.get("ApiVersion", "")),
        cgroup_driver=str(info.get("CgroupDriver", "")),
        cgroup_version=str(info.get("CgroupVersion") or "1"),
        data_root=Path(info.get("DockerRootDir", "")),
        storage_driver=str(info.get("Driver", "")),
        runtime=str(info.get("DefaultRuntime", "")),
    )


def _address(host: str) -> dict[str, str]:
    """Variables that send docker to *host*; an empty DOCKER_HOST is as good as none."""
    # docker refuses to choose between DOCKER_HOST and DOCKER_CONTEXT, so only one may be set
    return {"DOCKER_HOST": host, "DOCKER_CONTEXT": ""} if host else {"DOCKER_HOST": ""}


def _query(host: str, what: str) -> dict[str, Any] | None:
    """Answer of ``docker version`` or ``docker info``; None when no engine answers."""
    try:
        text = run(
            [docker_command(), what, "--format", "{{json .}}"], timeout=20, env=_address(host)
        )
        answer = json.loads(text)
    except CommandError as error:
        if _DENIED in error.output.lower():
            raise EngineError(
                "a Docker engine is there, but this user may not use it",
                hint="join the docker group (usermod -aG docker USER, then log in again)"
                " or run as root",
            ) from error
        return None
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _log() -> Path:
    return cache.root() / "logs" / "dockerd.log"
