"""Kinds as an API server serves them, and what all objects have in common."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from oracles.relations import TERMINAL

Object = dict[str, Any]


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
SERVICE_ACCOUNTS = Resource("v1", "serviceaccounts", "ServiceAccount")
DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment")
PYTORCHJOBS = Resource("kubeflow.org/v1", "pytorchjobs", "PyTorchJob")
TFJOBS = Resource("kubeflow.org/v1", "tfjobs", "TFJob")
TRAINJOBS = Resource("trainer.kubeflow.org/v1alpha1", "trainjobs", "TrainJob")
#: what a TrainJob is made into, and that into these
JOBSETS = Resource("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet")
JOBS = Resource("batch/v1", "jobs", "Job")


def conditions(item: Object) -> dict[str, str]:
    """Condition type -> status (``True``, ``False``, ``Unknown``) of any object."""
    return {c["type"]: c["status"] for c in item.get("status", {}).get("conditions") or []}


def is_bound(pod: Object) -> bool:
    """Whether a pod has a node and still holds its place there."""
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in TERMINAL


def epoch(timestamp: str) -> float:
    """Seconds since 1970 of a timestamp as the API writes them."""
    return datetime.fromisoformat(timestamp).timestamp()


def touched() -> Object:
    """A patch that means nothing, and wakes whoever watches the object."""
    return {"metadata": {"annotations": {"muster.dev/touched": f"{time.time():.3f}"}}}
