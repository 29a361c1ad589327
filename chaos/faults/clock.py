"""A pod's clock: shifted nowhere."""

from __future__ import annotations

from chaos.faults.base import Planned, Proof, Scope
from chaos.site import Site
from oracles.errors import NotApplicable

WHY = (
    "a pod's wall clock cannot be shifted: it is the kernel's, which all pods and this host share;"
    " time namespaces move only the monotonic and the boot clock, and a preloaded library would"
    " miss programs without libc, such as the operators"
)


class ShiftClock(Planned):
    """Always NOT_APPLICABLE, with the reason: no provider gives its nodes a kernel of their own."""

    name = "shift clock"
    scope = Scope.NAMESPACE

    def __init__(self, site: Site, namespace: str, pod: str, seconds: float) -> None:
        super().__init__(site)
        raise NotApplicable(WHY)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """There is none."""
        raise NotApplicable(WHY)
