"""An OCI runtime in front of runc, for hosts that lack a capability.

``docker run --privileged`` asks for every capability that the kernel knows. Where the host's own
bounding set lacks one (a virtual machine or container with fewer rights), runc fails with "unable
to apply caps", although nothing in the container needs it. This program drops from the OCI
configuration what the host does not have, raises an ``oomScoreAdj`` that the host may not set, and
becomes runc.

It is copied into the cache with a first line that names an interpreter, and runs at each start of
a container and at each exec: so it stands alone, imports little, and keeps to Python 3.8.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # the typing module would cost more than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: capability names by number, from the kernel's include/uapi/linux/capability.h
NAMES = (  # noqa: SIM905
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE "
    "NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO "
    "SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME "
    "SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG "
    "WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
).split()

#: runc's flags before the command that take a value as the next argument
GLOBAL_VALUES = ("--root", "--log", "--log-format", "--criu", "--rootless")


def bounding() -> set[str]:
    """Names, with ``CAP_``, in this process's bounding set."""
    with open("/proc/self/status") as status:
        mask = next(int(line.split()[1], 16) for line in status if line.startswith("CapBnd:"))
    return {"CAP_" + name for number, name in enumerate(NAMES) if mask >> number & 1}


def clean(process: dict[str, Any], allowed: set[str], lowest: Callable[[int], int]) -> bool:
    """Take out of an OCI *process* what the host does not have; whether anything changed.

    *lowest* answers with the ``oom_score_adj`` nearest to a wanted one that the host lets us set.
    """
    changed = False
    for kind, names in (process.get("capabilities") or {}).items():
        kept = [name for name in names or [] if name in allowed]
        if len(kept) != len(names or []):
            process["capabilities"][kind] = kept
            changed = True
    wanted = process.get("oomScoreAdj")
    if wanted is not None and lowest(wanted) != wanted:
        process["oomScoreAdj"] = lowest(wanted)
        changed = True
    return changed


def lowest_score(wanted: int, path: str = "/proc/self/oom_score_adj") -> int:
    """*wanted* if it can be set, else the present score.

    The kernel's floor (it lets a process without CAP_SYS_RESOURCE go down to a value that it does
    not show) is found out by trying, on this process: runc takes it over, and sets it anyway.
    """
    try:
        with open(path, "w") as handle:
            handle.write(str(wanted))
    except PermissionError:
        with open(path) as handle:
            return int(handle.read())
    return wanted


def target(args: list[str]) -> tuple[str, str | None] | None:
    """The file that runc will read its process from and the key in it, or None.

    ``create`` and ``run`` read ``config.json`` of a bundle, ``exec`` the file after ``--process``.
    """
    rest = list(args)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in GLOBAL_VALUES else rest[1:]
    if not rest:
        return None
    if rest[0] in ("create", "run", "restore"):
        bundle = _value(rest, ("--bundle", "-b")) or "."
        return os.path.join(bundle, "config.json"), "process"
    if rest[0] == "exec":
        path = _value(rest, ("--process", "-p"))
        return (path, None) if path else None
    return None


def _value(args: list[str], flags: tuple[str, ...]) -> str | None:
    for number, arg in enumerate(args):
        if arg in flags and number + 1 < len(args):
            return args[number + 1]
        for flag in flags:
            if arg.startswith(flag + "="):
                return arg[len(flag) + 1 :]
    return None


def rewrite(path: str, key: str | None) -> None:
    """Clean the process in *path*, in place: its owner and mode stay, and runc reads it next."""
    with open(path) as handle:
        config = json.load(handle)
    process = config if key is None else config.get(key) or {}
    if clean(process, bounding(), lowest_score):
        with open(path, "w") as handle:
            json.dump(config, handle)


def main(runc: str, args: list[str]) -> None:
    """Clean what runc is about to read, then become runc.

    What cannot be read is left for runc to complain about, in the words that Docker knows.
    """
    found = target(args)
    if found:
        try:
            rewrite(*found)
        except (OSError, ValueError, KeyError) as error:
            sys.stderr.write("capability shim: %s: %s\n" % (found[0], error))  # noqa: UP031
    os.execv(runc, [runc] + args)  # noqa: RUF005


if __name__ == "__main__":
    main(os.environ.get("MUSTER_RUNC") or "@RUNC@", sys.argv[1:])
