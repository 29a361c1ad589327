"""Debian root file systems, by debootstrap, as tar files in the cache.

Debian packages are pinned by suite only: a mirror serves one version of each at a time. The tar
that was made stays in use until the package list changes or the cache is emptied.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from clusters import cache
from clusters.command import run, run_logged
from clusters.engine import install
from clusters.errors import CommandError, PartError
from clusters.parts.pins import pins
from clusters.progress import step

#: root file system -> its Debian packages
PACKAGES = {
    # what a CPython of the host needs, and what kube-proxy and the network faults need
    "base": (
        "libssl3", "libffi8", "libsqlite3-0", "libbz2-1.0", "liblzma5", "zlib1g", "libreadline8",
        "libgomp1", "libstdc++6", "libuuid1", "iptables", "conntrack", "kmod", "iproute2",
        "procps", "busybox",
    ),
    # what kind's own base image installs, less network storage, plus Debian's container runtime
    "node": (
        "systemd", "systemd-sysv", "dbus", "conntrack", "iptables", "nftables", "iproute2",
        "ethtool", "util-linux", "mount", "kmod", "libseccomp2", "pigz", "jq", "curl",
        "ca-certificates", "procps", "socat", "hostname", "containerd", "runc", "bash",
    ),
}  # fmt: skip

#: root file system -> link -> what it leads to
LINKS = {
    # an operator's init containers wait for a name with it; Debian's own brings 10 MB along
    "base": {"usr/local/bin/nslookup": "/bin/busybox"},
}

_CLEAN = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
)


def folder(name: str) -> Path:
    """Where the tar of a root file system lies when it is made."""
    return cache.root() / "rootfs" / f"{name}-{pins().debian}-{cache.key(inputs(name))}"


def inputs(name: str) -> list[object]:
    """What decides a root file system, for content keys."""
    return [pins().debian, sorted(PACKAGES[name]), LINKS.get(name, {}), 1]


def made(name: str) -> bool:
    """Whether a root file system is cached."""
    return folder(name).exists()


def tree(name: str) -> Path:
    """The tar of a minimal Debian with the packages of *name*, made when it is not cached.

    Raises:
        PartError: not root, no debootstrap to be had, or a package that cannot be installed.
    """

    def make(partial: Path) -> None:
        if os.geteuid() != 0:
            raise PartError(
                f"the root file system {name!r} has to be built, which needs root",
                hint="run as root, or use PARTS=pull where a registry can be reached",
            )
        with step(f"build root file system {name}") as detail:
            _make(name, partial, detail)

    return cache.published(folder(name), make) / "root.tar"


def _make(name: str, target: Path, detail: Callable[[str], None]) -> None:
    log = cache.root() / "logs" / f"rootfs-{name}.log"
    log.unlink(missing_ok=True)
    root = target / "root"
    try:
        run_logged(
            [*_alone(), _debootstrap(), "--variant=minbase",
             f"--include={','.join(PACKAGES[name])}", pins().debian, str(root)],
            log, timeout=1800, env={"DEBIAN_FRONTEND": "noninteractive"}, detail=detail,
        )  # fmt: skip
    except CommandError as error:
        raise PartError(f"debootstrap of {name!r} failed: {error}") from error
    for path in _CLEAN:
        for item in (root / path).glob("*"):
            real_folder = item.is_dir() and not item.is_symlink()
            shutil.rmtree(item) if real_folder else item.unlink()
    for link, target_of in LINKS.get(name, {}).items():
        (root / link).symlink_to(target_of)
    detail("packing")
    # numeric owners: the names of this host mean nothing in there
    run(
        ["tar", "--numeric-owner", "--one-file-system", "--sort=name", "-C", str(root),
         "--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*",
         "-cf", str(target / "root.tar"), "."],
        timeout=600,
    )  # fmt: skip
    shutil.rmtree(root)


def _alone() -> list[str]:
    """What gives debootstrap processes and mounts of its own, which all go when it is killed."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    try:
        run([*command, "true"], timeout=20)
    except CommandError:
        return []  # its pieces may then go on for a while, in a folder that nobody looks at
    return command


def _debootstrap() -> str:
    if install.which("debootstrap") is None and install.is_root() and install.is_debian():
        try:
            install.packages(["debootstrap"])
        except CommandError as error:
            raise PartError(f"debootstrap cannot be installed: {error}") from error
    found = install.which("debootstrap")
    if found is None:
        raise PartError("debootstrap is not installed", hint="apt-get install debootstrap")
    return found
