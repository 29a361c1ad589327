"""Namespaces of ours: made so that pods can be, and emptied."""

from __future__ import annotations

from collections.abc import Mapping

from clusters.errors import WaitTimeout
from clusters.kube import PODS, Kube, Object, Resource

_ACCOUNTS = Resource("v1", "serviceaccounts", "ServiceAccount")
#: seconds until a new namespace has its service account, without which no pod is admitted
USABLE = 30.0
#: seconds until the pods of a deleted namespace are gone
GONE = 60.0
#: the same, when they are forced: their node may be down
FORCED = 15.0


def make(kube: Kube, name: str, labels: Mapping[str, str]) -> None:
    """Make a namespace; returns when it can be used.

    Raises:
        WaitTimeout: it was not usable within the deadline; it is there.
    """
    kube.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": dict(labels)},
        }
    )
    wait_usable(kube, name)


def wait_usable(kube: Kube, name: str) -> None:
    """Wait until pods of a new namespace are admitted. Raises WaitTimeout."""
    kube.wait(
        _ACCOUNTS, lambda found: True if found else None, namespace=name,
        fields="metadata.name=default", deadline=USABLE, why=f"service account of namespace {name}",
    )  # fmt: skip


def empty(kube: Kube, name: str) -> None:
    """End the pods of a namespace that was deleted, by force if they do not go; waits for it.

    Nothing can be made in it any more, so nobody replaces a pod.

    Raises:
        WaitTimeout: pods were left although they were forced.
    """
    # One second of grace and not none: with none the API forgets the pod while its processes may
    # still run.
    for grace, deadline in ((1, GONE), (0, FORCED)):
        kube.request("DELETE", PODS.path(name), body={"gracePeriodSeconds": grace})
        try:
            kube.wait(
                PODS, _none_left, namespace=name, deadline=deadline, why=f"pods of {name} gone"
            )
            return
        except WaitTimeout:
            if grace == 0:
                raise


def _none_left(pods: list[Object]) -> bool | None:
    return None if pods else True
