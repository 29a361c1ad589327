"""Checks of the machine itself: engine, control groups, capabilities, limits, room."""

from __future__ import annotations

import socket

from clusters import cache, engine, hostfacts
from clusters.doctor.check import Check, State
from clusters.doctor.needs import (
    COLD_DISK,
    INSTANCES,
    LEAST_INSTANCES,
    LEAST_MEMORY,
    LEAST_WATCHES,
    MEMORY,
    WARM_DISK,
    WATCHES,
    inotify_hint,
)
from clusters.engine import Engine, install
from clusters.errors import EngineError

#: the oldest engine that kind's nodes were run on
_OLDEST_ENGINE = (20, 10)


def engine_checks() -> list[Check]:
    """The engine, then what depends on which one it is."""
    try:
        found = engine.find()
    except EngineError as error:
        message, _, hint = str(error).partition("\n  next: ")
        state = Check("docker engine", State.FAIL, message, "20.10 or newer, for the nodes", hint)
        return [state, cgroup(None), capabilities(None)]
    return [docker(found), cgroup(found), capabilities(found)]


def docker(found: Engine | None) -> Check:
    """Whether an engine answers, which, and whose."""
    name, needed = "docker engine", "20.10 or newer, for the nodes"
    if found is None:
        try:
            install.refused()
        except EngineError as error:
            message, _, hint = str(error).partition("\n  next: ")
            return Check(name, State.FAIL, message, needed, hint)
        return Check(
            name, State.WARN, "none answers", needed,
            "nothing to do: the first command that needs one installs and starts it",
        )  # fmt: skip
    whose = "ours" if found.own else "the host's"
    text = (
        f"{found.version} (API {found.api_version}), {whose}; {found.storage_driver}"
        f" in {found.data_root}"
    )
    if _version(found.version) < _OLDEST_ENGINE:
        return Check(name, State.FAIL, text, needed, "upgrade Docker")
    if found.storage_driver == "vfs":
        return Check(
            name, State.WARN, text, needed,
            "storage driver vfs copies every image for every container: put the data root"
            " (XDG_CACHE_HOME for our own engine) on ext4 or xfs",
        )  # fmt: skip
    return Check(name, State.OK, text, needed)


def _version(text: str) -> tuple[int, ...]:
    digits = text.split("-")[0].split("+")[0].split(".")[:2]
    return tuple(int(part) for part in digits if part.isdigit()) or (999,)


def cgroup(found: Engine | None) -> Check:
    """Which control groups; the engine's word counts, for it may run elsewhere."""
    name, needed = "cgroups", "version 2, or 1 up to Kubernetes 1.34"
    version = found.cgroup_version if found else hostfacts.cgroup_version()
    driver = f", driver {found.cgroup_driver}" if found else ""
    if not version:
        return Check(name, State.FAIL, "none mounted", needed, "mount cgroup2 on /sys/fs/cgroup")
    text = f"version {version}{driver}"
    if version == "1":
        return Check(
            name, State.OK, f"{text}: Kubernetes 1.35 and newer refuse it by default", needed
        )
    return Check(name, State.OK, text, needed)


def capabilities(found: Engine | None) -> Check:
    """Whether privileged containers, as kind's nodes are, can start."""
    name, needed = "capabilities", "all, or an engine that copes without"
    lacking = hostfacts.lacking_capabilities()
    if not lacking:
        return Check(name, State.OK, "all", needed)
    text = f"without {', '.join(lacking)}"
    if found is None:
        return Check(name, State.OK, f"{text}; our engine will leave it out", needed)
    if found.own and found.runtime == "muster":
        return Check(name, State.OK, f"{text}; our engine's runtime shim leaves it out", needed)
    try:
        engine.check_privileged(found)
    except EngineError as error:
        message, _, hint = str(error).partition("\n  next: ")
        return Check(name, State.FAIL, f"{text}; {message}", needed, hint)
    return Check(name, State.OK, f"{text}; this engine copes", needed)


def inotify() -> Check:
    """The kernel's limits; nodes share them with this user."""
    limits = hostfacts.inotify()
    needed = f"{INSTANCES} instances, {WATCHES} watches: a few clusters"
    if limits.instances is None or limits.watches is None:
        return Check("inotify", State.OK, "no limits shown", needed)
    text = f"{limits.instances} instances, {limits.watches} watches"
    if hostfacts.is_root():
        text += f"; {hostfacts.inotify_instances_used()} instances in use"
    if limits.instances >= INSTANCES and limits.watches >= WATCHES:
        return Check("inotify", State.OK, text, needed)
    if hostfacts.is_root():
        return Check(
            "inotify", State.WARN, text, needed,
            f"nothing to do: `clusters up` raises them (until the next boot; {inotify_hint()})",
        )  # fmt: skip
    least = limits.instances >= LEAST_INSTANCES and limits.watches >= LEAST_WATCHES
    return Check("inotify", State.WARN if least else State.FAIL, text, needed, inotify_hint())


def disk() -> Check:
    """Room for the cache, which holds our engine's images, too."""
    root = cache.root()
    free = hostfacts.disk_free(root)
    needed = f"{COLD_DISK:.0f} GB for a first run, {WARM_DISK:.0f} GB once all is cached"
    text = f"{free:.0f} GB free for {root}"
    hint = "free some, or point XDG_CACHE_HOME at a larger disk"
    if free < WARM_DISK:
        return Check("disk", State.FAIL, text, needed, hint)
    if free < COLD_DISK:
        return Check("disk", State.WARN, text, needed, hint)
    return Check("disk", State.OK, text, needed)


def memory() -> Check:
    """Memory that is not in use."""
    needed = f"{MEMORY:.0f} GB for three nodes and one training job"
    available = hostfacts.memory_available()
    if available is None:
        return Check("memory", State.OK, "unknown", needed)
    text = f"{available:.1f} GB available"
    hint = "end other programs, or take a smaller topology"
    if available < LEAST_MEMORY:
        return Check("memory", State.FAIL, text, needed, hint)
    return Check("memory", State.OK if available >= MEMORY else State.WARN, text, needed, hint)


def loopback() -> Check:
    """Whether API servers can be published on 127.0.0.1, each on a port that the kernel picks."""
    needed = "one port per cluster, for its API server"
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            probe.listen(1)
            with socket.create_connection(probe.getsockname(), timeout=2):
                pass
    except OSError as error:
        return Check(
            "127.0.0.1", State.FAIL, f"no port can be used: {error.strerror or error}", needed,
            "bring the loopback interface up (ip link set lo up); free ports"
            " (net.ipv4.ip_local_port_range)",
        )  # fmt: skip
    return Check("127.0.0.1", State.OK, "ports can be bound and reached", needed)
