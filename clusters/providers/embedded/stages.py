"""kwok's configuration: ``stages.yaml``, and how much it does at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("stages.yaml")
#: label of nodes that send heartbeats; a node that loses it is a lost one
KUBELET = "muster.dev/kubelet"
ON = "on"


def config(parallel: int) -> str:
    """kwok's configuration file.

    Args:
        parallel: pods, nodes and leases that it changes at a time.
    """
    options = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {
            "podPlayStageParallelism": parallel,
            "nodePlayStageParallelism": parallel,
            "nodeLeaseParallelism": parallel,
        },
    }
    stages = [_stage(item) for item in yaml.safe_load(FILE.read_text())]
    return str(yaml.dump_all([options, *stages], Dumper=_Plain, sort_keys=False))


class _Plain(yaml.SafeDumper):
    """Without aliases, so that each stage can be read by itself."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _stage(item: dict[str, Any]) -> dict[str, Any]:
    """A stage as kwok reads it; one without a status deletes its object."""
    step: dict[str, Any] = {"delete": True}
    if "status" in item:
        step = {"patch": {"subresource": "status", "root": "status", "template": item["status"]}}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": item["name"]},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": item["kind"]},
            "selector": {"matchExpressions": [{"jq": match} for match in item["match"]]},
            **({"delay": item["delay"]} if "delay" in item else {}),
            "steps": [step],
        },
    }
