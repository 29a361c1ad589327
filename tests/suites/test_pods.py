"""What suites ask of a pod that a kubelet has to refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clusters.topology import GPU
from oracles.errors import InvariantViolation
from suites import pods
from tests.clusters.api_server import listed, serving


def answered(phase: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "s"},
        "spec": {"nodeName": "n"},
        "status": {"phase": phase, "reason": reason, "message": message},
    }


def test_a_refusal_is_waited_for(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.script = [listed(answered("Failed", f"OutOf{GPU}", "no room"))]
        assert pods.wait_refused(server.kube, "s", "p").resource == GPU


@pytest.mark.parametrize(
    ("status", "said"),
    [(("Running",), "p Running on n"), (("Failed", "DeadlineExceeded"), "p Failed on n")],
)
def test_a_pod_that_was_taken_is_told(tmp_path: Path, status: tuple[str, ...], said: str) -> None:
    with serving(tmp_path) as server:
        server.script = [listed(answered(*status))]
        with pytest.raises(InvariantViolation, match=f"had to refuse pod p(.*){said}"):
            pods.wait_refused(server.kube, "s", "p")
