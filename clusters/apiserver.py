"""A connection to an API server: requests and their errors, nothing of what objects mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from clusters.errors import ApiError, ClusterError, Expired, Unreachable

#: field manager of everything that is applied, and label of everything that is made
MANAGER = "muster"


class ApiServer:
    """One API server, as one user of it. Threads may share it."""

    def __init__(self, kubeconfig: Path, context: str | None = None) -> None:
        # most of a second to import: commands that speak to no cluster shall not pay for it
        from kubernetes import config

        try:
            self.client: Any = config.new_client_from_config(  # type: ignore[no-untyped-call]
                str(kubeconfig), context=context
            )
        except Exception as error:  # the library checks little, so anything comes out of it
            raise ClusterError(
                f"no usable context {context or '(current)'} in {kubeconfig}: {error}",
                hint=f"kubectl config get-contexts --kubeconfig {kubeconfig}",
            ) from error
        self.host = str(self.client.configuration.host)
        # a pool of our own: no hidden retries, and room for a watch per thread
        self.client.rest_client.pool_manager.connection_pool_kw["maxsize"] = 32
        self._pool: urllib3.PoolManager = self.client.rest_client.pool_manager

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: dict[str, object] | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> Any:
        """One request; the parsed JSON answer, or text where the answer is not JSON.

        Raises:
            ApiError: the server refused (``status`` and its message).
            Unreachable: no answer.
        """
        response = self.open(method, path, body, query, content_type, timeout)
        data = _read(method, path, response)
        if response.headers.get("content-type", "").startswith("application/json"):
            return json.loads(data)
        return data.decode(errors="replace")

    def open(
        self,
        method: str,
        path: str,
        body: object,
        query: dict[str, object] | None,
        content_type: str,
        timeout: float,
    ) -> urllib3.BaseHTTPResponse:
        """As :meth:`request`, with the answer still to be read; the caller closes it."""
        headers = self.headers()
        if body is not None:
            headers["Content-Type"] = content_type
        url = self.host + path + (f"?{urlencode(query)}" if query else "")
        try:
            response = self._pool.request(
                method,
                url,
                body=json.dumps(body) if body is not None else None,
                headers=headers,
                timeout=urllib3.Timeout(connect=5.0, read=timeout),
                retries=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"{method} {path}: no answer from {self.host}: {error}") from error
        if response.status >= 400:
            raise _api_error(method, path, response)
        return response

    def headers(self) -> dict[str, str]:
        """What says who asks; read anew each time, since tokens expire."""
        headers = {"Accept": "application/json", "User-Agent": MANAGER}
        self.client.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
        return headers

    def version(self) -> str:
        """The server's version without the ``v``."""
        return str(self.request("GET", "/version")["gitVersion"]).removeprefix("v")

    def ready(self) -> bool:
        """Whether the server says that it is ready; before that it may refuse who may do all."""
        try:
            return bool(self.request("GET", "/readyz", timeout=5.0) == "ok")
        except (ApiError, Unreachable):
            return False


def _read(method: str, path: str, response: urllib3.BaseHTTPResponse) -> bytes:
    """The whole answer. Raises Unreachable when it ends too early."""
    try:
        data = response.data
    except (urllib3.exceptions.HTTPError, OSError) as error:
        response.close()
        raise Unreachable(f"{method} {path}: the answer broke off: {error}") from error
    response.release_conn()
    return data


def _api_error(method: str, path: str, response: urllib3.BaseHTTPResponse) -> ApiError:
    data = _read(method, path, response)
    try:
        message = str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):  # not a Status: a proxy's answer, or a plain text
        message = data[:300].decode(errors="replace").strip()
    kind = Expired if response.status == 410 else ApiError
    return kind(f"{method} {path}: {response.status} {message}", status=response.status)
