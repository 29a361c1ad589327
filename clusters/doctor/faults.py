"""Which kernel features the faults can use, found out by trying them.

All is tried in a network namespace that ends with the process that made it, so nothing is to be
undone, whatever happens.
"""

from __future__ import annotations

import shutil

from clusters import hostfacts
from clusters.command import run
from clusters.doctor.check import Check, State
from clusters.engine.install import which
from clusters.errors import CommandError

_SCRIPT = """
{ip} link set lo up && echo namespace
{iptables} -A OUTPUT -m statistic --mode random --probability 0.1 -j DROP && echo statistic
{tc} qdisc add dev lo root netem delay 10ms && echo netem
{tc} qdisc del dev lo root
{tc} qdisc add dev lo root tbf rate 1mbit burst 32kbit latency 400ms && echo tbf
"""

_LACKING = "behaviours that need them are NOT_APPLICABLE here"
#: feature -> its name, what it is for, and what becomes of that without it
FEATURES = {
    "statistic": ("iptables statistic match", "lost packets", _LACKING),
    "netem": ("tc netem", "delayed packets", "a program on the node delays them instead"),
    "tbf": ("tc tbf", "slow links", _LACKING),
}


def features() -> set[str] | None:
    """Which of ``statistic``, ``netem`` and ``tbf`` the kernel has; None when it cannot be told."""
    commands = {name: which(name) for name in ("ip", "iptables", "tc")}
    unshare = shutil.which("unshare")
    if unshare is None or None in commands.values():
        return None
    # without root, a user namespace of its own gives the rights over a network namespace
    flags = ["--net"] if hostfacts.is_root() else ["--user", "--map-root-user", "--net"]
    try:
        text = run(
            [unshare, *flags, "sh", "-c", _SCRIPT.format(**commands)], timeout=20, check=False
        )
    except CommandError:
        return None
    found = set(text.split())
    return found - {"namespace"} if "namespace" in found else None


def checks() -> list[Check]:
    """One check per feature."""
    found = features()
    result = []
    for key, (name, use, without) in FEATURES.items():
        needed = f"for faults: {use}"
        if found is None:
            result.append(
                Check(
                    name, State.WARN, "cannot be tried here", needed,
                    "needs unshare, ip, tc and iptables, and the right to a network namespace",
                )
            )  # fmt: skip
        elif key in found:
            result.append(Check(name, State.OK, "works", needed))
        else:
            result.append(Check(name, State.WARN, "this kernel has it not", needed, without))
    frozen = hostfacts.freezer()
    result.append(
        Check(
            "cgroup freezer", State.OK if frozen else State.WARN,
            "there" if frozen else "not there", "for faults: nodes that are paused",
            "" if frozen else "behaviours that pause nodes are NOT_APPLICABLE here",
        )
    )  # fmt: skip
    return result
