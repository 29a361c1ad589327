"""What an experiment's activities work on: a cluster with its systems, a namespace, an injector.

chaostoolkit calls plain functions with the arguments of a YAML file, so there is one session per
process; :mod:`chaos.control` opens and closes it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chaos.aim import Stream
from chaos.errors import FaultError
from chaos.faults.api import ThroughProxy
from chaos.faults.base import Fault
from chaos.injecting import Injector
from chaos.site import Site
from clusters.kube import Kube, Object
from clusters.providers import provider
from fixtures.systems import registry
from fixtures.systems.protocols import GangScheduler, Operator
from oracles.errors import HarnessError, UsageError
from oracles.recorder import Notes, Remote
from oracles.strict import Strict, problems

#: environment variable with the path of a :class:`Handover`
VARIABLE = "MUSTER_SESSION"


class Handover(Strict):
    """What a process needs to know to work on a cluster that another one looks after.

    Attributes:
        operator, scheduler: as on the command line.
        torch: version of the runtime that jobs train with; "" for none.
        folder: where to write what was done.
        history, desk: the cluster's history, and where its recorder is told of things.
        shared: whether other tests use the cluster too: then faults are noted as the namespace's.
    """

    cluster: str
    provider: str
    operator: str
    scheduler: str
    namespace: str
    folder: str
    history: str = ""
    desk: str = ""
    torch: str = ""
    seed: int = 0
    owned: tuple[str, ...] = ()
    shared: bool = True

    @classmethod
    def read(cls, path: Path) -> Handover:
        """From a file. Raises UsageError."""
        try:
            return cls.model_validate_json(path.read_text())
        except OSError as error:
            raise UsageError(f"{VARIABLE}: no readable {path}: {error.strerror}") from error
        except ValidationError as error:
            raise UsageError(f"{path} is no handover:\n{problems(error)}") from error


@dataclass(frozen=True)
class Seen:
    """A pod as it was when somebody looked.

    Attributes:
        containers: name, id and restarts of each.
    """

    uid: str
    node: str
    containers: tuple[tuple[str, str, int], ...]

    @classmethod
    def of(cls, pod: Object) -> Seen:
        """From the API's object."""
        told = pod["status"].get("containerStatuses") or []
        return cls(
            pod["metadata"]["uid"],
            pod["spec"].get("nodeName") or "",
            tuple(
                (s["name"], s.get("containerID") or "", int(s.get("restartCount") or 0))
                for s in sorted(told, key=lambda s: str(s["name"]))
            ),
        )


@dataclass
class Session:
    """See the module.

    Of the last fault there are three times, in seconds since 1970; 0: there was none yet. What was
    there before ``begun`` was there before the fault; what begins after ``since`` began under it.

    Attributes:
        labels: faults that can be mended by a word of the experiment.
        begun: right before it was injected.
        happened: when it happened, as its proof says: recovery is measured from here. Some proofs
            only know when the fault was asked for.
        since: when its proof was there, so that it has happened for certain.
        mended: when the last fault was mended by an action, likewise.
        failed: what the first activity that failed said.
        pods: job -> its pods by name, as they were when they were first asked for.
    """

    handover: Handover
    site: Site
    operator: Operator
    scheduler: GangScheduler
    notes: Notes | None
    injector: Injector
    stream: Stream | None
    rng: random.Random
    labels: dict[str, Fault] = field(default_factory=dict)
    routes: dict[str, ThroughProxy] = field(default_factory=dict)
    begun: float = 0.0
    happened: float = 0.0
    since: float = 0.0
    mended: float = 0.0
    failed: str = ""
    pods: dict[str, dict[str, Seen]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def kube(self) -> Kube:
        """The cluster's API."""
        return self.site.kube

    @property
    def namespace(self) -> str:
        """Where jobs are submitted."""
        return self.handover.namespace

    @property
    def folder(self) -> Path:
        """Where what was done is written."""
        return Path(self.handover.folder)

    def close(self) -> None:
        """Mend everything. Raises NotMended."""
        self.injector.close()


_current: Session | None = None


def current() -> Session:
    """The session of this process. Raises FaultError when there is none."""
    if _current is None:
        raise FaultError(
            "no cluster is at hand: the experiment lacks the control `chaos.control`, or opening"
            " the session failed",
        )
    return _current


def use(session: Session | None) -> None:
    """Make it the session of this process."""
    global _current
    _current = session


def open_session(handover: Handover, notes: Notes | None = None) -> Session:
    """Make a session of what was handed over.

    Raises:
        HarnessError: the cluster is not there.
    """
    where = provider(handover.provider)
    site = Site(where.get(handover.cluster), where)
    if notes is None and handover.desk:
        notes = Remote(Path(handover.desk))
    operator = registry.operator(handover.operator)
    scheduler = registry.scheduler(handover.scheduler)
    space = handover.namespace if handover.shared else ""

    def note(type: str, kind: str, about: Mapping[str, Any]) -> None:
        if notes is not None:
            notes.fault(type, kind, namespace=space, about=about)

    injector = Injector(site, owned=handover.owned, note=note)
    history = Path(handover.history) if handover.history else None
    return Session(
        handover, site, operator, scheduler, notes, injector,
        Stream(history) if history is not None and history.exists() else None,
        random.Random(f"{handover.seed}:{handover.namespace}"),
    )  # fmt: skip


def stream() -> Stream:
    """The history of the session's cluster. Raises HarnessError when nothing is recorded."""
    found = current().stream
    if found is None:
        raise HarnessError("nothing is recorded of this cluster, so no moment can be seen")
    return found
