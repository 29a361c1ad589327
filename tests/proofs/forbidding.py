"""Changes that nobody may make in a namespace, the systems under test neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clusters.cluster import Capability
from clusters.errors import ApiError
from clusters.kube import Object, Resource, until_true
from fixtures.plugin.clusters import LABEL_RUN, SystemUnderTest
from oracles.errors import NotApplicable

API = "admissionregistration.k8s.io/v1"
POLICIES = Resource(API, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
BINDINGS = Resource(
    API, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False
)
#: seconds until an API server heeds a new policy
HEEDED = 60.0


@contextmanager
def forbidden(
    system: SystemUnderTest, ns: str, rule: Object, allowed: str, attempt: Callable[[], object]
) -> Iterator[None]:
    """Refuse what *rule* selects (a resource rule of a policy) unless *allowed* holds (CEL).

    Args:
        attempt: one such change; it is tried until it is refused.

    Raises:
        NotApplicable: the cluster knows no such policies, or is not the harness's own.
    """
    system.cluster.require(Capability.OWN_CLUSTER)
    kube, name = system.cluster.kube, f"{ns}-forbidden"
    try:
        kube.resource(POLICIES.api_version, POLICIES.kind)
    except ApiError as error:
        raise NotApplicable(f"this Kubernetes serves no {POLICIES.kind}") from error
    meta = {"name": name, "labels": {LABEL_RUN: system.cluster.run}}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}}}
    policy: Object = {
        "apiVersion": API,
        "kind": POLICIES.kind,
        "metadata": meta,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": allowed}],
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
        until_true(lambda: _refused(attempt), deadline=HEEDED, why="a policy heeded")
        yield
    finally:
        kube.delete(BINDINGS, name)
        kube.delete(POLICIES, name)


def _refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except ApiError as error:
        if error.status != 422:
            raise
        return True
    return False
