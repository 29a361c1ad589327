"""The scale subresource of an elastic job."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.kube import PODS, PYTORCHJOBS, Kube
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import Program, elastic_program_job, pytorchjob
from suites import jobs, pods

SETTLED = 60.0


@pytest.mark.e2e
@pytest.mark.behaviour("T05")
def test_selector_and_scale_agree_with_the_workers(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Beside another job with workers of its own, before and after scaling."""
    kube = system.cluster.kube
    program = Program(seconds=600)
    kube.create(pytorchjob("decoy", master=False, workers=1, program=program), namespace=ns)
    kube.create(
        elastic_program_job("elastic", workers=2, low=1, high=4, program=program), namespace=ns
    )
    pods.wait_bound(kube, ns, 1, labels=jobs.of("decoy"), deadline=SETTLED)
    for workers in (2, 3, 1):
        # not at once: a job that is written to before the operator has told of it can lose its
        # condition Created, which is another behaviour's business (T01)
        if workers != 2:
            jobs.scale(kube, PYTORCHJOBS, ns, "elastic", workers)
        with expect(f"{workers} workers run and the scale subresource says so"):
            pods.wait_bound(kube, ns, workers, labels=jobs.of("elastic"), deadline=SETTLED)
            jobs.wait(
                kube, PYTORCHJOBS, ns, "elastic",
                lambda job, n=workers: jobs.replicas(job, "Worker")["active"] == n,  # type: ignore[misc]
                deadline=SETTLED, why=f"{workers} active workers in the status",
            )  # fmt: skip
        scale = _scale(kube, ns, "elastic")
        for part in ("spec", "status"):
            counted = scale[part].get("replicas", 0)
            assert counted == workers, (
                f"{workers} workers run, and the scale subresource's {part} counts {counted}"
            )
        selector = scale["status"].get("selector")
        assert selector, "the scale subresource has no selector: no autoscaler can work"
        selected = pods.names(kube.find(PODS, ns, labels=selector))
        assert selected == [f"elastic-worker-{i}" for i in range(workers)], (
            f"the selector {selector!r} selects {selected}"
        )


def _scale(kube: Kube, namespace: str, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = kube.request("GET", PYTORCHJOBS.path(namespace, name) + "/scale")
    return answer
