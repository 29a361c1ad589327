"""The API server as one system sees it: slow, refusing, away, its watches cut or stale.

First the system is installed anew, so that it goes through a proxy (:class:`ThroughProxy`); then
rules of the proxy break its way (:class:`ApiTrouble`). Nobody else is touched.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from chaos import proxy
from chaos.errors import FaultError, NotProven
from chaos.faults.base import Planned, Proof
from chaos.proxy import ApiProxy, Counts, Rule
from chaos.site import Site
from chaos.target import Target
from chaos.undo.steps import Reinstall, Step
from clusters.errors import ClusterError
from clusters.kube import until_true
from fixtures.systems import registry

#: seconds until a client whose watches were cut has them again: it waits longer after each failure,
#: up to 30 s and as much again by chance (client-go, tools/cache: the back-off of a reflector)
WATCHES_AGAIN = 90.0


class ThroughProxy(Planned):
    """A system reaches the API server through a proxy, until this is undone.

    Args:
        operator, scheduler: what is installed, as on the command line.
    """

    def __init__(self, site: Site, target: Target, *, operator: str, scheduler: str) -> None:
        super().__init__(site)
        self.target = target
        self.name = f"{target.role} through a proxy"
        self.proxy: ApiProxy = proxy.of(site)
        self._operator, self._scheduler = operator, scheduler
        self._done = 0.0

    @property
    def about(self) -> str:
        """Which system."""
        return self.target.name

    def look(self) -> Sequence[Step]:
        """The system is installed as it was, then the proxy is ended."""
        if not self.target.installed(self.site):
            raise FaultError(f"{self.about} is not installed by us, so its way cannot be changed")
        return [
            Reinstall(which=self.target.role, operator=self._operator, scheduler=self._scheduler),
            self.proxy.ends(),
        ]

    def inject(self) -> None:
        """Start the proxy, and install the system with it; returns when it answers."""
        self.plan()
        self._done = time.time()
        endpoint = self.proxy.start()
        gangs = registry.scheduler(self._scheduler)
        if self.target.role == "scheduler":
            gangs.install(self.site.cluster, api_endpoint=endpoint)
        else:
            operator = registry.operator(self._operator)
            operator.install(self.site.cluster, gangs, api_endpoint=endpoint)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """It watches through the proxy. Raises NotProven."""
        stats: dict[str, int] = {}

        def watches() -> bool:
            stats.update(self.proxy.stats())
            return stats["watches"] > 0

        try:
            until_true(watches, deadline=deadline, why=f"a watch of {self.about} at the proxy")
        except ClusterError as error:
            raise NotProven(
                f"{self.about} was installed with the proxy, but: {error}; {stats}"
            ) from error
        return Proof(
            f"{self.about} reaches the API server through a proxy",
            {key: str(value) for key, value in stats.items()},
            self._done,
        )

    def healed(self) -> None:
        """The proxy is gone. Raises FaultError."""
        if self.proxy.running():
            raise FaultError("the API proxy still runs")


class ApiTrouble(Planned):
    """A rule of a proxy: what it says happens to the requests of the system behind it.

    Args:
        acts: of how many requests, or open watches, the proof has to show that the rule acted. 0
            for what is asked only later: then the rule is proven to be set, and :meth:`wait_held`,
            or what it did in the end, is what shows that it acted.
    """

    def __init__(self, route: ThroughProxy, rule: Rule, *, name: str = "", acts: int = 1) -> None:
        super().__init__(route.site)
        self.rule = rule
        self.name = name or f"API {rule.action} for the {route.target.role}"
        self.pauses = (route.target.role,)
        self._proxy = route.proxy
        self._acts = acts
        self._done = 0.0
        self._watches = 0

    @property
    def about(self) -> str:
        """The rule in words."""
        rule = self.rule
        words = [*rule.verbs, rule.path]
        if rule.action == "status":
            words.append(f"-> {rule.status}")
        if rule.action == "delay":
            words.append(f"{rule.delay_ms} ms late")
        return " ".join(filter(None, words))

    def look(self) -> Sequence[Step]:
        """Whether there is a proxy; the rule is taken back."""
        if not self._proxy.running():
            raise FaultError("the API proxy does not run")
        return [self._proxy.takes_back(self.rule.id)]

    def inject(self) -> None:
        """Set the rule."""
        self.plan()
        if self._cuts_watches:
            self._watches = self._proxy.stats()["watches"]
        self._done = time.time()
        self._proxy.add(self.rule)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        """It acted. Raises NotProven."""
        counts = self._proxy.wait(self.rule.id, self._acts, deadline=deadline)
        if counts.acted < self._acts:
            raise NotProven(
                f"{self.name} ({self.about}): it acted on {counts.acted} of {self._acts} requests"
                f" within {deadline:.0f} s; {counts.matched} matched"
            )
        return Proof(
            f"{self.name}: {self.about}",
            {
                "requests that matched": str(counts.matched),
                "acted on": str(counts.acted),
                "held now": str(counts.holding),
            },
            self._done,
        )

    @property
    def _cuts_watches(self) -> bool:
        return self.rule.action == "cut" and (not self.rule.verbs or "watch" in self.rule.verbs)

    def healed(self) -> None:
        """The system watches again what it watched before: its client comes back when it likes."""
        if self._watches:
            until_true(
                lambda: self._proxy.stats()["watches"] >= self._watches, deadline=WATCHES_AGAIN,
                why=f"{self._watches} watches of the {self.pauses[0]} at the proxy",
            )  # fmt: skip

    def counts(self) -> Counts:
        """What it did so far."""
        return self._proxy.counts(self.rule.id)

    def wait_held(self, count: int, *, deadline: float) -> int:
        """Wait until it holds so many requests; how many. Raises NotProven."""
        held = 0

        def enough() -> bool:
            nonlocal held
            held = self._proxy.counts(self.rule.id).holding
            return held >= count

        try:
            until_true(enough, deadline=deadline, why=f"{count} requests held", every=0.1)
        except ClusterError as error:
            raise NotProven(f"{self.name} ({self.about}) holds {held}: {error}") from error
        return held

    def drop_held(self) -> None:
        """Take the rule back now, and cut what it holds instead of letting it go."""
        self._proxy.remove(self.rule.id, drop=True)


def slow(delay_ms: int = 1000) -> Rule:
    """Every answer comes late."""
    return Rule("delay", delay_ms=delay_ms)


def refusing(status: int, *, share: float = 1.0, seed: int = 0) -> Rule:
    """Writes are refused: 409, 429 (come again in a second), 500."""
    verbs = ("create", "update", "patch", "delete")
    retry = 1 if status == 429 else 0
    return Rule("status", verbs=verbs, status=status, retry_after=retry, share=share, seed=seed)


def away() -> Rule:
    """Every connection is cut, open watches too."""
    return Rule("cut")


def watches_cut() -> Rule:
    """Open watches are cut, and new ones, too."""
    return Rule("cut", verbs=("watch",))


def watches_stale() -> Rule:
    """Watches stay open, and bring nothing until the rule is taken back."""
    return Rule("stale", verbs=("watch",))


def held(verb: str, path: str, *, after: int = 0, times: int = 0) -> Rule:
    """Requests of that kind wait until the rule is taken back: the moment before them lasts."""
    return Rule("hold", verbs=(verb,), path=path, after=after, times=times)
