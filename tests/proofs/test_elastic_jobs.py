"""Elastic jobs, and one that is not, whose surroundings are not what they should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from clusters.kube import DEPLOYMENTS, PODS, PYTORCHJOBS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.runtimes import Runtime
from fixtures.systems import metrics
from suites import jobs
from suites.elastic import (
    test_autoscaler,
    test_environment,
    test_growth,
    test_plain,
    test_room,
    trainer,
)
from suites.elastic.stage import Stage
from suites.training import Training
from tests.proofs import breaking
from tests.proofs.elastic import Altered, Impatient
from tests.proofs.test_elastic_agents import On
from tests.proofs.test_elastic_agents import on as on
from tests.proofs.test_elastic_agents import stage as stage

pytestmark = pytest.mark.proof

#: seconds that a world gets which is not to come about: three times what one takes on a quiet host
WORLD = 75.0
#: seconds that an autoscaler gets which has no figures; with them it takes 60
GROWS = 90.0
#: seconds that a pod gets which somebody keeps
CLEANED = 10.0
#: seconds until the metrics server's pod is there, or gone
AWAY = 60.0


@pytest.mark.proves(
    "E01",
    by="a policy that is changed while its pods are made",
    shows="PET_MAX_RESTARTS is '3', not '7'",
)
def test_a_policy_changes(
    system: SystemUnderTest, torch: Runtime, ns: str, expect: Expecting
) -> None:
    kube = system.cluster.kube

    def change(found: list[Object]) -> bool:
        if not found:
            return False
        body = {"spec": {"elasticPolicy": {"maxRestarts": 3}}}
        kube.patch(PYTORCHJOBS, found[0]["metadata"]["labels"][jobs.JOB_LABEL], body, ns)
        for pod in found:
            kube.delete(PODS, pod["metadata"]["name"], ns, grace=0)
        return True

    with breaking.meddling(kube, PODS, ns, change):
        test_environment.test_agents_get_exactly_the_documented_environment(
            system, torch, ns, expect, "every field"
        )


@pytest.mark.proves(
    "E02", by="a group that asks for all workers at once", shows="the minimum of workers trains"
)
def test_a_group_waits_for_all(
    on: On, gpus: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "STARTED", WORLD)
    test_growth.test_it_starts_at_its_minimum_and_grows_to_its_maximum(
        on(Altered, altered={"run_policy": None}), gpus
    )


@pytest.mark.proves(
    "E10",
    by="somebody's finalizer keeps the pod that found no room",
    shows="the pod that waited goes with the job",
)
def test_a_pod_outlives_its_job(
    stage: Stage, gpus: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_room, "CLEANED", CLEANED)
    with breaking.kept(stage.kube, stage.namespace, stage.worker(2)):
        test_room.test_an_added_worker_without_room_does_not_stop_the_others(stage, gpus)


@pytest.mark.proves(
    "E11",
    by="an autoscaler that was made by hand",
    shows="a job without a policy has an autoscaler",
)
def test_a_plain_job_has_an_autoscaler(system: SystemUnderTest, stage: Stage) -> None:
    target = {"apiVersion": PYTORCHJOBS.api_version, "kind": PYTORCHJOBS.kind, "name": stage.job}
    autoscaler = {
        "apiVersion": test_autoscaler.AUTOSCALERS.api_version,
        "kind": test_autoscaler.AUTOSCALERS.kind,
        "metadata": {"name": stage.job},
        "spec": {"scaleTargetRef": target, "maxReplicas": 2},
    }
    stage.kube.create(autoscaler, namespace=stage.namespace)
    test_plain.test_a_job_without_a_policy_is_what_it_was(system, stage)


@dataclass
class Unmeasured(Impatient):
    """A stage without a metrics server, from when the job starts until :meth:`measured`."""

    def start(self, workers: int, low: int, high: int, **more: Any) -> Training:
        """As the suite's own."""
        self._servers(0)
        return super().start(workers, low, high, **more)

    def measured(self) -> None:
        """Bring it back."""
        self._servers(1)

    def _servers(self, count: int) -> None:
        body = {"spec": {"replicas": count}}
        self.kube.patch(DEPLOYMENTS, metrics.PROGRAM, body, metrics.NAMESPACE)
        self.kube.wait(
            PODS, lambda pods: True if len(pods) == count else None,
            namespace=metrics.NAMESPACE, labels=metrics.LABELS, deadline=AWAY,
            why=f"{count} pods of the metrics server",
        )  # fmt: skip


@pytest.mark.proves(
    "E13",
    by="an autoscaler that gets no figures",
    shows="under load it asks for the maximum of workers",
)
def test_nobody_measures(on: On, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_autoscaler, "GROWS", GROWS)
    broken = on(Unmeasured)
    assert isinstance(broken, Unmeasured)
    try:
        test_autoscaler.test_an_autoscaler_changes_the_number_of_workers(broken)
    finally:
        broken.measured()
