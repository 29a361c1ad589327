"""What the recorder needs of a Kubernetes client. ``clusters.kube.Kube`` has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol


class Kind(NamedTuple):
    """A kind to record, in all namespaces."""

    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.api_version})"


CRDS = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
PODS = Kind("v1", "Pod")

#: recorded of every cluster; those that it does not serve (yet) cost a request every 10 s
KINDS = (
    PODS,
    Kind("v1", "Node"),
    Kind("v1", "Service"),
    Kind("v1", "Event"),
    Kind("v1", "Namespace"),
    Kind("v1", "ConfigMap"),
    Kind("autoscaling/v2", "HorizontalPodAutoscaler"),
    Kind("policy/v1", "PodDisruptionBudget"),
    Kind("kubeflow.org/v1", "PyTorchJob"),
    Kind("kubeflow.org/v1", "TFJob"),
    CRDS,
)


class Stream(Protocol):
    """An open watch."""

    def __iter__(self) -> Iterator[list[bytes]]:
        """Lines as the server sent them, as many at a time as have arrived.

        Ends when the server ends the watch.

        Raises:
            HarnessError: the connection broke.
        """

    def close(self) -> None:
        """End the iteration. From any thread, more than once."""


class Api(Protocol):
    """An API server. Threads share it.

    Its errors are HarnessErrors. One with an attribute ``status`` is the server's refusal (an
    HTTP status: 404 not served, 410 version expired); one without means no answer.
    """

    def resource(self, api_version: str, kind: str) -> Any:
        """What the other methods call a kind. Found by discovery."""

    def list_raw(self, what: Any, *, at: str = "", timeout: float = 30.0) -> bytes:
        """All objects of a kind in all namespaces, as the server sent them.

        Without *at* the list has to be a current one: no ``resourceVersion`` in the request. With
        it, as it was at exactly that version.
        """

    def watch_raw(self, what: Any, *, since: str, timeout: float) -> Stream:
        """A watch with bookmarks from resource version *since*, for *timeout* seconds at most."""
