"""What a fault is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chaos.errors import NotProven
from clusters.errors import WaitTimeout
from clusters.kube import PODS, Kube, Object


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
