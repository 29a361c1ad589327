"""Commands in running containers, over a websocket."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from kubernetes import client
from kubernetes.stream.ws_client import ERROR_CHANNEL, websocket_call
from websocket import WebSocketException

from clusters.errors import ClusterError
from clusters.kube import ExecResult


def run(
    api: Any,
    url: str,
    query: list[tuple[str, str]],
    headers: dict[str, str],
    what: str,
    timeout: float,
) -> ExecResult:
    """Run the command that *query* holds; *what* names it in errors. See ``Kube.exec``."""
    words = urlencode([*query, ("stdout", "true"), ("stderr", "true")])
    try:
        socket: Any = websocket_call(  # type: ignore[no-untyped-call]
            api.configuration, "GET", f"{url}?{words}", headers=headers,
            query_params=[], _preload_content=False,
        )  # fmt: skip
        socket.run_forever(timeout=timeout)
    except client.ApiException as error:
        raise ClusterError(f"{what} failed: {error.reason}") from error
    except (OSError, WebSocketException) as error:
        raise ClusterError(f"{what} broke off: {error}") from error
    if socket.is_open():
        socket.close()
        raise ClusterError(f"{what} ran over {timeout:.0f} s")
    try:
        code = exit_code(socket.read_channel(ERROR_CHANNEL))
    except ValueError as error:
        raise ClusterError(f"{what} failed: {error}") from error
    return ExecResult(code, socket.read_stdout(), socket.read_stderr())


def exit_code(status: str) -> int:
    """The exit code in the Status with which an exec ends.

    Raises:
        ValueError: the command did not run; says why.
    """
    try:
        found = json.loads(status)
        if found["status"] == "Success":
            return 0
        causes = (found.get("details") or {}).get("causes") or []
        codes = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
        return int(codes[0])
    except IndexError:
        raise ValueError(found.get("message") or status) from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"it ended without a result ({status[:200]!r})") from None
