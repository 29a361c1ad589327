"""What kube-proxy's image has beside kube-proxy: iptables and what that links against.

It is taken out of the base image's root file system. Each node unpacks kube-proxy's image before
its pod network comes up, so its size is in the way of every new cluster: 10 MB in 200 files take
a fraction of the seconds that 96 MB in 4600 do.
"""

from __future__ import annotations

import tarfile
from fnmatch import fnmatchcase
from pathlib import Path

from clusters.command import run
from clusters.errors import CommandError, PartError

#: file names, as the shell matches them
FILES = (
    "bin", "sbin", "lib", "lib64", "usr/lib64/*", "usr/lib/ld-linux*",
    "usr/sbin/*tables*", "usr/sbin/conntrack", "usr/sbin/modprobe", "usr/bin/kmod",
    "usr/bin/sh", "usr/bin/dash", "etc/alternatives/*tables*", "usr/lib/*/xtables/*",
    *(
        f"usr/lib/*/{name}.so*"
        for name in (
            "ld-linux*", "libc", "libm", "libxtables", "libip?tc", "libmnl", "libnftnl",
            "libnfnetlink", "libnetfilter_conntrack", "libzstd", "liblzma", "libcrypto",
        )
    ),
    "etc/passwd", "etc/group", "etc/protocols", "etc/services",
)  # fmt: skip

#: lists what the loader does not find for any program, library or match of iptables
_UNRESOLVED = """
for loader in /usr/lib64/ld-linux* /usr/lib/ld-linux*; do [ -e "$loader" ] && break; done
for file in /usr/sbin/* /usr/bin/* /usr/lib/*/*.so* /usr/lib/*/xtables/*.so; do
  "$loader" --list "$file" 2>&1 | while read -r line; do
    case "$line" in *"not found"*|*"cannot open"*) echo "$file: $line" ;; esac
  done
done
"""
#: what must start
_TRIED = (
    ("iptables", "--version"), ("ip6tables", "--version"), ("iptables-save", "--version"),
    ("iptables-restore", "--version"), ("iptables-legacy", "--version"),
    ("conntrack", "--version"), ("modprobe", "--version"), ("sh", "-c", "exit 0"),
)  # fmt: skip


def layer(base: Path, target: Path, scratch: Path) -> Path:
    """Write the layer *target* from the root file system *base* (both are tar files).

    Args:
        scratch: a folder for trying it out.

    Raises:
        PartError: something that is needed is not in *base* any more.
    """
    with tarfile.open(base) as source, tarfile.open(target, "w") as chosen:
        members = {member.name.removeprefix("./"): member for member in source}
        wanted = {name for name in members if any(fnmatchcase(name, f) for f in FILES)}
        folders = {str(parent) for name in wanted for parent in Path(name).parents} - {"."}
        for name in sorted(wanted | folders):
            member = members[name]
            chosen.addfile(member, source.extractfile(member) if member.isfile() else None)
    root = scratch / "proxyfs"
    root.mkdir()
    run(["tar", "-xf", str(target), "-C", str(root)])
    lacking = run(["chroot", str(root), "sh", "-c", _UNRESOLVED])
    if lacking:
        raise PartError(f"kube-proxy's image lacks libraries: {lacking.strip()}")
    for command in _TRIED:
        try:
            run(["chroot", str(root), *command])
        except CommandError as error:
            raise PartError(f"kube-proxy's image lacks what {command[0]} needs: {error}") from error
    return target
