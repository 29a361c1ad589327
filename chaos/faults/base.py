"""What a fault is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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
