"""A small HTTP server that answers as an API server does, by what a test has scripted."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from clusters.kube import Kube

Answer = Callable[["Request"], None]


@dataclass
class Request:
    """One request, and how to answer it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    handler: BaseHTTPRequestHandler = field(repr=False)

    def json(self, body: object, status: int = 200) -> None:
        """Answer with JSON."""
        self.raw(json.dumps(body).encode(), status)

    def raw(self, body: bytes, status: int = 200, kind: str = "application/json") -> None:
        """Answer with these bytes."""
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Content-Length", str(len(body)))
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def stream(self, *chunks: bytes, whole: bool = True, hold: float = 0.0) -> None:
        """Answer in chunks; with *whole* false the connection breaks off after the last."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "application/json")
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()
        for chunk in chunks:
            self.handler.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            self.handler.wfile.flush()
        time.sleep(hold)
        if whole:
            self.handler.wfile.write(b"0\r\n\r\n")
        else:
            self.cut()

    def cut(self) -> None:
        """End the connection in the middle of things."""
        self.handler.close_connection = True
        self.handler.wfile.close()


class Server:
    """The server: answers come from ``script`` in order, the last one again and again."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[Request] = []
        self.script: list[Answer] = []
        self._kubeconfig = folder / "kubeconfig"
        self._http: ThreadingHTTPServer | None = None
        self.port = 0
        self.start()

    def start(self) -> None:
        """Begin to listen, on the same port as before."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                outer._answer(self)

            do_GET = do_POST = do_PATCH = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Stop to listen: connections are refused from now on."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        url = urlsplit(handler.path)
        size = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(size)) if size else None
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        request = Request(
            handler.command,
            url.path,
            query,
            {k.lower(): v for k, v in handler.headers.items()},
            body,
            handler,
        )
        self.requests.append(request)
        number = min(len(self.requests), len(self.script)) - 1
        self.script[number](request)

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with one context, ``it``, of a user with a token."""
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "it", "user": {"token": "secret"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }  # fmt: skip
        self._kubeconfig.write_text(yaml.safe_dump(config))
        return self._kubeconfig

    @property
    def kube(self) -> Kube:
        """A client of it."""
        return Kube(self.kubeconfig, "it")


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server, until the block ends."""
    server = Server(folder)
    try:
        yield server
    finally:
        server.stop()


def node(name: str, version: int = 1, **status: object) -> dict[str, Any]:
    """A node object."""
    return {
        "metadata": {"name": name, "resourceVersion": str(version)},
        "spec": {},
        "status": status,
    }


def listed(*items: dict[str, Any], version: int = 10) -> Answer:
    """Answers a list."""
    return lambda r: r.json({"metadata": {"resourceVersion": str(version)}, "items": list(items)})


def event(kind: str, item: dict[str, Any]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def refused(status: int, message: str) -> Answer:
    """Answers with a Status object."""
    return lambda r: r.json({"kind": "Status", "message": message, "code": status}, status)
