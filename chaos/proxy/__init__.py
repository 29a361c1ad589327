"""A proxy between one system and the API server.

It runs on a node of the control plane, or on this host where systems are processes of it.
"""

from __future__ import annotations

import base64
import json
import secrets
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import urllib3
import yaml

from chaos.errors import FaultError
from chaos.site import Site
from chaos.undo.steps import Ask, ForgetLocal, OnNode, Step
from clusters import local
from clusters.cluster import Capability
from clusters.errors import ClusterError, CommandError
from clusters.kube import Object, until_true
from clusters.local import LocalProcess
from clusters.parts import gobuild
from fixtures.systems.protocols import ApiEndpoint

SOURCE = Path(__file__).with_name("proxy.go")
#: the unit that systemd runs it as
UNIT = "muster-proxy"
#: its name where it is a process of this host
LOCAL = "api-proxy"
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


def of(site: Site) -> ApiProxy:
    """The proxy for a cluster. Raises NotApplicable where none can stand in the way."""
    site.cluster.require(Capability.OWN_CLUSTER)
    if Capability.LOCAL_PROCESSES in site.cluster.capabilities:
        return LocalProxy(site)
    return NodeProxy(site)


class NodeProxy(ApiProxy):
    """On a node of the control plane, as a unit of systemd."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        site.cluster.require(Capability.NODE_EXEC, Capability.HOST_FOLDERS)
        self.node = site.control_plane()

    def ends(self) -> Step:
        """See :class:`ApiProxy`."""
        return OnNode(node=self.node, script=f"systemctl stop {UNIT} 2>/dev/null; true")

    def takes_back(self, rule: str) -> Step:
        """See :class:`ApiProxy`."""
        url = f"http://127.0.0.1:{ADMIN}/rules?id={rule}"
        script = f"curl -s -m 5 -X DELETE '{url}' >/dev/null; true"
        return OnNode(node=self.node, script=script)

    def start(self) -> ApiEndpoint:
        """See :class:`ApiProxy`."""
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
            raise FaultError(f"the API proxy does not start: {error}\n{self._log()}") from error
        return ApiEndpoint(f"https://{address}:{PORT}", certificate.read_text())

    def running(self) -> bool:
        """See :class:`ApiProxy`; no node that is off runs it."""
        if not self.site.answers(self.node):
            return False
        return self.site.on(self.node, f"systemctl is-active {UNIT} || true").strip() == "active"

    def _log(self) -> str:
        try:
            return self.site.on(self.node, f"journalctl -u {UNIT} -n 20 --no-pager || true")
        except CommandError as error:
            return str(error)

    def _address(self) -> str:
        for item in self.site.node(self.node)["status"]["addresses"]:
            if item["type"] == "InternalIP":
                return str(item["address"])
        raise FaultError(f"{self.node} has no address")

    def _ask(
        self, method: str, path: str, *, body: Object | None = None, timeout: float = 10
    ) -> Any:
        words = ["curl", "-sS", "--fail-with-body", "-m", f"{timeout:.0f}", "-X", method]
        if body is not None:
            words += ["--data-binary", json.dumps(body)]
        words.append(f"http://127.0.0.1:{ADMIN}/{path}")
        try:
            text = self.site.on(self.node, shlex.join(words), timeout=timeout + 20)
            return json.loads(text)
        except CommandError as error:
            raise FaultError(f"the API proxy does not do {method} {path}: {error}") from error
        except ValueError as error:
            raise FaultError(f"the API proxy answers nonsense to {path}: {text[:200]}") from error


class LocalProxy(ApiProxy):
    """A process of this host, beside those of the cluster."""

    def ends(self) -> Step:
        """See :class:`ApiProxy`."""
        return ForgetLocal(name=LOCAL)

    def takes_back(self, rule: str) -> Step:
        """See :class:`ApiProxy`."""
        return Ask(method="DELETE", url=f"{self._admin()}/rules?id={rule}")

    def start(self) -> ApiEndpoint:
        """See :class:`ApiProxy`."""
        there = local.of(self.site.cluster)
        there.forget(LOCAL)
        folder = there.folder(LOCAL)
        listen, admin = there.port(), there.port()
        certificate, authority = folder / "ca.pem", folder / "api-server-ca.pem"
        authority.write_text(_authority(self.site.cluster.kubeconfig))
        words = (
            str(binary()), "-listen", f"127.0.0.1:{listen}", "-admin", f"127.0.0.1:{admin}",
            "-backend", self.site.kube.host, "-backend-ca", str(authority),
            "-hosts", "127.0.0.1,localhost", "-ca-out", str(certificate),
        )  # fmt: skip
        try:
            there.start(LocalProcess(LOCAL, words, restarts=False, system="api-proxy"))
            until_true(certificate.exists, deadline=START, why="the API proxy listens", every=0.1)
        except ClusterError as error:
            raise FaultError(
                f"the API proxy does not start: {error}\n{there.log(LOCAL)}"
            ) from error
        return ApiEndpoint(f"https://127.0.0.1:{listen}", certificate.read_text())

    def running(self) -> bool:
        """See :class:`ApiProxy`."""
        state = local.of(self.site.cluster).state(LOCAL)
        return state is not None and state.pid is not None

    def _admin(self) -> str:
        state = local.of(self.site.cluster).state(LOCAL)
        if state is None:
            raise FaultError("the API proxy does not run")
        argv = state.process.argv
        return f"http://{argv[argv.index('-admin') + 1]}"

    def _ask(
        self, method: str, path: str, *, body: Object | None = None, timeout: float = 10
    ) -> Any:
        url = f"{self._admin()}/{path}"
        data = json.dumps(body) if body is not None else None
        try:
            answer = urllib3.request(method, url, body=data, timeout=timeout, retries=False)
        except urllib3.exceptions.HTTPError as error:
            raise FaultError(f"the API proxy does not do {method} {path}: {error}") from error
        if answer.status != 200:
            text = answer.data[:200].decode(errors="replace")
            raise FaultError(f"the API proxy does not do {method} {path}: {text}")
        return answer.json()


def _authority(kubeconfig: Path) -> str:
    """The certificate of who signed the API server's, from a kubeconfig."""
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    if data := cluster.get("certificate-authority-data"):
        return base64.b64decode(data).decode()
    return Path(cluster["certificate-authority"]).read_text()


def binary() -> Path:
    """The program, built when it is not cached. Raises PartError."""
    return gobuild.build_file("proxy", SOURCE.read_text()) / "proxy"
