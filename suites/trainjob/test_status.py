"""What a TrainJob tells of itself: its end, that it is suspended, that it is somebody else's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.kube import JOBSETS, PODS, SERVICES, TRAINJOBS, Kube, Object, conditions
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.workloads import Program
from oracles.errors import HarnessError
from suites import tables
from suites.cast import ANSWER
from suites.trainjob.stage import KIND, TrainJobs, names, of

pytestmark = pytest.mark.jobs(KIND)

#: seconds for a job whose pods run for two
LIFE = 90.0
#: seconds for which a suspended job, or one of another controller, is watched
HOLD = 5.0
#: the one other manager that the API allows (its documentation, spec.managedBy)
OTHER = "kueue.x-k8s.io/multikueue"
ENDS = ("Complete", "Failed")


def _follow(kube: Kube, job: Object) -> Iterator[Object]:
    """Every version of *job* that the watch shows, until a second after it has ended."""
    meta = job["metadata"]
    for event in kube.watch(
        TRAINJOBS, meta["namespace"], since=meta["resourceVersion"],
        fields=f"metadata.name={meta['name']}", timeout=LIFE,
    ):  # fmt: skip
        if event["type"] == "BOOKMARK":
            continue
        if event["type"] == "DELETED":
            raise HarnessError(f"TrainJob {meta['name']} was deleted while it was followed")
        yield event["object"]
        now = conditions(event["object"])
        if any(now.get(end) == "True" for end in ENDS):
            return
    raise AssertionError(f"TrainJob {meta['name']} has not ended after {LIFE:.0f} s")


@pytest.mark.parametrize(
    ("code", "end"),
    [
        pytest.param(0, "Complete", marks=pytest.mark.behaviour("T01", case="TrainJob succeeds")),
        pytest.param(3, "Failed", marks=pytest.mark.behaviour("T01", case="TrainJob fails")),
    ],
    ids=["succeeds", "fails"],
)
def test_a_trainjob_has_no_end_before_its_pods_have(
    trainjobs: TrainJobs, code: int, end: str
) -> None:
    """Complete or Failed is the first condition of a job that is never suspended."""
    program = Program(seconds=2, code=code)
    made = trainjobs.add("life", program=program, restart_policy="Never", backoff_limit=0)
    ever: list[str] = []
    for number, version in enumerate(_follow(trainjobs.kube, made)):
        now = [name for name, status in conditions(version).items() if status == "True"]
        ever += [name for name in now if name not in ever]
        if any(name in ENDS for name in now):
            pods = trainjobs.kube.find(PODS, trainjobs.namespace, labels=of("life"))
            phases = [pod["status"].get("phase") for pod in pods]
            wanted = "Failed" if code else "Succeeded"
            assert wanted in phases, f"version {number}: {now}, and its pods are {phases}"
    assert ever == [end], f"conditions that were ever True: {ever}"


@pytest.mark.behaviour("T02", case="TrainJob")
def test_the_end_of_a_trainjob_is_final(trainjobs: TrainJobs) -> None:
    """One fails and one completes; nothing about it changes when somebody writes to the job."""
    for name, code in (("well", 0), ("badly", 1)):
        program = Program(seconds=1, code=code)
        trainjobs.add(name, program=program, restart_policy="Never", backoff_limit=0)
    wanted = {"well": "Complete", "badly": "Failed"}
    late = trainjobs.reach({name: tables.true(end) for name, end in wanted.items()}, deadline=LIFE)
    assert not late, f"they did not end as their pods did: {late}"
    for name in wanted:
        trainjobs.patch(name, {"labels": {"muster.dev/touched": "yes"}})

    def changed(jobs: list[Object]) -> str:
        now = {job["metadata"]["name"]: tables.told(job) for job in jobs}
        return "" if now == wanted else str(now)

    moved = tables.held(trainjobs.kube, TRAINJOBS, trainjobs.namespace, changed, seconds=HOLD)
    assert not moved, f"they had ended as {wanted}, and are {moved}"


# suspended ---------------------------------------------------------------------------------


def _no_pods(trainjobs: TrainJobs) -> None:
    trainjobs.kube.wait(
        PODS, lambda pods: None if pods else True, namespace=trainjobs.namespace,
        deadline=ANSWER, why="no pods",
    )  # fmt: skip


@pytest.mark.behaviour("T09", case="TrainJob suspended while it runs")
def test_a_running_trainjob_is_suspended_and_resumed(trainjobs: TrainJobs) -> None:
    """Its pods go and none comes; resumed, all of its nodes run again, and it can complete."""
    trainjobs.add("waits")
    first = trainjobs.run()
    trainjobs.patch("waits", {"suspend": True})
    late = trainjobs.reach({"waits": tables.true("Suspended")})
    assert not late, f"suspended, and it is {late}"
    _no_pods(trainjobs)
    made = tables.held(trainjobs.kube, PODS, trainjobs.namespace, names, seconds=HOLD)
    assert not made, f"pods were made for a job that is suspended: {made}"
    trainjobs.patch("waits", {"suspend": False})
    trainjobs.run(but=first)
    job = trainjobs.job("waits")
    assert not tables.true("Suspended")(job), "resumed, its nodes run, and it is still Suspended"
    trainjobs.finish("waits")
    late = trainjobs.reach({"waits": tables.true("Complete")})
    assert not late, f"resumed and finished, and it is {late}"


@pytest.mark.behaviour("T09", case="TrainJob submitted suspended")
def test_a_trainjob_that_is_submitted_suspended_waits(trainjobs: TrainJobs) -> None:
    """As queueing systems submit them: no pod is made until somebody resumes it."""
    trainjobs.add("waits", spec={"suspend": True})
    late = trainjobs.reach({"waits": tables.true("Suspended")})
    assert not late, f"submitted suspended, and it is {late}"
    made = tables.held(trainjobs.kube, PODS, trainjobs.namespace, names, seconds=HOLD)
    assert not made, f"pods were made for a job that is suspended: {made}"
    trainjobs.patch("waits", {"suspend": False})
    trainjobs.run()
    trainjobs.finish("waits")
    late = trainjobs.reach({"waits": tables.true("Complete")})
    assert not late, f"resumed and finished, and it is {late}"


@pytest.mark.behaviour("T10", case="TrainJob")
def test_a_trainjob_of_another_controller_is_left_alone(
    system: SystemUnderTest, ns: str, trainjobs: TrainJobs
) -> None:
    """No JobSet, no pods, no group, no condition."""
    trainjobs.add("theirs", spec={"managedBy": OTHER})
    made = tables.held(trainjobs.kube, JOBSETS, ns, names, seconds=HOLD)
    with tables.judged() as table:
        table.hold("jobsets", not made, f"made for a job of another controller: {made}")
        group = system.scheduler.group_resource()
        for what in (PODS, SERVICES, *([group] if group is not None else [])):
            found = names(trainjobs.kube.find(what, ns))
            table.hold(what.plural, not found, f"made for a job of another controller: {found}")
        status = (trainjobs.job("theirs") or {}).get("status") or {}
        table.hold("theirs", not status, f"its status was written: {status}")
