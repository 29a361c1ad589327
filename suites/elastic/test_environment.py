"""The environment that an elastic job's agents really have."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.runtimes import Runtime
from fixtures.workloads import TrainOptions, elastic_pytorchjob, job_folder
from suites import jobs, pods
from suites.elastic import environment, trainer

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


@pytest.mark.e2e
@pytest.mark.behaviour("E01")
@pytest.mark.parametrize("policy", POLICIES)
def test_agents_get_exactly_the_documented_environment(
    system: SystemUnderTest, torch: Runtime, ns: str, expect: Expecting, policy: str
) -> None:
    """Read from the running agents, not from the pods' specs."""
    kube = system.cluster.kube
    name = "environment"
    expected = environment.expected(system, policy, name)
    job = elastic_pytorchjob(
        name, torch, job_folder(system.cluster, ns, name), workers=2, low=1, high=2,
        train=TrainOptions(epochs=1000, step_ms=200),
    )  # fmt: skip
    job["spec"]["elasticPolicy"] = _filled(POLICIES[policy], name)
    kube.create(job, namespace=ns)
    with expect("both agents run"):
        pods.wait_running(kube, ns, 2, labels=jobs.of(name), deadline=trainer.STARTED)
    for index in range(2):
        agent = environment.of_process(kube, ns, f"{name}-worker-{index}")
        found = environment.but_ours(agent)
        assert found == expected, f"worker {index}: {environment.difference(found, expected)}"
        assert "MASTER_ADDR" not in agent, "an agent that meets by rendezvous has a MASTER_ADDR"
        assert "WORLD_SIZE" not in agent, "the world's size is torchrun's to say"


def _filled(policy: Any, job: str) -> Any:
    if isinstance(policy, dict):
        return {key: _filled(value, job) for key, value in policy.items()}
    return policy.replace("{job}", job) if isinstance(policy, str) else policy
