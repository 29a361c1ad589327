"""A proxy between one system and the API server: its rules, and how it is told of them."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from chaos.errors import FaultError
from chaos.site import Site
from chaos.undo.steps import Step
from clusters.kube import Object
from clusters.parts import gobuild
from fixtures.systems.protocols import ApiEndpoint

SOURCE = Path(__file__).with_name("proxy.go")
#: seconds until it listens
START = 20.0

Action = Literal["delay", "status", "cut", "hold", "stale"]


@dataclass(frozen=True)
class Rule:
    """What happens to requests that match all of its conditions; see ``proxy.go``.

    Attributes:
        action: ``delay`` by *delay_ms*; answer with *status*; ``cut`` the connection (open watches
            that match are cut once, when the rule is set); ``hold`` until the rule is taken back;
            keep what watches bring (``stale``) until then.
        verbs: of the API: get, list, watch, create, update, patch, delete; none: all.
        path, agent: regular expressions for the path and the client's User-Agent.
        share: of the matching requests, chosen by *seed*.
        after, times: lets the first so many pass, then acts on so many (0: on all).
    """

    action: Action
    verbs: tuple[str, ...] = ()
    path: str = ""
    agent: str = ""
    delay_ms: int = 0
    status: int = 0
    retry_after: int = 0
    share: float = 1.0
    seed: int = 0
    after: int = 0
    times: int = 0
    id: str = field(default_factory=lambda: secrets.token_hex(4))


@dataclass(frozen=True)
class Counts:
    """What a rule did.

    Attributes:
        matched: requests, and open watches, that it fitted.
        acted: those that it did something to.
        holding: requests that it holds now.
        kept: bytes of watches that it kept back.
    """

    matched: int
    acted: int
    holding: int
    kept: int

    @classmethod
    def of(cls, answer: Object) -> Counts:
        """From the proxy's answer."""
        return cls(**{name: int(answer[name]) for name in ("matched", "acted", "holding", "kept")})


class ApiProxy(ABC):
    """The proxy of one cluster. ``start`` gives what systems are installed with."""

    def __init__(self, site: Site) -> None:
        self.site = site

    @abstractmethod
    def start(self) -> ApiEndpoint:
        """Start it, instead of one that is left over; where it is reached, and its certificate.

        Raises:
            FaultError: it does not start; with its log.
            PartError: it cannot be built.
        """

    @abstractmethod
    def running(self) -> bool:
        """Whether it runs."""

    @abstractmethod
    def ends(self) -> Step:
        """What ends it."""

    @abstractmethod
    def takes_back(self, rule: str) -> Step:
        """What takes a rule back, if the proxy still has it."""

    @abstractmethod
    def _ask(
        self, method: str, path: str, *, body: Object | None = None, timeout: float = 10
    ) -> Any:
        """A request to its administration. Raises FaultError."""

    def add(self, rule: Rule) -> Counts:
        """Set a rule; what it did to open watches."""
        return Counts.of(self._ask("POST", "rules", body=asdict(rule)))

    def remove(self, rule: str, *, drop: bool = False) -> Counts:
        """Take a rule back; what it did. What it holds is let go, or cut (*drop*)."""
        return Counts.of(self._ask("DELETE", f"rules?id={rule}" + ("&drop=1" if drop else "")))

    def counts(self, rule: str) -> Counts:
        """What a rule did so far. Raises FaultError when there is no such rule."""
        for item in self._ask("GET", "rules") or []:
            if item["id"] == rule:
                return Counts.of(item)
        raise FaultError(f"the API proxy has no rule {rule}")

    def wait(self, rule: str, acted: int, *, deadline: float) -> Counts:
        """Wait until a rule has acted so many times, or until *deadline*; what it did."""
        path = f"wait?id={rule}&acted={acted}&timeout={deadline}"
        return Counts.of(self._ask("GET", path, timeout=deadline + 10))

    def writes(self) -> Sequence[Object]:
        """The last writes that went through it, the newest last: t, verb, path, agent, status."""
        found: list[Object] = self._ask("GET", "writes") or []
        return found

    def stats(self) -> dict[str, int]:
        """``requests`` so far, and open ``watches``."""
        found: dict[str, int] = self._ask("GET", "stats")
        return found


def binary() -> Path:
    """The program, built when it is not cached. Raises PartError."""
    return gobuild.build_file("proxy", SOURCE.read_text()) / "proxy"
