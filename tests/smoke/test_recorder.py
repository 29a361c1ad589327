"""The recorder on a real API server: nothing is missed, and what was missed is said."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.kube import NAMESPACES, PODS, Kube, until_true
from oracles.history import Event
from oracles.reading import History
from oracles.recorder import Recorder
from tests.wire import Aged, Wire

pytestmark = pytest.mark.smoke

COUNT = 5000
#: connections that write at once: as fast as the server takes it
WRITERS = 4


@pytest.fixture
def wire(kubeconfig: Path, tmp_path: Path) -> Iterator[tuple[Wire, Kube]]:
    """A wire to the API server, and a client at its end."""
    between = Wire(kubeconfig, tmp_path)
    yield between, Kube(between.kubeconfig)
    between.close()


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
    kube: Kube, namespace: str, wire: tuple[Wire, Kube], tmp_path: Path
) -> None:
    between, through = wire
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


def test_what_a_watch_that_expired_does_not_tell_is_in_the_store(
    kube: Kube, namespace: str, wire: tuple[Wire, Kube], tmp_path: Path
) -> None:
    """Each change in its order, also of what came and went meanwhile."""
    between, through = wire
    pod(kube, namespace, "stays")
    api = Aged(through, compacted=False)

    def happen() -> None:
        count(kube, namespace, "stays", range(3, 20))
        pod(kube, namespace, "comes")
        kube.delete(PODS, "comes", namespace, grace=0)

    with Recorder(api, tmp_path / "h.jsonl", run="smoke", cluster="smoke") as recorder:
        count(kube, namespace, "stays", range(1, 3))
        assert recorder.settle(30) == []
        api.meanwhile = happen
        api.armed = True
        between.cut()
        until_true(lambda: not api.armed, deadline=30, why="it is asked too late")
        count(kube, namespace, "stays", range(20, 22))
        assert recorder.settle(30) == []
        assert recorder.statistics().gaps == 0
    assert seen(recorder, namespace, "stays") == list(range(1, 22))
    came = [e for e in events(recorder) if (e.kind, e.name) == ("Pod", "comes")]
    assert (came[0].type, came[-1].type) == ("ADDED", "DELETED")


def test_a_watch_that_expired_is_a_gap(
    kube: Kube, namespace: str, wire: tuple[Wire, Kube], tmp_path: Path
) -> None:
    between, through = wire
    pod(kube, namespace, "stays")
    pod(kube, namespace, "goes")
    api = Aged(through)

    def happen() -> None:
        count(kube, namespace, "stays", range(3, 6))
        kube.delete(PODS, "goes", namespace, grace=0)

    with Recorder(api, tmp_path / "h.jsonl", run="smoke", cluster="smoke") as recorder:
        count(kube, namespace, "stays", range(1, 3))
        assert recorder.settle(30) == []
        api.meanwhile = happen
        api.armed = True
        between.cut()
        until_true(lambda: not api.armed, deadline=30, why="it is asked too late")
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
