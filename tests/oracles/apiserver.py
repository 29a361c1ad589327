"""An API server of the tests' own: lists and watches over HTTP, and everything that goes wrong.

It keeps what a real one promises (one counter for all kinds, ordered watches, bookmarks, 410 for
what it forgot) and does on command what a real one does at the worst time.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from clusters.kube import Kube

Object = dict[str, Any]

KINDS = {
    "v1": {
        "pods": "Pod",
        "nodes": "Node",
        "services": "Service",
        "events": "Event",
        "namespaces": "Namespace",
        "configmaps": "ConfigMap",
    },
    "autoscaling/v2": {"horizontalpodautoscalers": "HorizontalPodAutoscaler"},
    "policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
    "kubeflow.org/v1": {"pytorchjobs": "PyTorchJob", "tfjobs": "TFJob"},
    "apiextensions.k8s.io/v1": {"customresourcedefinitions": "CustomResourceDefinition"},
}


class ApiServer:
    """See the module. Use as a context manager; ``kube`` is a client."""

    def __init__(self) -> None:
        self.served = {version: dict(kinds) for version, kinds in KINDS.items()}
        self.lock = threading.Condition()
        self.version = 100
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.log: list[tuple[int, str, str, Object]] = []  # version, kind, type, object
        self.forgotten = 0  # versions up to here are not known any more
        self.uncached = 0  # those up to here can be listed, not watched
        self.epoch = 0  # watches of an earlier epoch end
        self.refuse: dict[str, int] = {}  # kind -> HTTP status
        self.silent: set[str] = set()  # kinds of which watches get nothing
        self.requests: list[str] = []
        self.watching: set[tuple[str, socket.socket]] = set()
        self.made = 0
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    # life ----------------------------------------------------------------------------------

    def __enter__(self) -> ApiServer:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        """Answer, on the same port as before."""
        api = self

        class Handler(_Handler):
            server_api = api

        server = _Server(("127.0.0.1", self._port), Handler)
        self._port = server.server_port
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    def down(self) -> None:
        """Refuse connections, and break those that are open."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self.cut()

    def kube(self, folder: Path) -> Kube:
        """A client of it, the real one."""
        path = folder / "kubeconfig"
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [
                        {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._port}"}}
                    ],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        return Kube(path)

    # what happens in the cluster -----------------------------------------------------------

    def put(self, kind: str, name: str, namespace: str = "t", **parts: Any) -> int:
        """Make an object, or change it; the version that this was."""
        with self.lock:
            self.version += 1
            old = self.objects.get((kind, namespace, name))
            if old is None:
                self.made += 1
            meta = {**(old["metadata"] if old else {"uid": f"uid-{self.made}"})}
            meta |= {"name": name, "namespace": namespace, "resourceVersion": str(self.version)}
            meta |= {"managedFields": [{"manager": "m"}]}
            meta |= parts.pop("metadata", {})
            item = {"kind": kind, "metadata": meta, **parts}
            self.objects[(kind, namespace, name)] = item
            self.log.append((self.version, kind, "MODIFIED" if old else "ADDED", item))
            self.lock.notify_all()
            return self.version

    def delete(self, kind: str, name: str, namespace: str = "t") -> int:
        """Take an object away; the version that this was."""
        with self.lock:
            self.version += 1
            old = self.objects.pop((kind, namespace, name))
            meta = {**old["metadata"], "resourceVersion": str(self.version)}
            self.log.append((self.version, kind, "DELETED", {**old, "metadata": meta}))
            self.lock.notify_all()
            return self.version

    def bookmark(self, kind: str) -> int:
        """Tell watches of a kind how far they are."""
        return self._tell(kind, "BOOKMARK", {"resourceVersion": str(self.version)})

    def error(self, kind: str, code: int) -> None:
        """Send an error to watches of a kind."""
        self._tell(kind, "ERROR", {}, kind="Status", code=code, message=f"error {code}")

    def nonsense(self, kind: str) -> None:
        """Send what is no watch event."""
        self._tell(kind, "ADDED", "none")

    def _tell(self, to: str, type: str, metadata: object, **more: Any) -> int:
        with self.lock:
            self.version += 1  # only to be after everything else
            item = {"metadata": metadata, "once": True, **more}
            self.log.append((self.version, to, type, item))
            self.lock.notify_all()
            return self.version

    def forget(self) -> None:
        """Compact: versions up to now can be listed only."""
        with self.lock:
            self.forgotten = self.version

    def cache_anew(self) -> None:
        """Let nobody watch from versions up to now, as a server that was started again does."""
        with self.lock:
            self.uncached = self.version

    def end_watches(self) -> None:
        """End all watches, as a server does after their time."""
        with self.lock:
            self.epoch += 1
            self.lock.notify_all()

    def cut(self, kind: str = "") -> None:
        """Break the connections of watches."""
        with self.lock:
            found = [each for each in self.watching if not kind or each[0] == kind]
        for _, connection in found:
            with suppress(OSError):
                # a reset, not a goodbye
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.lock.notify_all()

    @contextmanager
    def silence(self, kind: str) -> Iterator[None]:
        """Watches of a kind get nothing meanwhile, and everything afterwards."""
        self.silent.add(kind)
        yield
        with self.lock:
            self.silent.discard(kind)
            self.lock.notify_all()

    def watchers(self, kind: str) -> int:
        """How many watches of a kind are open."""
        return sum(1 for each, _ in self.watching if each == kind)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_api: ApiServer

    def do_GET(self) -> None:
        api = self.server_api
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        with api.lock:
            api.requests.append(self.path)
        base, _, last = url.path.rpartition("/")
        group = base.removeprefix("/apis/").removeprefix("/api/")
        own = url.path.removeprefix("/apis/").removeprefix("/api/")
        if own in api.served:
            kinds = api.served[own]
            found = [
                {"name": p, "kind": k, "namespaced": k not in ("Node", "Namespace")}
                for p, k in kinds.items()
            ]
            self._json(200, {"resources": found})
        elif last not in api.served.get(group, {}):
            self._json(404, {"kind": "Status", "message": "not served", "code": 404})
        else:
            self._kind(api.served[group][last], query)

    def _kind(self, kind: str, query: dict[str, str]) -> None:
        api = self.server_api
        if status := api.refuse.get(kind):
            self._json(status, {"kind": "Status", "message": "refused", "code": status})
        elif "watch" in query:
            self._watch(kind, int(query["resourceVersion"]))
        elif query.get("resourceVersionMatch") == "Exact":
            self._as_it_was(kind, int(query["resourceVersion"]))
        else:
            with api.lock:
                items = [
                    {key: value for key, value in item.items() if key != "kind"}
                    for (each, _, _), item in api.objects.items()
                    if each == kind
                ]
                answer = {"metadata": {"resourceVersion": str(api.version)}, "items": items}
            self._json(200, answer)

    def _as_it_was(self, kind: str, version: int) -> None:
        api = self.server_api
        if version <= api.forgotten:
            self._json(410, {"kind": "Status", "message": "compacted", "code": 410})
            return
        there: dict[str, Object] = {}
        with api.lock:
            for at, of, type, item in api.log:
                if of == kind and at <= version and "once" not in item:
                    there[item["metadata"]["uid"]] = item
                    if type == "DELETED":
                        del there[item["metadata"]["uid"]]
        items = list(there.values())
        self._json(200, {"metadata": {"resourceVersion": str(version)}, "items": items})

    def _json(self, status: int, body: Object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _watch(self, kind: str, since: int) -> None:
        api = self.server_api
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        me = (kind, self.connection)
        with api.lock:
            epoch = api.epoch
            api.watching.add(me)
        try:
            if since < max(api.forgotten, api.uncached):
                gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
                self._chunk({"type": "ERROR", "object": gone})
                return
            position = 0
            begun = len(api.log)
            while api.epoch == epoch and self.connection.fileno() >= 0:
                with api.lock:
                    if position == len(api.log) or kind in api.silent:
                        api.lock.wait(0.2)
                    news = [] if kind in api.silent else api.log[position:]
                    first, position = position, position + len(news)
                for index, (version, of, type, item) in enumerate(news, first):
                    if of == kind and version > since and not (index < begun and "once" in item):
                        self._chunk({"type": type, "object": item})
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, ValueError):
            self.close_connection = True
        finally:
            with api.lock:
                api.watching.discard(me)

    def _chunk(self, event: Object) -> None:
        data = json.dumps(event).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, *_: object) -> None:
        pass


def wait_until(check: Any, seconds: float = 10.0) -> None:
    """Wait for something; an assertion when it does not come."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.005)
