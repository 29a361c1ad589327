"""What a fault is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from chaos.errors import NotProven
from chaos.site import Site
from chaos.undo.steps import Step
from clusters.errors import WaitTimeout
from clusters.kube import PODS, Kube, Object


class Scope(StrEnum):
    """What a fault touches, and so what has to be ours."""

    NAMESPACE = "objects of one namespace"
    CLUSTER = "nodes, operators, schedulers, or other namespaces"


@dataclass(frozen=True)
class Proof:
    """Evidence that a fault happened.

    Attributes:
        what: one sentence.
        evidence: the figures that show it, before and after.
        t: seconds since 1970 at which it is known to have happened, by the cluster's own record
            where there is one.
    """

    what: str
    evidence: dict[str, str]
    t: float


def proof_of_pod(
    kube: Kube,
    namespace: str,
    pod: str,
    check: Callable[[list[Object]], Proof | None],
    *,
    deadline: float,
    why: str,
) -> Proof:
    """Watch one pod until *check* finds the proof in what there is of it.

    Raises:
        NotProven: not within *deadline* seconds; says what was last seen.
    """
    try:
        return kube.wait(
            PODS, check, namespace=namespace, fields=f"metadata.name={pod}",
            deadline=deadline, why=why,
        )  # fmt: skip
    except WaitTimeout as error:
        raise NotProven(f"the fault was injected, but: {error}") from error


class Fault(Protocol):
    """Something that is broken on purpose.

    ``inject`` breaks it, ``proof`` shows that it is broken, ``recover`` mends it. A fault that
    cannot be proven makes the attempt INCONCLUSIVE, never a pass.
    """

    name: str

    def inject(self) -> None:
        """Break it. Raises FaultError when there is nothing to break."""

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """Evidence, awaited for up to *deadline* seconds. Raises NotProven."""

    def recover(self) -> None:
        """Mend it; nothing to do where Kubernetes mends it by itself."""


class Planned:
    """A fault that says beforehand what undoes it; the base of all that last.

    A subclass has ``look``, ``inject`` and ``proof``, and ``healed`` where mending takes a while.

    Attributes:
        scope: what it touches.
        namespace: where, for a fault within one namespace.
        pauses: the clocks of promises that stand still while it lasts: ``operator``, ``scheduler``.
    """

    name = ""
    scope = Scope.CLUSTER
    namespace = ""
    pauses: tuple[str, ...] = ()

    def __init__(self, site: Site) -> None:
        self.site = site
        self._steps: tuple[Step, ...] | None = None

    @property
    def about(self) -> str:
        """What it is done to, in a few words."""
        return ""

    def look(self) -> Sequence[Step]:
        """Look at what is to be broken; what will undo it.

        Raises:
            FaultError: there is nothing to break.
            NotApplicable: it cannot be broken here.
        """
        return ()

    def plan(self) -> Sequence[Step]:
        """What undoes it, from what there was when this was first asked."""
        if self._steps is None:
            self._steps = tuple(self.look())
        return self._steps

    def inject(self) -> None:
        """Break it."""
        raise NotImplementedError

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """See :class:`Fault`."""
        raise NotImplementedError

    def lasted(self) -> str:
        """Why it ended before it is mended, or ""; asked just before that."""
        return ""

    def recover(self) -> None:
        """Mend it; returns when it is mended.

        A step that fails does not keep the others from being done; the first trouble is raised.
        """
        if self._steps is None:  # it was never injected
            return
        troubles: list[Exception] = []
        for step in self._steps:
            try:
                step.run(self.site)
            except Exception as error:
                troubles.append(error)
        if troubles:
            raise troubles[0]
        self.healed()

    def healed(self) -> None:
        """Wait until what was broken works again. Raises ClusterError."""
