"""What kubelets say of pods that they refuse, in their own words, and what is read from it."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.refusals import refusal
from clusters.topology import GPU
from clusters.waiting import describe
from fixtures.systems import explaining

_PLUGIN = "Pod was rejected: Allocate failed due to {}, which is unexpected"


def pod(reason: str, message: str = "", phase: str = "Failed") -> dict[str, Any]:
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n"},
        "status": {"phase": phase, "reason": reason, "message": message},
    }


@pytest.mark.parametrize(
    "words",
    [
        f"requested number of devices unavailable for {GPU}. Requested: 1, Available: 0",
        f"no healthy devices present; cannot allocate unhealthy devices {GPU}",
        f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices"
        f" {GPU}",
        f"cannot allocate unregistered device {GPU}",
    ],
)
def test_a_resource_of_a_device_plugin(words: str) -> None:
    found = refusal(pod("UnexpectedAdmissionError", _PLUGIN.format(words)))
    assert found is not None
    assert found.resource == GPU
    assert str(found).startswith(f"refused by its kubelet for want of {GPU}: Unexpected")
    assert words in str(found)


def test_a_resource_that_the_kubelet_sums_up() -> None:
    found = refusal(pod(f"OutOf{GPU}", "Pod was rejected: Node didn't have enough resource"))
    assert found is not None
    assert found.resource == GPU


def test_what_is_unexpected_otherwise_names_no_resource() -> None:
    found = refusal(pod("UnexpectedAdmissionError", "Update plugin resources failed"))
    assert found is not None
    assert (found.resource, str(found)) == (
        "",
        "refused by its kubelet: UnexpectedAdmissionError: Update plugin resources failed",
    )


@pytest.mark.parametrize(
    "other",
    [
        pod("DeadlineExceeded"),
        pod("Evicted", "The node was low on resource: memory."),
        pod("", ""),
        pod(f"OutOf{GPU}", phase="Pending"),
        {"metadata": {"name": "new"}},
    ],
)
def test_others_were_not_refused(other: dict[str, Any]) -> None:
    assert refusal(other) is None


def test_whoever_waits_for_such_a_pod_is_told() -> None:
    item = pod(f"OutOf{GPU}", "no room")
    words = f"refused by its kubelet for want of {GPU}: OutOf{GPU}: no room"
    assert describe([item]) == f"p Failed ({words}) on n"
    assert words in explaining.state(item)
