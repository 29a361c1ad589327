"""Faults at a moment: seen in the history while it is written, on a real cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from chaos import aim
from chaos.faults.jobs import ScaleJob
from chaos.faults.pod import DeletePod
from chaos.faults.process import KillAgent
from chaos.injecting import Injector
from chaos.site import Site
from clusters.kube import PYTORCHJOBS, Kube
from fixtures import workloads
from oracles.recorder import Recorder

pytestmark = pytest.mark.faults

#: seconds between a moment and the fault: the recorder and who reads it take a tenth, a request the
#: rest
SOON = 2.0
WITHIN = 60.0


@pytest.fixture
def submit(kube: Kube, space: str) -> Callable[..., threading.Thread]:
    """Creates objects one after the other, while the test waits for what they bring."""

    def make(*objects: object) -> threading.Thread:
        def create() -> None:
            for item in objects:
                kube.create(item, namespace=space)  # type: ignore[arg-type]

        thread = threading.Thread(target=create)
        thread.start()
        return thread

    return make


def test_when_the_third_pod_is_bound(
    site: Site, space: str, recorder: Recorder, inject: Injector,
    submit: Callable[..., threading.Thread],
) -> None:  # fmt: skip
    stream = aim.Stream(recorder.path)
    making = submit(*workloads.gang_pods("p", 5))
    moment = stream.wait(aim.PodsBound(space, 3, "p"), deadline=WITHIN)
    proof = inject(DeletePod(site.cluster, space, moment.name))
    making.join()
    assert 0 <= proof.t - moment.t < SOON
    assert moment.object["spec"]["nodeName"], "it is the pod whose binding was the third"


def test_when_a_job_runs_for_the_first_time(
    site: Site, space: str, recorder: Recorder, inject: Injector,
    submit: Callable[..., threading.Thread],
) -> None:  # fmt: skip
    stream = aim.Stream(recorder.path)
    job = workloads.elastic_program_job("work", workers=3, low=1, high=3)
    submit(job).join()
    moment = stream.wait(aim.JobCondition(space, "work", "Running"), deadline=WITHIN)
    conditions = moment.object["status"]["conditions"]
    assert [c["type"] for c in conditions if c["status"] == "True"] == ["Created", "Running"]
    proof = inject(ScaleJob(site, PYTORCHJOBS, space, "work", 1))
    assert 0 <= proof.t - moment.t < SOON


def test_while_a_pod_joins(
    site: Site, space: str, recorder: Recorder, inject: Injector,
    submit: Callable[..., threading.Thread],
) -> None:  # fmt: skip
    stream = aim.Stream(recorder.path)
    submit(workloads.elastic_program_job("work", workers=2, low=1, high=3)).join()
    moment = stream.wait(aim.Joining(space, "work-worker-1"), deadline=WITHIN)
    (state,) = moment.object["status"]["containerStatuses"]
    assert (state["restartCount"], list(state["state"])) == (0, ["running"])
    fault = KillAgent(site.cluster, site.provider, space, "work-worker-1", "pytorch")
    proof = inject(fault)
    assert proof.evidence["exit code"] == "137"
    assert proof.evidence["container"] == state["containerID"], "the very one that was joining"
