"""The wire between a client and an API server, to be cut; and a client that is late."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from clusters.errors import ApiError
from clusters.kube import PODS, Kube


class Wire:
    """Passes bytes on to an API server, until it is told to cut all connections."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        """*kubeconfig*: of the server; *folder*: where :attr:`kubeconfig`, through it, is put."""
        url = urlsplit(Kube(kubeconfig).host)
        assert url.hostname is not None
        self._to = (url.hostname, url.port or 443)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()
        config = yaml.safe_load(kubeconfig.read_text())
        for cluster in config["clusters"]:
            # the server's certificate is for its own name, wherever it is reached
            cluster["cluster"]["tls-server-name"] = url.hostname
            port = self._listener.getsockname()[1]
            cluster["cluster"]["server"] = f"https://127.0.0.1:{port}"
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def cut(self) -> int:
        """Break all connections; how many."""
        found = list(self._open)
        for each in found:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(found) // 2

    def close(self) -> None:
        """No more connections either."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends an accept that is under way
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._to)
                self._open |= {client, server}
                for a, b in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    def _pump(self, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                to.sendall(data)
        for each in (source, to):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            self._open.discard(each)


class Aged:
    """The API of a server that was asked too late: once, for pods.

    Args:
        compacted: whether its store has forgotten former versions, too.

    Attributes:
        meanwhile: what happens in the cluster before it is asked.
    """

    def __init__(self, kube: Kube, *, compacted: bool = True) -> None:
        self._kube = kube
        self._compacted = compacted
        self.armed = False
        self.meanwhile: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    def watch_raw(self, what: Any, *, since: str, timeout: float) -> Any:
        if self.armed and what == PODS:
            self.meanwhile()
            self.armed = False  # only now: who waits for it does the next thing
            # a young server would still have every version in its cache
            raise ApiError(f"too old resource version: {since}", status=410)
        return self._kube.watch_raw(what, since=since, timeout=timeout)

    def list_raw(self, what: Any, *, at: str = "", timeout: float = 30.0) -> bytes:
        if at and self._compacted:
            raise ApiError("the requested version has been compacted", status=410)
        return self._kube.list_raw(what, at=at, timeout=timeout)
