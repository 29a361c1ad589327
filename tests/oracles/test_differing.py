"""Names with what is random in them taken out."""

from __future__ import annotations

import pytest

from oracles.differing import normalised


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Pod g04-1a2b3c4d/train-worker-0", "Pod g04-*/train-worker-0"),
        ("bound to muster-run-ab12-worker2", "bound to muster-CLUSTER-worker2"),
        ("Pod kube-system/coredns-66bc5c9577-kpxrs", "Pod kube-system/coredns-*"),
        ("Pod op/operator-x7k2p", "Pod op/operator-*"),
        ("uid 0b0e5c5e-2b30-4c0c-8c30-0b0e5c5e2b30 gone", "uid UID gone"),
        ("at 10.244.1.2", "at IP"),
        # words that only look a little like it
        ("train-worker-12", "train-worker-12"),
        ("PodGroup t/elastic-train", "PodGroup t/elastic-train"),
        ("condition Succeeded True", "condition Succeeded True"),
        ("deadbeef facade", "deadbeef facade"),
    ],
)
def test_normalised(text: str, same: str) -> None:
    assert normalised(text, "run-ab12") == same
