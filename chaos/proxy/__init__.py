"""A proxy between one system and the API server, run on a node of the control plane."""

from __future__ import annotations

import json
import secrets
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from chaos.errors import FaultError
from chaos.site import Site
from chaos.undo.steps import OnNode
from clusters.cluster import Capability
from clusters.errors import ClusterError, CommandError
from clusters.kube import Object, until_true
from clusters.parts import gobuild
from fixtures.systems.protocols import ApiEndpoint

SOURCE = Path(__file__).with_name("proxy.go")
#: the unit that systemd runs it as
UNIT = "muster-proxy"
#: ports on the node: of the proxy, and of its administration, which only the node itself reaches
PORT, ADMIN = 16443, 16444
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


class ApiProxy:
    """The proxy of one cluster. ``start`` gives what systems are installed with."""

    def __init__(self, site: Site) -> None:
        site.cluster.require(Capability.NODE_EXEC, Capability.HOST_FOLDERS, Capability.OWN_CLUSTER)
        self.site = site
        self.node = site.control_plane()

    @staticmethod
    def undo(node: str) -> OnNode:
        """What ends a proxy."""
        return OnNode(node=node, script=f"systemctl stop {UNIT} 2>/dev/null; true")

    def start(self) -> ApiEndpoint:
        """Start it, instead of one that is left over; where it is reached, and its certificate.

        Raises:
            FaultError: it does not start; with its log.
            PartError: it cannot be built.
        """
        shared = self.site.cluster.shared
        assert shared is not None
        folder = shared / "proxy"
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / f"proxy-{secrets.token_hex(4)}"
        for old in folder.glob("proxy-*"):
            old.unlink()
        shutil.copy2(binary(), program)
        certificate = folder / "ca.pem"
        certificate.unlink(missing_ok=True)
        address = self._address()
        words = [
            str(program), "-listen", f":{PORT}", "-admin", f"127.0.0.1:{ADMIN}",
            "-hosts", address, "-ca-out", str(certificate),
        ]  # fmt: skip
        script = (
            f"systemctl stop {UNIT} 2>/dev/null; systemctl reset-failed {UNIT} 2>/dev/null;"
            f" systemd-run --quiet --unit={UNIT} {shlex.join(words)}"
        )
        try:
            self.site.on(self.node, script)
            until_true(certificate.exists, deadline=START, why="the API proxy listens", every=0.1)
        except (CommandError, ClusterError) as error:
            raise FaultError(f"the API proxy does not start: {error}\n{self.log()}") from error
        return ApiEndpoint(f"https://{address}:{PORT}", certificate.read_text())

    def running(self) -> bool:
        """Whether it runs."""
        state = self.site.on(self.node, f"systemctl is-active {UNIT} || true").strip()
        return state == "active"

    def log(self) -> str:
        """The end of its log; why there is none where there is none."""
        try:
            return self.site.on(self.node, f"journalctl -u {UNIT} -n 20 --no-pager || true")
        except CommandError as error:
            return str(error)

    def _address(self) -> str:
        for item in self.site.node(self.node)["status"]["addresses"]:
            if item["type"] == "InternalIP":
                return str(item["address"])
        raise FaultError(f"{self.node} has no address")

    # rules ---------------------------------------------------------------------------------

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

    def remove_script(self, rule: str) -> str:
        """A script that takes a rule back, if the proxy still has it."""
        return f"curl -s -m 5 -X DELETE 'http://127.0.0.1:{ADMIN}/rules?id={rule}' >/dev/null; true"

    def stats(self) -> dict[str, int]:
        """``requests`` so far, and open ``watches``."""
        found: dict[str, int] = self._ask("GET", "stats")
        return found

    def _ask(
        self, method: str, path: str, *, body: Object | None = None, timeout: float = 10
    ) -> Any:
        words = ["curl", "-sS", "--fail-with-body", "-m", f"{timeout:.0f}", "-X", method]
        if body is not None:
            words += ["--data-binary", json.dumps(body)]
        words.append(f"http://127.0.0.1:{ADMIN}/{path}")
        try:
            text = self.site.on(self.node, shlex.join(words), timeout=timeout + 5)
            return json.loads(text)
        except CommandError as error:
            raise FaultError(f"the API proxy does not do {method} {path}: {error}") from error
        except ValueError as error:
            raise FaultError(f"the API proxy answers nonsense to {path}: {text[:200]}") from error


def binary() -> Path:
    """The program, built when it is not cached. Raises PartError."""
    return gobuild.build_file("proxy", SOURCE.read_text()) / "proxy"
