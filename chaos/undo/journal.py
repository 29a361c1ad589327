"""The journal of what is broken: one small file per fault, gone when the fault is undone.

``<cache>/undo/<provider>-<cluster>/<number>.json``. In the cache rather than in the run's folder:
the next run has to find it, wherever the one that died wrote its results.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from chaos.errors import NotMended
from chaos.site import Site
from chaos.undo.steps import Step
from clusters import cache
from clusters.cluster import Cluster
from clusters.processes import start_of
from oracles.errors import HarnessError
from oracles.strict import Strict


class Entry(Strict):
    """A fault that is, or may be, in force.

    Attributes:
        id: names it in histories too.
        fault, about: which fault, and what it was done to, for people.
        namespace: the one within which it is; "" for what the whole cluster feels.
        run: of the cluster; another cluster that was made under the same name was never broken.
        made, until: seconds since 1970; at *until* it is to be undone, whoever is at work.
        pid, pid_start: the process that broke it.
        steps: what undoes it, in this order.
    """

    id: str
    fault: str
    about: str = ""
    namespace: str = ""
    cluster: str
    provider: str
    run: str
    made: float
    until: float
    pid: int
    pid_start: int
    steps: list[Step]

    @property
    def owned(self) -> bool:
        """Whether the process that broke it is still there to mend it."""
        return start_of(self.pid) == self.pid_start

    @property
    def overdue(self) -> bool:
        """Whether its time is over."""
        return time.time() > self.until

    def __str__(self) -> str:
        age = time.time() - self.made
        return f"{self.fault} {self.about}".strip() + f" ({age:.0f} s ago, by pid {self.pid})"


class Journal:
    """The journal of one cluster. Processes share it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.folder = folder(site.cluster)

    def write(
        self, fault: str, steps: Sequence[Step], *, within: float, about: str = "",
        namespace: str = "",
    ) -> Entry:  # fmt: skip
        """Write down a fault that is about to be injected.

        Args:
            within: seconds after which it is undone at the latest.
        """
        cluster, pid = self.site.cluster, os.getpid()
        now = time.time()
        entry = Entry(
            id=f"{int(now * 1000)}-{secrets.token_hex(2)}",
            fault=fault, about=about, namespace=namespace,
            cluster=cluster.name, provider=cluster.provider, run=cluster.run,
            made=now, until=now + within, pid=pid, pid_start=start_of(pid) or 0,
            steps=list(steps),
        )  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f".{entry.id}.partial"
        with partial.open("w") as file:
            file.write(entry.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())  # a crash of the host is a crash, too
        partial.replace(self._path(entry))
        return entry

    def entries(self) -> list[Entry]:
        """What is written down, the oldest first.

        Raises:
            NotMended: a file that cannot be read: nobody can say what it would undo.
        """
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                found.append(Entry.model_validate_json(path.read_text()))
            except FileNotFoundError:  # somebody has just mended it
                continue
            except (OSError, ValidationError) as error:
                raise NotMended(
                    f"{path}: what is written there to undo a fault cannot be read: {error}",
                    hint="look at the cluster, or make it anew; then remove the file",
                ) from error
        return found

    def undo(self, entry: Entry) -> None:
        """Do all steps of *entry*, and take it out of the journal.

        A step that fails does not keep the others from being done.

        Raises:
            NotMended: with what failed; the entry stays.
        """
        troubles = []
        for step in entry.steps:
            try:
                step.run(self.site)
            except HarnessError as error:
                troubles.append(str(error))
        if troubles:
            raise NotMended(
                f"{entry.fault} on {entry.cluster} is not undone: {'; '.join(troubles)}",
                hint="python -m chaos mend tries it again",
            )
        self.forget(entry)

    def forget(self, entry: Entry) -> None:
        """Take it out: it is undone, or it was another cluster's."""
        self._path(entry).unlink(missing_ok=True)

    def _path(self, entry: Entry) -> Path:
        return self.folder / f"{entry.id}.json"


def root() -> Path:
    """The folder of all journals."""
    return cache.root() / "undo"


def folder(cluster: Cluster) -> Path:
    """The folder of a cluster's journal."""
    return named(cluster.provider, cluster.name)


def named(provider: str, cluster: str) -> Path:
    """The folder of the journal of a cluster, by names."""
    return root() / re.sub(r"[^A-Za-z0-9._-]+", "_", f"{provider}-{cluster}")


def drop(path: Path) -> None:
    """Remove the journal of a cluster that is no more."""
    shutil.rmtree(path, ignore_errors=True)
