"""Actions that break operators, schedulers, the control plane, and one client's way to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from chaos import session
from chaos.actions.common import At, Role, breaks, target
from chaos.activities import activity
from chaos.errors import FaultError
from chaos.faults.api import ApiTrouble, ThroughProxy
from chaos.faults.base import Fault, Proof
from chaos.faults.control_plane import ApiServerAway, Component, FreezeComponent, KillComponent
from chaos.faults.failover import FailOver
from chaos.faults.systems import FreezeSystem, KillSystem, RollSystem, TakeSystemAway
from chaos.proxy import Rule
from clusters.kube import Object


@activity
def kill_system(
    role: Role, how: Literal["process", "pod"] = "process", *,
    at: At | None = None, label: str = "",
) -> Object:  # fmt: skip
    """Kill the operator or the scheduler."""
    it = session.current()
    return breaks(lambda: KillSystem(it.site, target(role), how), at, label)


@activity
def freeze_system(role: Role, *, at: At | None = None, label: str = "") -> Object:
    """Freeze the operator or the scheduler until it is recovered."""
    it = session.current()
    return breaks(lambda: FreezeSystem(it.site, target(role)), at, label)


@activity
def take_system_away(role: Role, *, at: At | None = None, label: str = "") -> Object:
    """Let there be no operator, or no scheduler, until it is recovered."""
    it = session.current()
    return breaks(lambda: TakeSystemAway(it.site, target(role)), at, label)


@activity
def roll_system(role: Role, to: str, *, at: At | None = None, label: str = "") -> Object:
    """Install another version; the former one comes back when it is recovered."""
    it = session.current()
    words = it.handover
    return breaks(
        lambda: RollSystem(
            it.site, target(role), operator=words.operator, scheduler=words.scheduler, to=to
        ),
        at, label,
    )  # fmt: skip


@activity
def fail_over(role: Role = "operator", *, label: str = "") -> Object:
    """Run two replicas, and kill the one that leads."""
    it = session.current()
    return breaks(lambda: FailOver(it.site, target(role)), None, label)


# the control plane, and one client's way to it ---------------------------------------------


@activity
def api_server_away(
    how: Literal["refused", "silent"] = "refused", *, spare_us: bool = True,
    at: At | None = None, label: str = "",
) -> Object:  # fmt: skip
    """Nobody reaches the API server until it is recovered."""
    it = session.current()
    return breaks(lambda: ApiServerAway(it.site, how, spare_us=spare_us), at, label)


@activity
def freeze_component(component: Component, *, at: At | None = None, label: str = "") -> Object:
    """Freeze a program of the control plane: etcd, kube-apiserver, ..."""
    it = session.current()
    return breaks(lambda: FreezeComponent(it.site, component), at, label)


@activity
def kill_component(component: Component, *, at: At | None = None) -> Object:
    """Kill a program of the control plane."""
    it = session.current()
    return breaks(lambda: KillComponent(it.site, component), at, "")


@activity
def through_proxy(role: Role) -> Object:
    """Let the operator or the scheduler reach the API server through a proxy from now on."""
    it = session.current()
    words = it.handover

    def make() -> Fault:
        route = ThroughProxy(
            it.site, target(role), operator=words.operator, scheduler=words.scheduler
        )
        it.routes[role] = route
        return route

    return breaks(make, None, f"proxy {role}")


@activity
def api_trouble(
    role: Role, action: str, *, verbs: Sequence[str] = (), path: str = "", delay_ms: int = 0,
    status: int = 0, share: float = 1.0, after: int = 0, times: int = 0, acts: int = 1,
    at: At | None = None, label: str = "", within: float = 30,
) -> Object:  # fmt: skip
    """Delay, refuse, cut, hold or keep stale what a system behind a proxy asks for."""
    it = session.current()
    if role not in it.routes:
        raise FaultError(f"the {role} does not go through a proxy: `through_proxy` comes first")
    if action not in ("delay", "status", "cut", "hold", "stale"):
        raise FaultError(f"no such action of the proxy: {action}")
    rule = Rule(
        action, tuple(verbs), path, delay_ms=delay_ms, status=status,  # type: ignore[arg-type]
        retry_after=1 if status == 429 else 0, share=share, seed=it.handover.seed,
        after=after, times=times,
    )  # fmt: skip
    fault = _Patient(it.routes[role], rule, acts=acts)
    fault.patience = within
    return breaks(lambda: fault, at, label)


@activity
def wait_held(label: str, count: int = 1, *, within: float = 60) -> int:
    """Wait until a rule that holds requests holds so many: the moment has come, and lasts.

    Raises:
        NotProven: it does not hold as many.
    """
    fault = session.current().labels.get(label)
    if not isinstance(fault, ApiTrouble):
        raise FaultError(f"{label!r} names no trouble of a proxy")
    return fault.wait_held(count, deadline=within)


@activity
def drop_held(label: str) -> str:
    """Cut the requests that ``api_trouble`` holds, instead of letting them go."""
    fault = session.current().labels.get(label)
    if not isinstance(fault, ApiTrouble):
        raise FaultError(f"{label!r} names no trouble of a proxy")
    fault.drop_held()
    return label


class _Patient(ApiTrouble):
    """Its proof is waited for as long as the experiment says."""

    patience = 30.0

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """See :class:`ApiTrouble`."""
        return super().proof(deadline=self.patience)
