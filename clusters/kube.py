"""Talking to an API server: plain dicts in, plain dicts out.

The official client does TLS, kubeconfig and authentication; on top of it this module keeps
objects as the dicts the server sent (a history must hold what was seen, not a model of it), uses
server-side apply for everything we install, and waits on watches, never by polling.

``Resource`` names a kind by its API path; :meth:`Kube.resource` finds it by discovery, so custom
kinds need no code here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from clusters.errors import ApiError, ClusterError, Expired, Unreachable
from clusters.streaming import LineStream

Object = dict[str, Any]

#: field manager of everything that is applied, and label of everything that is made
MANAGER = "muster"
#: seconds after which a watch without a word is taken for broken: bookmarks come every minute
SILENCE = 90.0


@dataclass(frozen=True)
class Resource:
    """A kind as the API server serves it."""

    api_version: str
    plural: str
    kind: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """The URL path of the collection, or of one object."""
        base = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        if self.namespaced and namespace:
            base += f"/namespaces/{namespace}"
        base += f"/{self.plural}"
        return f"{base}/{name}" if name else base


PODS = Resource("v1", "pods", "Pod")
NODES = Resource("v1", "nodes", "Node", namespaced=False)
SERVICES = Resource("v1", "services", "Service")
EVENTS = Resource("v1", "events", "Event")
NAMESPACES = Resource("v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment")
PYTORCHJOBS = Resource("kubeflow.org/v1", "pytorchjobs", "PyTorchJob")
TFJOBS = Resource("kubeflow.org/v1", "tfjobs", "TFJob")


@dataclass(frozen=True)
class ExecResult:
    """What a command in a container printed, and how it ended."""

    code: int
    stdout: str
    stderr: str


class Kube:
    """One API server, as one user of it. Threads may share it."""

    def __init__(self, kubeconfig: Path, context: str | None = None) -> None:
        # most of a second to import: commands that speak to no cluster shall not pay for it
        from kubernetes import config

        try:
            self._client: Any = config.new_client_from_config(  # type: ignore[no-untyped-call]
                str(kubeconfig), context=context
            )
        except Exception as error:  # the library checks little, so anything comes out of it
            raise ClusterError(
                f"no usable context {context or '(current)'} in {kubeconfig}: {error}",
                hint=f"kubectl config get-contexts --kubeconfig {kubeconfig}",
            ) from error
        self.host = str(self._client.configuration.host)
        # a pool of our own: no hidden retries, and room for a watch per thread
        self._client.rest_client.pool_manager.connection_pool_kw["maxsize"] = 32
        self._pool: urllib3.PoolManager = self._client.rest_client.pool_manager
        self._resources: dict[tuple[str, str], Resource] = {}

    # requests ------------------------------------------------------------------------------

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
        response = self._open(method, path, body, query, content_type, timeout)
        data = _read(method, path, response)
        if response.headers.get("content-type", "").startswith("application/json"):
            return json.loads(data)
        return data.decode(errors="replace")

    def _open(
        self,
        method: str,
        path: str,
        body: object,
        query: dict[str, object] | None,
        content_type: str,
        timeout: float,
    ) -> urllib3.BaseHTTPResponse:
        headers = self._headers()
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

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": MANAGER}
        self._client.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
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

    def resource(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind, by discovery (cached). Raises ApiError when not served."""
        known = self._resources.get((api_version, kind))
        if known is None:
            base = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
            for item in self.request("GET", base)["resources"]:
                if "/" not in item["name"]:
                    found = Resource(api_version, item["name"], item["kind"], item["namespaced"])
                    self._resources[(api_version, item["kind"])] = found
            known = self._resources.get((api_version, kind))
        if known is None:
            raise ApiError(f"{self.host} does not serve {kind} in {api_version}", status=404)
        return known

    # objects -------------------------------------------------------------------------------

    def get(self, what: Resource, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None when there is none."""
        try:
            answer: Object = self.request("GET", what.path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return answer

    def find(
        self, what: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        """All objects of a kind, in one namespace or in all, that match the selectors."""
        return self.list_with_version(what, namespace, labels=labels, fields=fields)[0]

    def list_with_version(
        self, what: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> tuple[list[Object], str]:
        """As :meth:`find`, with the resource version that a watch goes on from."""
        answer = self.request("GET", what.path(namespace), query=_selectors(labels, fields))
        items = answer["items"]
        for item in items:  # a list leaves these out, a watch does not
            item.setdefault("apiVersion", what.api_version)
            item.setdefault("kind", what.kind)
        return items, answer["metadata"]["resourceVersion"]

    def create(self, manifest: Object, *, namespace: str | None = None) -> Object:
        """Create an object; what the server made of it."""
        what = self.resource(manifest["apiVersion"], manifest["kind"])
        namespace = manifest["metadata"].get("namespace") or namespace
        answer: Object = self.request("POST", what.path(namespace), body=manifest)
        return answer

    def apply(self, *manifests: Object, namespace: str | None = None) -> list[Object]:
        """Server-side apply, in the given order; what the server made of each.

        An object's own namespace wins over *namespace*.
        """
        done = []
        for manifest in manifests:
            what = self.resource(manifest["apiVersion"], manifest["kind"])
            target = manifest["metadata"].get("namespace") or namespace
            done.append(
                self.request(
                    "PATCH",
                    what.path(target, manifest["metadata"]["name"]),
                    body=manifest,
                    query={"fieldManager": MANAGER, "force": "true"},
                    content_type="application/apply-patch+yaml",
                )
            )
        return done

    def patch(
        self,
        what: Resource,
        name: str,
        body: object,
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> Object:
        """Change an object: a dict is a merge patch, a list a JSON patch."""
        path = what.path(namespace, name) + (f"/{subresource}" if subresource else "")
        kind = "json-patch" if isinstance(body, list) else "merge-patch"
        answer: Object = self.request(
            "PATCH", path, body=body, content_type=f"application/{kind}+json"
        )
        return answer

    def delete(
        self,
        what: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace: int | None = None,
    ) -> bool:
        """Delete an object; False when there was none. *grace*: seconds, 0 kills at once."""
        body: Object = {"propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self.request("DELETE", what.path(namespace, name), body=body)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    # watching ------------------------------------------------------------------------------

    def watch(
        self,
        what: Resource,
        namespace: str | None = None,
        *,
        since: str,
        labels: str = "",
        fields: str = "",
        timeout: float = 300.0,
    ) -> Iterator[Object]:
        """Watch events (``type``, ``object``) after resource version *since*, bookmarks included.

        Ends when the server closes the stream or after *timeout* seconds.

        Raises:
            Expired: the server no longer has *since*; list again.
            Unreachable: the connection broke.
        """
        query: dict[str, object] = {**_selectors(labels, fields), **_watching(since, timeout)}
        response = self._open("GET", what.path(namespace), None, query, "", timeout + 5)
        stream = LineStream(response, what.plural)
        try:
            for lines in stream:
                for line in lines:
                    event: Object = json.loads(line)
                    if event["type"] == "ERROR":
                        raise _watch_error(what, event["object"])
                    yield event
        finally:
            stream.close()

    # for the recorder ------------------------------------------------------------------------

    def list_raw(self, what: Resource, *, timeout: float = 30.0) -> bytes:
        """All objects of a kind in all namespaces, as the server sent them."""
        response = self._open("GET", what.path(), None, None, "", timeout)
        data = response.data
        response.release_conn()
        return data

    def watch_raw(self, what: Resource, *, since: str, timeout: float) -> LineStream:
        """As :meth:`watch`, in all namespaces, but lines as the server sent them.

        Errors that the server sends (ERROR events) are lines too. A connection on which nothing
        was heard for SILENCE seconds counts as broken.
        """
        query = _watching(since, timeout)
        return LineStream(self._open("GET", what.path(), None, query, "", SILENCE), what.plural)

    def wait[T](
        self,
        what: Resource,
        until: Callable[[list[Object]], T | None],
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        deadline: float,
        why: str,
    ) -> T:
        """Wait on a watch until *until* (given all matching objects) is not None; return that.

        Args:
            deadline: seconds from now.
            why: what is waited for, for the message on expiry.

        Raises:
            WaitTimeout: with what was last seen of each object.
        """
        from clusters.waiting import wait_for

        return wait_for(self, what, until, namespace, labels, fields, deadline, why)

    # pods ----------------------------------------------------------------------------------

    def logs(
        self,
        namespace: str,
        pod: str,
        container: str | None = None,
        *,
        previous: bool = False,
        tail: int | None = None,
    ) -> str:
        """The log of a container (of the one before its last restart with *previous*)."""
        query: dict[str, object] = {}
        if container:
            query["container"] = container
        if previous:
            query["previous"] = "true"
        if tail is not None:
            query["tailLines"] = tail
        answer = self.request("GET", PODS.path(namespace, pod) + "/log", query=query)
        return answer if isinstance(answer, str) else json.dumps(answer)

    def exec(
        self,
        namespace: str,
        pod: str,
        command: list[str],
        *,
        container: str | None = None,
        timeout: float = 30.0,
    ) -> ExecResult:
        """Run a command in a running container.

        Raises:
            ClusterError: the connection failed, or no end after *timeout* seconds.
        """
        from clusters import podexec  # heavy, as the client is

        path = f"{PODS.path(namespace, pod)}/exec"
        query = [("command", part) for part in command]
        if container:
            query.append(("container", container))
        what = f"exec of {command[0]} in {namespace}/{pod}"
        return podexec.run(self._client, self.host + path, query, self._headers(), what, timeout)


def _selectors(labels: str, fields: str) -> dict[str, object]:
    query: dict[str, object] = {}
    if labels:
        query["labelSelector"] = labels
    if fields:
        query["fieldSelector"] = fields
    return query


def _watching(since: str, timeout: float) -> dict[str, object]:
    return {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": since,
        "timeoutSeconds": max(1, int(timeout)),
    }


def _watch_error(what: Resource, status: Object) -> ApiError:
    text = f"watch of {what.plural}: {status.get('message')}"
    if status.get("code") == 410:
        return Expired(text)
    return ApiError(text, status=int(status.get("code") or 500))


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


def conditions(item: Object) -> dict[str, str]:
    """Condition type -> status (``True``, ``False``, ``Unknown``) of any object."""
    return {c["type"]: c["status"] for c in item.get("status", {}).get("conditions") or []}


def epoch(timestamp: str) -> float:
    """Seconds since 1970 of a timestamp as the API writes them."""
    return datetime.fromisoformat(timestamp).timestamp()


def until_true(check: Callable[[], bool], *, deadline: float, why: str, every: float = 0.5) -> None:
    """Wait for something that has no watch (a socket, a process, DNS).

    Raises:
        ClusterError: not true after *deadline* seconds.
    """
    end = time.monotonic() + deadline
    while not check():
        if time.monotonic() > end:
            raise ClusterError(f"{why}: not within {deadline:.0f} s")
        time.sleep(every)
