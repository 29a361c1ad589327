"""The proxy where systems are processes of this host: one of them, beside those of the cluster."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import urllib3
import yaml

from chaos.errors import FaultError
from chaos.proxy.base import START, ApiProxy, binary
from chaos.undo.steps import Ask, ForgetLocal, Step
from clusters import local
from clusters.errors import ClusterError
from clusters.kube import Object, until_true
from clusters.local import LocalProcess
from fixtures.systems.protocols import ApiEndpoint

#: its name among the cluster's processes
LOCAL = "api-proxy"


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
