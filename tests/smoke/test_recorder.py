"""The recorder on a real API server: nothing is missed, and what was missed is said."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from clusters.kube import NAMESPACES, PODS, Kube
from oracles.history import Event
from oracles.reading import History
from oracles.recorder import Recorder

pytestmark = pytest.mark.smoke

COUNT = 5000
#: connections that write at once: as fast as the server takes it
WRITERS = 4


class Proxy:
    """Passes bytes on to the API server, until it is told to cut all connections."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Break all connections; how many."""
        found = list(self._open)
        for each in found:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(found) // 2

    def close(self) -> None:
        """No more connections either."""
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


@pytest.fixture
def proxy(kubeconfig: Path, kube: Kube, tmp_path: Path) -> Iterator[tuple[Proxy, Kube]]:
    """A proxy before the API server, and a client that goes through it."""
    url = urlsplit(kube.host)
    assert url.hostname is not None
    proxy = Proxy(url.hostname, url.port or 443)
    config = yaml.safe_load(kubeconfig.read_text())
    for cluster in config["clusters"]:
        # the server's certificate is for its own name, wherever it is reached
        cluster["cluster"]["tls-server-name"] = url.hostname
        cluster["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    yield proxy, Kube(path)
    proxy.close()


@pytest.fixture
def namespace(kube: Kube) -> Iterator[str]:
    name = f"recorder-{secrets.token_hex(3)}"
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    kube.delete(NAMESPACES, name)


def pod(kube: Kube, namespace: str, name: str) -> None:
    """A pod that no node takes: only what is written to it happens to it."""
    spec = {"nodeSelector": {"no-such": "node"}, "containers": [{"name": "c", "image": "none"}]}
    meta = {"name": name, "namespace": namespace}
    kube.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def count(kube: Kube, namespace: str, name: str, values: range) -> None:
    for value in values:
        patch = {"metadata": {"annotations": {"count": str(value)}}}
        kube.patch(PODS, name, patch, namespace)


def seen(recorder: Recorder, namespace: str, name: str) -> list[int]:
    return [
        int(annotations["count"])
        for event in events(recorder)
        if (event.kind, event.namespace, event.name) == ("Pod", namespace, name)
        and "count" in (annotations := event.object["metadata"].get("annotations", {}))
    ]


def events(recorder: Recorder) -> list[Event]:
    history = History(recorder.path)
    found = list(history.events())
    assert history.damage == []
    return found


def test_every_value_of_an_annotation_that_counts_is_found(
    kube: Kube, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    pods = [f"p{n}" for n in range(WRITERS)]
    for name in pods:
        pod(kube, namespace, name)
    each = COUNT // WRITERS
    values = {name: range(1 + n * each, 1 + (n + 1) * each) for n, name in enumerate(pods)}
    path = tmp_path / "history.jsonl"
    with Recorder(Kube(kubeconfig), path, run="smoke", cluster="smoke") as recorder:
        writers = [
            threading.Thread(target=count, args=(Kube(kubeconfig), namespace, name, values[name]))
            for name in pods
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert recorder.settle(30) == []
        for name in pods:
            found = seen(recorder, namespace, name)
            assert sorted(set(found)) == list(values[name])
            assert found == sorted(found)
    assert recorder.statistics().gaps == 0


def test_connections_that_are_cut_lose_nothing(
    kube: Kube, namespace: str, proxy: tuple[Proxy, Kube], tmp_path: Path
) -> None:
    between, through = proxy
    pod(kube, namespace, "p")
    with Recorder(through, tmp_path / "h.jsonl", run="smoke", cluster="smoke") as recorder:
        for start in range(1, 501, 50):
            count(kube, namespace, "p", range(start, start + 50))
            assert between.cut() > 0
        assert recorder.settle(30) == []
        statistics = recorder.statistics()
    assert sorted(set(seen(recorder, namespace, "p"))) == list(range(1, 501))
    assert statistics.gaps == 0
    assert statistics.resumed > 0
    resumed = [e for e in events(recorder) if e.source == "gap"]
    assert {e.type for e in resumed} == {"resumed"}


class Aged:
    """The API of a server that was asked too late: once, for pods."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self.armed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    def watch_raw(self, what: Any, *, since: str, timeout: float) -> Any:
        if self.armed and what == PODS:
            self.armed = False
            since = "1"
        return self._kube.watch_raw(what, since=since, timeout=timeout)


def test_a_watch_that_expired_is_a_gap(
    kube: Kube, namespace: str, proxy: tuple[Proxy, Kube], tmp_path: Path
) -> None:
    between, through = proxy
    pod(kube, namespace, "stays")
    pod(kube, namespace, "goes")
    api = Aged(through)
    with Recorder(api, tmp_path / "h.jsonl", run="smoke", cluster="smoke") as recorder:
        count(kube, namespace, "stays", range(1, 3))
        assert recorder.settle(30) == []
        api.armed = True
        between.cut()
        count(kube, namespace, "stays", range(3, 6))
        kube.delete(PODS, "goes", namespace, grace=0)
        assert recorder.settle(30) == []
        count(kube, namespace, "stays", range(6, 8))
        assert recorder.settle(30) == []
        assert recorder.statistics().gaps == 1
    found = events(recorder)
    gap = [e for e in found if e.source == "gap" and e.kind == "Pod" and e.type != "resumed"]
    assert [e.type for e in gap] == ["begin", "end"]
    assert "too old" in gap[0].object["why"] or "Expired" in gap[0].object["why"]
    # what was there before and after it is there
    values = seen(recorder, namespace, "stays")
    assert {1, 2, 6, 7} <= set(values)
    assert [e.type for e in found if (e.kind, e.name) == ("Pod", "goes")][-1] == "DELETED"
