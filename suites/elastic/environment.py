"""The environment of agents: as it is written down per operator version, and as it really is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from clusters.errors import ClusterError
from clusters.kube import Kube
from fixtures.plugin.clusters import SystemUnderTest
from oracles.errors import NotApplicable

EXPECTED = Path(__file__).with_name("expected_environment.yaml")


def expected(system: SystemUnderTest, what: str, job: str) -> dict[str, str]:
    """The table of that name for the operator's version.

    Raises:
        NotApplicable: there is none for this operator.
    """
    tables: dict[str, Any] = yaml.safe_load(EXPECTED.read_text()).get(system.operator.name) or {}
    minor = ".".join(system.operator.version.split(".")[:2])
    # a build of one's own is held to the newest version there is a table for
    table = tables.get(minor) or (
        tables and ":" in system.operator.version and [*tables.values()][-1]
    )
    if not table or what not in table:
        raise NotApplicable(
            f"no expected environment is written down for {system.operator.name}"
            f" {system.operator.version}"
        )
    return {key: value.replace("{job}", job) for key, value in table[what].items()}


def of_process(
    kube: Kube, namespace: str, pod: str, pid: int = 1, *, container: str = "pytorch"
) -> dict[str, str]:
    """The environment with which a process of a container was started, as the kernel shows it.

    The first process is the agent.
    """
    path = f"/proc/{pid}/environ"
    result = kube.exec(namespace, pod, ["cat", path], container=container)
    if result.code != 0:
        raise ClusterError(f"{path} cannot be read in {pod}: {result.stderr}")
    return dict(item.split("=", 1) for item in result.stdout.split("\0") if "=" in item)


def but_ours(found: Mapping[str, str], names: Collection[str] = ()) -> dict[str, str]:
    """What of an environment is the operator's to set: ``PET_`` variables, and those of *names*."""
    return {k: v for k, v in found.items() if k.startswith("PET_") or k in names}


def difference(found: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """What is not as it should be, in words."""
    lines = [
        f"{k} is {v!r}, not {wanted[k]!r}"
        for k, v in found.items()
        if k in wanted and wanted[k] != v
    ]
    lines += [f"{k}={v!r} is not documented" for k, v in found.items() if k not in wanted]
    lines += [f"{k} is missing" for k in wanted if k not in found]
    return "; ".join(lines)
