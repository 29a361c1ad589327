"""Groups of elastic jobs whose minimum is not the one that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clusters.cluster import Capability
from clusters.errors import ApiError
from clusters.kube import Kube, Object, Resource, until_true
from fixtures.plugin.clusters import LABEL_RUN, SystemUnderTest
from oracles.errors import NotApplicable
from suites.gang import test_jobs

pytestmark = pytest.mark.proof

#: the operator itself: kubeflow/trainer#1515
ALL = "an operator whose groups ask for all workers of an elastic job"
API = "admissionregistration.k8s.io/v1"
POLICIES = Resource(API, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
BINDINGS = Resource(
    API, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False
)
#: seconds until an API server heeds a new policy
HEEDED = 60.0


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
    system.cluster.require(Capability.OWN_CLUSTER)
    with unchangeable(system, what, ns, "minMember"):
        test_jobs.test_the_group_follows_a_minimum_that_is_given(system, ns)


@contextmanager
def unchangeable(system: SystemUnderTest, what: Resource, ns: str, field: str) -> Iterator[None]:
    """Let nobody, the operator neither, change a field of the spec of a namespace's groups.

    Raises:
        NotApplicable: the cluster knows no such policies.
    """
    kube, name = system.cluster.kube, f"{ns}-unchangeable"
    try:
        kube.resource(POLICIES.api_version, POLICIES.kind)
    except ApiError as error:
        raise NotApplicable(f"this Kubernetes serves no {POLICIES.kind}") from error
    group, _, version = what.api_version.partition("/")
    rule = {
        "apiGroups": [group], "apiVersions": [version], "resources": [what.plural],
        "operations": ["UPDATE"],
    }  # fmt: skip
    meta = {"name": name, "labels": {LABEL_RUN: system.cluster.run}}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}}}
    policy: Object = {
        "apiVersion": API,
        "kind": POLICIES.kind,
        "metadata": meta,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"object.spec.{field} == oldObject.spec.{field}"}],
        },
    }
    bound: Object = {
        "apiVersion": API,
        "kind": BINDINGS.kind,
        "metadata": meta,
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": here},
    }
    try:
        kube.create(policy)
        kube.create(bound)
        kube.create(system.scheduler.group("heeded", ns, 2))
        until_true(lambda: _refused(kube, what, ns, field), deadline=HEEDED, why="a policy heeded")
        kube.delete(what, "heeded", ns)
        yield
    finally:
        kube.delete(BINDINGS, name)
        kube.delete(POLICIES, name)


def _refused(kube: Kube, what: Resource, ns: str, field: str) -> bool:
    now = kube.get(what, "heeded", ns)
    assert now is not None
    try:
        kube.patch(what, "heeded", {"spec": {field: now["spec"][field] + 1}}, ns)
    except ApiError as error:
        if error.status != 422:
            raise
        return True
    return False
