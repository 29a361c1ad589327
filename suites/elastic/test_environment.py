"""The environment that an elastic job's agents really have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.errors import ClusterError
from clusters.kube import Kube
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.runtimes import Runtime
from fixtures.workloads import TrainOptions, elastic_pytorchjob, job_folder
from oracles.errors import NotApplicable
from suites import jobs, pods
from suites.elastic import trainer

EXPECTED = yaml.safe_load(Path(__file__).with_name("expected_environment.yaml").read_text())
#: the policies; their fields are the API's (kubeflow.org/v1, ElasticPolicy)
POLICIES: dict[str, dict[str, Any]] = {
    "the least": {"minReplicas": 1, "maxReplicas": 2},
    "every field": {
        "minReplicas": 1,
        "maxReplicas": 2,
        "rdzvBackend": "c10d",
        "rdzvPort": 29511,
        "rdzvHost": "{job}-worker-0",
        "rdzvId": "muster-rdzv",
        "rdzvConf": [
            {"key": "last_call_timeout", "value": "2"},
            {"key": "timeout", "value": "120"},
        ],
        "nProcPerNode": 1,
        "maxRestarts": 7,
    },
}


@pytest.mark.behaviour("E01")
@pytest.mark.parametrize("policy", POLICIES)
def test_agents_get_exactly_the_documented_environment(
    system: SystemUnderTest, torch: Runtime, ns: str, expect: Expecting, policy: str
) -> None:
    """Read from the running agents, not from the pods' specs."""
    kube = system.cluster.kube
    name = "environment"
    expected = _expected(system, policy, name)
    job = elastic_pytorchjob(
        name, torch, job_folder(system.cluster, ns, name), workers=2, low=1, high=2,
        train=TrainOptions(epochs=1000, step_ms=200),
    )  # fmt: skip
    job["spec"]["elasticPolicy"] = _filled(POLICIES[policy], name)
    kube.create(job, namespace=ns)
    with expect("both agents run"):
        pods.wait_running(kube, ns, 2, labels=jobs.of(name), deadline=trainer.STARTED)
    for index in range(2):
        agent = _agent_environment(kube, ns, f"{name}-worker-{index}")
        found = {key: value for key, value in agent.items() if key.startswith("PET_")}
        assert found == expected, f"worker {index}: {_difference(found, expected)}"
        assert "MASTER_ADDR" not in agent, "an agent that meets by rendezvous has a MASTER_ADDR"
        assert "WORLD_SIZE" not in agent, "the world's size is torchrun's to say"


def _expected(system: SystemUnderTest, policy: str, job: str) -> dict[str, str]:
    tables = EXPECTED.get(system.operator.name) or {}
    minor = ".".join(system.operator.version.split(".")[:2])
    # a build of one's own is held to the newest version there is a table for
    table = tables.get(minor) or (
        tables and ":" in system.operator.version and [*tables.values()][-1]
    )
    if not table:
        raise NotApplicable(
            f"no expected environment is written down for {system.operator.name}"
            f" {system.operator.version}"
        )
    return {key: value.replace("{job}", job) for key, value in table[policy].items()}


def _filled(policy: Any, job: str) -> Any:
    if isinstance(policy, dict):
        return {key: _filled(value, job) for key, value in policy.items()}
    return policy.replace("{job}", job) if isinstance(policy, str) else policy


def _agent_environment(kube: Kube, namespace: str, pod: str) -> dict[str, str]:
    """The environment of the container's first process, the agent, as the kernel shows it."""
    result = kube.exec(namespace, pod, ["cat", "/proc/1/environ"], container="pytorch")
    if result.code != 0:
        raise ClusterError(f"the agent's environment cannot be read in {pod}: {result.stderr}")
    return dict(item.split("=", 1) for item in result.stdout.split("\0") if "=" in item)


def _difference(found: dict[str, str], expected: dict[str, str]) -> str:
    lines = [
        f"{k} is {v!r}, not {expected[k]!r}"
        for k, v in found.items()
        if k in expected and expected[k] != v
    ]
    lines += [f"{k}={v!r} is not documented" for k, v in found.items() if k not in expected]
    lines += [f"{k} is missing" for k in expected if k not in found]
    return "; ".join(lines)
