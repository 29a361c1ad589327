"""Installing what an engine of our own needs, from Debian's packages; only what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from clusters import cache
from clusters.command import run, run_logged
from clusters.errors import CommandError, EngineError
from clusters.progress import step

#: command -> Debian package that has it
PACKAGES = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
}

#: seconds given to a service that apt has just started
SERVICE_START = 20.0

_SBIN = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_installed = False


def which(command: str) -> str | None:
    """Path of *command*, also where PATH lacks the sbin folders."""
    return shutil.which(command) or shutil.which(command, path=_SBIN)


def is_root() -> bool:
    """Whether this process may install packages and start an engine."""
    return os.geteuid() == 0


def is_debian() -> bool:
    """Whether packages come from apt here."""
    return Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def refused() -> None:
    """Raise EngineError when this host does not allow an engine of our own."""
    if not is_root():
        raise EngineError(
            "no Docker engine answers, and this user may not start one",
            hint="start Docker (systemctl start docker), or run as root on Debian to get one",
        )
    if not is_debian():
        raise EngineError(
            "no Docker engine answers, and it is installed by itself on Debian only",
            hint="install Docker from your distribution's packages and start it",
        )


def missing() -> None:
    """Install the packages of the commands that are not there.

    Raises:
        EngineError: apt-get failed; holds the end of its output.
    """
    global _installed
    wanted = sorted({PACKAGES[c] for c in PACKAGES if which(c) is None})
    if not wanted:
        return
    try:
        packages(wanted)
    except CommandError as error:
        raise EngineError(
            f"installing {' '.join(wanted)} failed: {error}",
            hint=f"see {_log()}, or install Docker by hand",
        ) from error
    still = sorted(c for c in PACKAGES if which(c) is None)
    if still:
        raise EngineError(f"{', '.join(still)} still missing after installing {' '.join(wanted)}")
    _installed = True


def packages(wanted: Sequence[str]) -> None:
    """Install Debian packages. Raises CommandError, with the end of apt's output."""
    # a fresh machine may be installing updates by itself just now
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=600"]
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    with step(f"install {' '.join(wanted)}") as detail:
        # what a killed installation left half-done would stop this one
        run(["dpkg", "--configure", "-a"], timeout=600, env=env, check=False)
        run_logged([*apt, "update"], _log(), timeout=600, env=env, detail=detail)
        names = list(wanted)
        if "docker.io" in names and _known("docker-cli"):
            names.append("docker-cli")  # a package of its own since Debian 13
        run_logged(
            [*apt, "install", "-y", "--no-install-recommends", *names],
            _log(), timeout=1800, env=env, detail=detail,
        )  # fmt: skip


def _log() -> Path:
    return cache.root() / "logs" / "apt.log"


def just_installed() -> float:
    """Seconds that a service which apt may have started is worth waiting for."""
    return SERVICE_START if _installed and Path("/run/systemd/system").is_dir() else 0.0


def _known(package: str) -> bool:
    try:
        return bool(run(["apt-cache", "show", "--no-all-versions", package], timeout=60))
    except CommandError:
        return False
