"""The ledger: what is being made is written down before it is made.

One folder per cluster, ``<cache>/clusters/<name>/``, with ``ledger.json`` (who makes it, for which
run, whether it is to be kept), the kubeconfig, and the shared folder. After a crash the ledger
says what is left over and whether somebody alive still owns it.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from clusters import cache
from clusters.processes import start_of


@dataclass(frozen=True)
class Entry:
    """One cluster in the ledger.

    Attributes:
        pid, pid_start: the process that owns it; the start time (in clock ticks since boot) tells
            a reused pid from the owner.
        keep: it outlives its owner on purpose; noted when the owner is done with it.
        ready: creation was completed.
    """

    name: str
    provider: str
    kubernetes: str
    topology: str
    run: str
    pid: int
    pid_start: int
    keep: bool = False
    ready: bool = False

    @property
    def owner_alive(self) -> bool:
        """Whether the process that made it still runs."""
        return start_of(self.pid) == self.pid_start

    @property
    def left_over(self) -> bool:
        """Whether nobody wants it any more: the owner died, and it was not to be kept."""
        return not self.owner_alive and not self.keep


def folder(name: str) -> Path:
    """The cluster's folder."""
    return cache.root() / "clusters" / name


def write(name: str, *, provider: str, kubernetes: str, topology: str, run: str) -> Entry:
    """Write down a cluster that this process is about to make."""
    pid = os.getpid()
    entry = Entry(name, provider, kubernetes, topology, run, pid, start_of(pid) or 0)
    folder(name).mkdir(parents=True, exist_ok=True)
    _save(entry)
    return entry


def update(name: str, *, ready: bool | None = None, keep: bool | None = None) -> None:
    """Note that creation was completed, or that it is to be kept."""
    entry = read(name)
    if entry is not None:
        changes = {"ready": ready, "keep": keep}
        values = asdict(entry) | {key: value for key, value in changes.items() if value is not None}
        _save(Entry(**values))


def read(name: str) -> Entry | None:
    """The entry of a cluster, or None."""
    try:
        return Entry(**json.loads((folder(name) / "ledger.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def entries() -> list[Entry]:
    """All entries, by name."""
    found = (read(path.parent.name) for path in folder("").glob("*/ledger.json"))
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.name)


def forget(name: str) -> None:
    """Remove a cluster's folder, when the cluster is gone."""
    shutil.rmtree(folder(name), ignore_errors=True)


def _save(entry: Entry) -> None:
    path = folder(entry.name) / "ledger.json"
    partial = path.with_name(f".ledger.{os.getpid()}")
    partial.write_text(json.dumps(asdict(entry), indent=1))
    partial.replace(path)
