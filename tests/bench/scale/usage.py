"""What processes use, and what the API server is asked for: evidence of what limits."""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from clusters import local
from clusters.cluster import Cluster
from clusters.kube import Kube
from tests.bench.host import machine_seconds

TICK = os.sysconf("SC_CLK_TCK")
#: cores that others may use on a machine that is left alone
ALONE = 0.5
#: the bench's own process, among those of the cluster
OWN = "bench"
_SERIES = re.compile(
    r"^apiserver_request_(total|duration_seconds_sum|duration_seconds_count)\{(.*)\} (\S+)$"
)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Usage:
    """Of one moment; subtract two of them.

    Attributes:
        cpu: process -> CPU seconds since its start.
        machine: CPU seconds of all processes of this machine.
        requests: "VERB resource" -> answered by the API server.
        seconds: "VERB resource" -> that it took for them.
    """

    at: float
    cpu: dict[str, float]
    machine: float
    requests: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def now(cluster: Cluster) -> Usage:
    """Of this moment."""
    cpu = {name: _cpu(pid) for name, pid in _pids(cluster).items()}
    requests, seconds = _asked(cluster.kube)
    return Usage(
        time.monotonic(), {**cpu, OWN: time.process_time()}, machine_seconds(), requests, seconds
    )


def between(before: Usage, after: Usage) -> dict[str, object]:
    """What was used meanwhile, in a form for JSON."""
    wall = after.at - before.at
    cpu = {name: used - before.cpu.get(name, 0.0) for name, used in after.cpu.items()}
    others = after.machine - before.machine - sum(cpu.values())
    asked = {key: n - before.requests.get(key, 0) for key, n in after.requests.items()}
    took = {key: n - before.seconds.get(key, 0) for key, n in after.seconds.items()}
    most = sorted((k for k in asked if asked[k] > 0), key=lambda k: -asked[k])[:8]
    return {
        "seconds": round(wall, 1),
        "cpu_s": {name: round(used, 2) for name, used in sorted(cpu.items())},
        "cpu_s_of_others": round(max(0.0, others), 1),
        "requests_per_second": round(sum(asked.values()) / wall, 1),
        "requests": {
            key: {"count": round(asked[key]), "ms": round(1000 * took.get(key, 0) / asked[key], 2)}
            for key in most
        },
    }


def peaks(cluster: Cluster) -> dict[str, int]:
    """Process -> the most memory that it ever had resident, in MiB (VmHWM)."""
    found = {}
    for name, pid in _pids(cluster).items():
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                found[name] = round(int(line.split()[1]) / 1024)
    return found


def _pids(cluster: Cluster) -> dict[str, int]:
    processes = local.of(cluster)
    states = {name: processes.state(name) for name in processes.names()}
    return {name: s.pid for name, s in states.items() if s is not None and s.pid is not None}


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it is being started
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def _asked(kube: Kube) -> tuple[dict[str, float], dict[str, float]]:
    """Requests by verb and resource, watches left out, and seconds that they took."""
    requests: defaultdict[str, float] = defaultdict(float)
    seconds: defaultdict[str, float] = defaultdict(float)
    for line in str(kube.request("GET", "/metrics")).splitlines():
        if (found := _SERIES.match(line)) is None:
            continue
        kind, labels, value = found[1], dict(_LABEL.findall(found[2])), float(found[3])
        what = labels["resource"] + (f"/{labels['subresource']}" if labels["subresource"] else "")
        key = f"{labels['verb']} {what}"
        if labels["verb"] in ("WATCH", "CONNECT"):
            continue
        if kind == "total":
            requests[key] += value
        elif kind == "duration_seconds_sum":
            seconds[key] += value
    return dict(requests), dict(seconds)
