"""Groups of elastic jobs whose minimum is not the one that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clusters.kube import Resource
from fixtures.plugin.clusters import SystemUnderTest
from suites.gang import test_jobs
from tests.proofs.forbidding import forbidden

pytestmark = pytest.mark.proof

#: the operator itself: kubeflow/trainer#1515
ALL = "an operator whose groups ask for all workers of an elastic job"


@pytest.mark.proves("G14", by=ALL, shows="its group's minimum is to be 2, and is 3")
def test_the_policys_minimum_is_ignored(system: SystemUnderTest, ns: str) -> None:
    test_jobs.test_the_group_of_an_elastic_job_asks_for_the_policys_minimum(system, ns)


@pytest.mark.proves("G14", by=f"{ALL}, rescaled", shows="its group's minimum is to be 2, and is 4")
def test_the_minimum_follows_the_workers(system: SystemUnderTest, ns: str) -> None:
    test_jobs.test_the_minimum_stays_when_an_elastic_job_is_rescaled(system, ns)


@pytest.mark.proves(
    "G14",
    by="groups whose minimum nobody may change",
    shows="minAvailable changed from 2 to 1: its group's minimum is to be 1, and is 2",
)
def test_a_minimum_that_does_not_follow(system: SystemUnderTest, ns: str) -> None:
    what = system.scheduler.group_resource()
    assert what is not None
    with unchangeable(system, what, ns, "minMember"):
        test_jobs.test_the_group_follows_a_minimum_that_is_given(system, ns)


@contextmanager
def unchangeable(system: SystemUnderTest, what: Resource, ns: str, field: str) -> Iterator[None]:
    """Let nobody, the operator neither, change a field of the spec of a namespace's groups.

    Raises:
        NotApplicable: the cluster knows no such policies.
    """
    kube = system.cluster.kube
    group, _, version = what.api_version.partition("/")
    rule = {
        "apiGroups": [group], "apiVersions": [version], "resources": [what.plural],
        "operations": ["UPDATE"],
    }  # fmt: skip

    def change() -> None:
        now = kube.get(what, "heeded", ns)
        assert now is not None
        kube.patch(what, "heeded", {"spec": {field: now["spec"][field] + 1}}, ns)

    kube.create(system.scheduler.group("heeded", ns, 2))
    with forbidden(system, ns, rule, f"object.spec.{field} == oldObject.spec.{field}", change):
        kube.delete(what, "heeded", ns)
        yield
