"""Statuses that somebody else wrote: the operator's own are right."""

from __future__ import annotations

import pytest

from clusters.kube import PYTORCHJOBS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.workloads import Program, elastic_program_job, pytorchjob
from suites import jobs
from tests.proofs import breaking

pytestmark = pytest.mark.proof

#: seconds for a job of small programs to run, or to end
STARTED = 60.0


@pytest.fixture
def running(system: SystemUnderTest, ns: str) -> Object:
    """A job of two workers that runs, and says so."""
    kube = system.cluster.kube
    job = pytorchjob("job", master=False, workers=2, program=Program(seconds=600))
    kube.create(job, namespace=ns)
    return jobs.wait(
        kube, PYTORCHJOBS, ns, "job", lambda job: jobs.replicas(job, "Worker")["active"] == 2,
        deadline=STARTED, why="two active workers in the status",
    )  # fmt: skip


@pytest.mark.proves(
    "T01", by="Restarting was set true beside Running", rule="condition-transitions"
)
def test_running_and_restarting(system: SystemUnderTest, ns: str, running: Object) -> None:
    breaking.condition(system.cluster.kube, PYTORCHJOBS, ns, running, Restarting="True")


@pytest.mark.proves("T02", by="a job's Succeeded was flipped back", rule="condition-transitions")
def test_succeeded_is_taken_back(system: SystemUnderTest, ns: str) -> None:
    kube = system.cluster.kube
    kube.create(
        pytorchjob("job", master=False, workers=1, program=Program(seconds=1)), namespace=ns
    )
    job = jobs.wait_condition(kube, PYTORCHJOBS, ns, "job", "Succeeded", deadline=STARTED)
    breaking.condition(kube, PYTORCHJOBS, ns, job, Succeeded="False")


@pytest.mark.proves("T03", by="a status with a count too high, which stays", rule="replica-counts")
def test_a_wrong_count(system: SystemUnderTest, ns: str, running: Object) -> None:
    kube = system.cluster.kube
    with breaking.forsaken(kube, PYTORCHJOBS, ns, "job"):
        breaking.status(
            kube, PYTORCHJOBS, ns, "job", {"replicaStatuses": {"Worker": {"active": 3}}}
        )
        breaking.hold(
            kube, PYTORCHJOBS, ns, breaking.grace(system, "counts_disagree") + breaking.OVER,
            lambda found: jobs.replicas(found[0], "Worker")["active"] == 3, "a count of 3 stays",
        )  # fmt: skip


@pytest.mark.proves("T03", by="the counts in a status were blanked", rule="replica-counts")
def test_blank_counts(system: SystemUnderTest, ns: str, running: Object) -> None:
    breaking.status(system.cluster.kube, PYTORCHJOBS, ns, "job", {"replicaStatuses": None})


@pytest.mark.proves("T04", by="a job's start time was set anew", rule="start-and-completion")
def test_another_start(system: SystemUnderTest, ns: str, running: Object) -> None:
    body = {"startTime": "2001-01-01T00:00:00Z"}
    breaking.status(system.cluster.kube, PYTORCHJOBS, ns, "job", body)


@pytest.mark.proves("T05", by="a selector that misses the workers", rule="scale-selector")
def test_another_selector(system: SystemUnderTest, ns: str) -> None:
    kube = system.cluster.kube
    job = elastic_program_job("job", workers=1, low=1, high=2, program=Program(seconds=600))
    kube.create(job, namespace=ns)
    jobs.wait(
        kube, PYTORCHJOBS, ns, "job", lambda job: jobs.replicas(job, "Worker")["active"] == 1,
        deadline=STARTED, why="an active worker in the status",
    )  # fmt: skip
    body = {"replicaStatuses": {"Worker": {"selector": "app=another"}}}
    breaking.status(kube, PYTORCHJOBS, ns, "job", body)
