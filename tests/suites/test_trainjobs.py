"""What the suite of TrainJobs sees of pods, and what it tries to have refused."""

from copy import deepcopy
from types import SimpleNamespace

import pytest

from clusters.errors import ApiError
from fixtures.workloads import training_runtime, trainjob
from suites.trainjob import stage
from suites.trainjob.stage import INDEX_LABEL, JOB_LABEL, TrainJobs
from suites.trainjob.test_api import FIXED, WRONG


def pod(name: str, *, job: str = "j", index: str = "0", state: str = "running", **meta: str):
    labels = {JOB_LABEL: job, INDEX_LABEL: index}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, **meta},
        "status": {"containerStatuses": [{"state": {state: {}}}] if state else []},
    }


@pytest.mark.parametrize(
    ("item", "yes"),
    [
        (pod("p"), True),
        (pod("p", state="terminated"), False),
        (pod("p", state=""), False),
        (pod("p", deletionTimestamp="2026-01-01T00:00:00Z"), False),
    ],
)
def test_which_pods_run(item, yes):
    assert stage.runs(item) is yes


class Kube:
    """Plays prepared states to waits, and refusals to who creates a job."""

    def __init__(self, *states, refusals=()):
        self.states = list(states)
        self.refusals = list(refusals)
        self.made = []

    def wait(self, what, until, **more):
        for state in self.states:
            if (answer := until(state)) is not None:
                return answer
        raise AssertionError("never")

    def create(self, manifest, *, namespace):
        if manifest["kind"] == "TrainJob" and self.refusals:
            raise ApiError(self.refusals.pop(0), status=403)
        self.made.append(manifest["kind"])
        return manifest


def jobs(kube) -> TrainJobs:
    what = SimpleNamespace(api_version="scheduling.x-k8s.io/v1alpha1")
    scheduler = SimpleNamespace(scheduler_name="gangs", group_resource=lambda: what)
    system = SimpleNamespace(cluster=SimpleNamespace(kube=kube), scheduler=scheduler)
    return TrainJobs(system, "n", lambda _: _Nothing())


class _Nothing:
    def __enter__(self):
        return None

    def __exit__(self, *error):
        return None


def test_a_job_runs_when_all_of_its_nodes_do_and_none_of_those_that_do_not_count():
    old = [pod("a"), pod("b", index="1")]
    kube = Kube(old, [*old, pod("c")], [pod("c"), pod("d", index="1"), pod("x", job="other")])
    trainjobs = jobs(kube)
    trainjobs.nodes = {"j": 2}
    first = trainjobs.run()
    assert sorted(first.values()) == ["a", "b"]
    assert sorted(trainjobs.run(but=first).values()) == ["c", "d"]


def test_a_job_is_submitted_again_only_while_its_runtime_is_not_known():
    kube = Kube(refusals=['TrainingRuntime "j" not found: ' + stage._UNKNOWN, stage._UNKNOWN])
    trainjobs = jobs(kube)
    trainjobs.add("j", image="base:1")
    assert kube.made == ["TrainingRuntime", "TrainJob"]
    assert trainjobs.nodes == {"j": stage.NODES}
    with pytest.raises(ApiError, match="quota"):
        jobs(Kube(refusals=["over the quota"])).add("j", image="base:1")


@pytest.mark.parametrize("what", list(WRONG))
def test_what_is_wrong_differs_from_what_is_right(what):
    wrong = WRONG[what]
    right = training_runtime("r", image="base:1") if wrong.runtime else trainjob("r", nodes=1)
    bad = deepcopy(right)
    wrong.change(bad)
    assert bad != right


def test_a_change_of_a_fixed_field_is_one_field():
    for change in FIXED.values():
        assert len(change) == 1
