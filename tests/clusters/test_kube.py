"""Requests, errors and watches, against a small server of our own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.errors import ApiError, ClusterError, Expired, NotServed, Unreachable
from clusters.kube import NODES, PODS, Kube, Object, Resource, conditions, epoch, until_true
from clusters.podexec import exit_code
from tests.clusters.api_server import Server, event, listed, node, refused, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as running:
        yield running


def watched(kube: Kube, **options: object) -> list[Object]:
    return list(kube.watch(NODES, since="5", timeout=10, **options))  # type: ignore[arg-type]


# requests


def test_get(server: Server) -> None:
    server.script = [lambda r: r.json(node("a"))]
    assert server.kube.get(NODES, "a") == node("a")
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/api/v1/nodes/a")
    assert request.headers["authorization"] == "Bearer secret"


def test_what_is_not_there(server: Server) -> None:
    server.script = [refused(404, 'nodes "a" not found')]
    assert server.kube.get(NODES, "a") is None
    assert server.kube.delete(NODES, "a") is False
    with pytest.raises(ApiError) as caught:
        server.kube.request("GET", "/api/v1/nodes/a")
    assert caught.value.status == 404


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (refused(403, "you may not"), ApiError, r"GET /api/v1/nodes/a: 403 you may not$"),
        (refused(410, "too old"), Expired, "410 too old"),
        (refused(500, ""), ApiError, "500"),
        (lambda r: r.raw(b"<html>gateway", 502, "text/html"), ApiError, "502 <html>gateway"),
        (lambda r: r.raw(b"[1]", 429), ApiError, r"429 \[1\]"),
        (lambda r: r.raw(b"", 401), ApiError, "401"),
    ],
)
def test_refusals(server: Server, answer: object, kind: type[ApiError], message: str) -> None:
    server.script = [answer]  # type: ignore[list-item]
    with pytest.raises(ApiError, match=message) as caught:
        server.kube.get(NODES, "a")
    assert type(caught.value) is kind
    assert len(server.requests) == 1  # a refusal is an answer: nothing asks again behind our back


def test_no_answer(server: Server) -> None:
    kube = server.kube
    server.stop()
    with pytest.raises(Unreachable, match=rf"GET /api/v1/nodes/a: no answer from .*{server.port}"):
        kube.get(NODES, "a")


def test_a_connection_that_is_closed_without_an_answer(server: Server) -> None:
    server.script = [lambda r: r.cut()]
    with pytest.raises(Unreachable, match="no answer"):
        server.kube.get(NODES, "a")
    assert len(server.requests) == 1  # what the server did of it nobody knows: not asked again


def test_an_answer_that_breaks_off(server: Server) -> None:
    def half(request: object) -> None:
        request.handler.send_response(200)  # type: ignore[attr-defined]
        request.handler.send_header("Content-Length", "1000")  # type: ignore[attr-defined]
        request.handler.end_headers()  # type: ignore[attr-defined]
        request.handler.wfile.write(b'{"half":')  # type: ignore[attr-defined]
        request.cut()  # type: ignore[attr-defined]

    server.script = [half]
    with pytest.raises(Unreachable, match="GET /api/v1/nodes/a: the answer broke off"):
        server.kube.get(NODES, "a")


def test_an_answer_that_takes_too_long(server: Server) -> None:
    server.script = [lambda r: r.stream(b"x", hold=3)]
    with pytest.raises(Unreachable):
        server.kube.request("GET", "/", timeout=0.3)


def test_lists_say_what_they_hold(server: Server) -> None:
    server.script = [listed(node("a"), node("b"), version=77)]
    kube = server.kube
    found = kube.find(PODS, "space", labels="a=b", fields="spec.nodeName=x")
    assert [(i["kind"], i["apiVersion"]) for i in found] == [("Pod", "v1")] * 2
    assert server.requests[0].path == "/api/v1/namespaces/space/pods"
    assert server.requests[0].query == {
        "labelSelector": "a=b", "fieldSelector": "spec.nodeName=x",
    }  # fmt: skip
    assert kube.list_with_version(PODS)[1] == "77"


def test_paths() -> None:
    jobs = Resource("kubeflow.org/v1", "tfjobs", "TFJob")
    assert jobs.path("a", "b") == "/apis/kubeflow.org/v1/namespaces/a/tfjobs/b"
    assert jobs.path() == "/apis/kubeflow.org/v1/tfjobs"
    assert NODES.path("ignored", "n") == "/api/v1/nodes/n"


_SERVED = {
    "resources": [
        {"name": "tfjobs/status", "kind": "TFJob", "namespaced": True},
        {"name": "tfjobs", "kind": "TFJob", "namespaced": True},
        {"name": "queues", "kind": "Queue", "namespaced": False},
    ]
}


def test_a_group_that_is_not_there_serves_no_kind(server: Server) -> None:
    server.script = [refused(404, "404 page not found"), refused(403, "forbidden")]
    with pytest.raises(NotServed, match="TrainJob"):
        server.kube.resource("x.io/v1", "TrainJob")
    with pytest.raises(ApiError) as caught:  # nobody can say
        server.kube.resource("x.io/v1", "TrainJob")
    assert not isinstance(caught.value, NotServed)


def test_kinds_are_found_by_discovery_once(server: Server) -> None:
    server.script = [lambda r: r.json(_SERVED)]
    kube = server.kube
    assert kube.resource("x.io/v1", "TFJob") == Resource("x.io/v1", "tfjobs", "TFJob")
    assert kube.resource("x.io/v1", "Queue") == Resource("x.io/v1", "queues", "Queue", False)
    assert [r.path for r in server.requests] == ["/apis/x.io/v1"]
    with pytest.raises(NotServed, match=r"does not serve PodGroup in x\.io/v1") as caught:
        kube.resource("x.io/v1", "PodGroup")
    assert (caught.value.status, caught.value.kind) == (404, "PodGroup")
    server.script = [
        *server.script * 2,
        lambda r: r.json({"resources": [{"name": "pg", "kind": "PodGroup", "namespaced": True}]}),
    ]
    assert kube.resource("x.io/v1", "PodGroup").plural == "pg"  # it was installed meanwhile


def test_apply_create_patch_delete(server: Server) -> None:
    server.script = [lambda r: r.json(_SERVED), lambda r: r.json({"done": r.path})]
    kube = server.kube
    job = {"apiVersion": "x.io/v1", "kind": "TFJob", "metadata": {"name": "j"}}
    own = {**job, "metadata": {"name": "j", "namespace": "own"}}
    queue = {"apiVersion": "x.io/v1", "kind": "Queue", "metadata": {"name": "q"}}
    assert kube.apply(job, own, queue, namespace="given") == [
        {"done": "/apis/x.io/v1/namespaces/given/tfjobs/j"},
        {"done": "/apis/x.io/v1/namespaces/own/tfjobs/j"},  # its own namespace wins
        {"done": "/apis/x.io/v1/queues/q"},
    ]
    applied = server.requests[1]
    assert applied.headers["content-type"] == "application/apply-patch+yaml"
    assert (applied.method, applied.body) == ("PATCH", job)
    assert applied.query == {"fieldManager": "muster", "force": "true"}

    kube.create(job, namespace="given")
    assert (server.requests[-1].method, server.requests[-1].body) == ("POST", job)
    assert server.requests[-1].path == "/apis/x.io/v1/namespaces/given/tfjobs"

    for body, kind in (({"a": 1}, "merge-patch"), ([{"op": "remove", "path": "/a"}], "json-patch")):
        kube.patch(NODES, "n", body, subresource="status")
        assert server.requests[-1].path == "/api/v1/nodes/n/status"
        assert server.requests[-1].headers["content-type"] == f"application/{kind}+json"

    assert kube.delete(PODS, "p", "s", grace=0) is True
    assert server.requests[-1].body == {
        "propagationPolicy": "Background", "gracePeriodSeconds": 0,
    }  # fmt: skip
    kube.delete(PODS, "p", "s")
    assert server.requests[-1].body == {"propagationPolicy": "Background"}


def test_logs(server: Server) -> None:
    server.script = [lambda r: r.raw(b"line\n\xff", kind="text/plain")]
    assert server.kube.logs("s", "p", "c", previous=True, tail=3) == "line\n�"
    assert server.requests[0].path == "/api/v1/namespaces/s/pods/p/log"
    assert server.requests[0].query == {"container": "c", "previous": "true", "tailLines": "3"}


def test_version_and_readiness(server: Server) -> None:
    server.script = [
        lambda r: r.json({"gitVersion": "v1.34.4"}),
        lambda r: r.raw(b"ok", kind="text/plain"),
        lambda r: r.raw(b"[-]etcd failed", 500, "text/plain"),
    ]
    kube = server.kube
    assert kube.version() == "1.34.4"
    assert kube.ready()
    assert not kube.ready()
    server.stop()
    assert not kube.ready()


# watches


def test_watch(server: Server) -> None:
    lines = [event("ADDED", node("a")), event("BOOKMARK", node("", 9)), event("DELETED", node("a"))]
    server.script = [lambda r: r.stream(*lines)]
    found = watched(server.kube, labels="a=b")
    assert [e["type"] for e in found] == ["ADDED", "BOOKMARK", "DELETED"]
    assert found[0]["object"] == node("a")
    assert server.requests[0].query == {
        "labelSelector": "a=b", "watch": "true", "allowWatchBookmarks": "true",
        "resourceVersion": "5", "timeoutSeconds": "10",
    }  # fmt: skip


def test_events_that_come_in_pieces(server: Server) -> None:
    """Chunks end anywhere: inside an event, inside a character, after several events."""
    data = b"".join(event("ADDED", node(name)) for name in ("a", "übung", "c")) + b"\n"
    data = data.replace(b"\\u00fc", "ü".encode())
    middle = data.index("ü".encode()) + 1
    server.script = [lambda r: r.stream(data[:3], data[3:middle], data[middle:])]
    assert [e["object"]["metadata"]["name"] for e in watched(server.kube)] == ["a", "übung", "c"]
    server.script = [lambda r: r.stream(*(data[i : i + 1] for i in range(len(data))))]
    assert len(watched(server.kube)) == 3


def test_watch_that_is_too_old(server: Server) -> None:
    gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
    server.script = [lambda r: r.stream(event("ADDED", node("a")), event("ERROR", gone))]
    stream = server.kube.watch(NODES, since="1")
    assert next(stream)["type"] == "ADDED"
    with pytest.raises(Expired, match="watch of nodes: too old resource version"):
        next(stream)
    server.script = [refused(410, "too old")]
    with pytest.raises(Expired):
        watched(server.kube)


def test_watch_that_ends_with_another_error(server: Server) -> None:
    server.script = [lambda r: r.stream(event("ERROR", {"code": 500, "message": "etcd is away"}))]
    with pytest.raises(ApiError, match="etcd is away") as caught:
        watched(server.kube)
    assert caught.value.status == 500
    assert not isinstance(caught.value, Expired)


def test_watch_that_is_cut(server: Server) -> None:
    server.script = [lambda r: r.stream(event("ADDED", node("a")), b'{"type":', whole=False)]
    with pytest.raises(Unreachable, match="watch of nodes"):
        watched(server.kube)


def test_watch_that_ends(server: Server) -> None:
    server.script = [lambda r: r.stream()]
    assert watched(server.kube) == []


# kubeconfigs


@pytest.mark.parametrize("text", ["{", "clusters: []", "current-context: x", "just words", ""])
def test_a_kubeconfig_that_is_no_good(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ClusterError, match=r"no usable context it in .*kubeconfig"):
        Kube(path, "it")


def test_a_context_that_is_not_there(server: Server) -> None:
    with pytest.raises(ClusterError, match="no usable context nope"):
        Kube(server.kubeconfig, "nope")


# helpers


def test_conditions_and_times() -> None:
    item = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert conditions(item) == {"Ready": "True"}
    assert conditions({"status": {"conditions": None}}) == {}
    assert conditions({}) == {}
    assert epoch("1970-01-01T00:01:00Z") == 60.0
    assert epoch("1970-01-01T00:00:00.250000Z") == 0.25


def test_exit_codes() -> None:
    assert exit_code('{"status": "Success"}') == 0
    cause = '{"reason": "ExitCode", "message": "137"}'
    assert exit_code(f'{{"status": "Failure", "details": {{"causes": [{cause}]}}}}') == 137
    with pytest.raises(ValueError, match="pod does not exist"):
        exit_code('{"status": "Failure", "message": "pod does not exist"}')
    other = '{"message": "unable to upgrade"}'
    with pytest.raises(ValueError, match="it failed"):
        exit_code(
            f'{{"status": "Failure", "message": "it failed", "details": {{"causes": [{other}]}}}}'
        )
    for broken in ("", "{", "[]", "null", '{"a": 1}'):
        with pytest.raises(ValueError, match="ended without a result"):
            exit_code(broken)


def test_until_true() -> None:
    answers = iter([False, False, True])
    until_true(lambda: next(answers), deadline=5, why="x", every=0.01)
    with pytest.raises(ClusterError, match=r"the sky: not within 0 s"):
        until_true(lambda: False, deadline=0.05, why="the sky", every=0.01)
