"""Debian root file systems, by debootstrap, as tar files in the cache.

Debian packages are pinned by suite only: a mirror serves one version of each at a time. The tar
that was made stays in use until the package list changes or the cache is emptied.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from clusters import cache
from clusters.command import run, run_logged
from clusters.errors import CommandError, PartError
from clusters.parts.pins import pins

#: what a CPython of the host needs, and what kube-proxy and the network faults need
BASE_PACKAGES = (
    "libssl3", "libffi8", "libsqlite3-0", "libbz2-1.0", "liblzma5", "zlib1g", "libreadline8",
    "libgomp1", "libstdc++6", "libuuid1", "iptables", "conntrack", "kmod", "iproute2", "procps",
)  # fmt: skip

#: what kind's own base image installs, less network storage, plus Debian's container runtime
NODE_PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "conntrack", "iptables", "nftables", "iproute2", "ethtool",
    "util-linux", "mount", "kmod", "libseccomp2", "pigz", "jq", "curl", "ca-certificates",
    "procps", "socat", "hostname", "containerd", "runc", "bash",
)  # fmt: skip

_CLEAN = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
)


def tree(name: str, packages: Sequence[str], detail: Callable[[str], None] | None = None) -> Path:
    """The tar of a minimal Debian with *packages*, made when it is not cached.

    Raises:
        PartError: not root, no debootstrap to be had, or a package that cannot be installed.
    """
    suite = pins().debian
    folder = cache.root() / "rootfs" / f"{name}-{suite}-{cache.key(suite, sorted(packages), 1)}"

    def make(partial: Path) -> None:
        if os.geteuid() != 0:
            raise PartError(
                f"the root file system {name!r} has to be built, which needs root",
                hint="run as root, or use PARTS=pull where a registry can be reached",
            )
        log = cache.root() / "logs" / f"rootfs-{name}.log"
        log.unlink(missing_ok=True)
        root = partial / "root"
        try:
            run_logged(
                [_debootstrap(), "--variant=minbase", f"--include={','.join(packages)}",
                 suite, str(root)],
                log, timeout=1800, env={"DEBIAN_FRONTEND": "noninteractive"}, detail=detail,
            )  # fmt: skip
        except CommandError as error:
            raise PartError(f"debootstrap of {name!r} failed: {error}") from error
        for path in _CLEAN:
            for item in (root / path).glob("*"):
                real_folder = item.is_dir() and not item.is_symlink()
                shutil.rmtree(item) if real_folder else item.unlink()
        # numeric owners: the names of this host mean nothing in there
        run(
            ["tar", "--numeric-owner", "--one-file-system", "--sort=name", "-C", str(root),
             "--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*",
             "-cf", str(partial / "root.tar"), "."],
            timeout=600,
        )  # fmt: skip
        shutil.rmtree(root)

    return cache.published(folder, make) / "root.tar"


def _debootstrap() -> str:
    found = shutil.which("debootstrap")
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        run(["apt-get", "update", "-q"], timeout=300)
        run(
            ["apt-get", "install", "-qy", "--no-install-recommends", "debootstrap"],
            timeout=300,
            env={"DEBIAN_FRONTEND": "noninteractive"},
        )
        found = shutil.which("debootstrap")
    if found is None:
        raise PartError("debootstrap is not installed", hint="apt-get install debootstrap")
    return found
