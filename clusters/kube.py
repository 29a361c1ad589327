"""Talking to an API server: plain dicts in, plain dicts out.

The official client does TLS, kubeconfig and authentication; on top of it this module keeps
objects as the dicts the server sent (a history must hold what was seen, not a model of it), uses
server-side apply for everything we install, and waits on watches, never by polling.

``Resource`` names a kind by its API path; :meth:`Objects.resource` finds it by discovery, so custom
kinds need no code here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clusters.apiserver import MANAGER
from clusters.errors import ApiError, ClusterError, Expired
from clusters.objects import Objects, selectors
from clusters.resources import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    JOBSETS,
    NAMESPACES,
    NODES,
    PODS,
    PYTORCHJOBS,
    SERVICE_ACCOUNTS,
    SERVICES,
    TFJOBS,
    TRAINJOBS,
    Object,
    Resource,
    conditions,
    epoch,
)
from clusters.streaming import LineStream

__all__ = [
    "DEPLOYMENTS",
    "EVENTS",
    "JOBS",
    "JOBSETS",
    "MANAGER",
    "NAMESPACES",
    "NODES",
    "PODS",
    "PYTORCHJOBS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "TFJOBS",
    "TRAINJOBS",
    "ExecResult",
    "Kube",
    "Object",
    "Resource",
    "conditions",
    "epoch",
    "until_true",
]

#: seconds after which a watch without a word is taken for broken: bookmarks come every minute
SILENCE = 90.0


@dataclass(frozen=True)
class ExecResult:
    """What a command in a container printed, and how it ended."""

    code: int
    stdout: str
    stderr: str


class Kube(Objects):
    """An API server: objects, watches, pods' logs, commands in them. Threads may share it."""

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
        query: dict[str, object] = {**selectors(labels, fields), **_watching(since, timeout)}
        response = self.open("GET", what.path(namespace), None, query, "", timeout + 5)
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

    def list_raw(self, what: Resource, *, at: str = "", timeout: float = 30.0) -> bytes:
        """All objects of a kind in all namespaces, as the server sent them.

        Args:
            at: a version: as they were at exactly that one. The server forgets it (410) when its
                store is compacted.
        """
        query: dict[str, object] = {}
        if at:
            query = {"resourceVersion": at, "resourceVersionMatch": "Exact"}
        response = self.open("GET", what.path(), None, query or None, "", timeout)
        data = response.data
        response.release_conn()
        return data

    def watch_raw(self, what: Resource, *, since: str, timeout: float) -> LineStream:
        """As :meth:`watch`, in all namespaces, but lines as the server sent them.

        Errors that the server sends (ERROR events) are lines too. A connection on which nothing
        was heard for SILENCE seconds counts as broken.
        """
        query = _watching(since, timeout)
        return LineStream(self.open("GET", what.path(), None, query, "", SILENCE), what.plural)

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
        return podexec.run(self.client, self.host + path, query, self.headers(), what, timeout)


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
