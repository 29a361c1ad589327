"""The proxy where systems are pods: on a node of the control plane, as a unit of systemd."""

from __future__ import annotations

import json
import secrets
import shlex
import shutil
from typing import Any

from chaos.errors import FaultError
from chaos.proxy.base import START, ApiProxy, binary
from chaos.site import Site
from chaos.undo.steps import OnNode, Step
from clusters.cluster import Capability
from clusters.errors import ClusterError, CommandError
from clusters.kube import Object, until_true
from fixtures.systems.protocols import ApiEndpoint

#: the unit that systemd runs it as
UNIT = "muster-proxy"
#: ports on the node: of the proxy, and of its administration, which only the node itself reaches
PORT, ADMIN = 16443, 16444


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
        return self.site.unit(self.node, UNIT) == "active"

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
