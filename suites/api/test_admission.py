"""What the documentation forbids is refused when a job is submitted, and why is said."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from clusters.errors import ApiError
from clusters.kube import PODS, SERVICES, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems.protocols import Feature
from fixtures.workloads import Program, elastic_program_job, pytorchjob, tfjob
from suites import tables
from suites.cast import KINDS, Cast, needs

Change = Callable[[Object], None]
#: field of a kind's roles, and its container
ROLES = {
    "PyTorchJob": ("pytorchReplicaSpecs", "Master"),
    "TFJob": ("tfReplicaSpecs", "Chief"),
    "elastic": ("pytorchReplicaSpecs", "Worker"),
}
#: seconds for which jobs that were accepted are watched
HOLD = 10.0


@dataclass(frozen=True)
class Wrong:
    """A job that is right but for one thing.

    Attributes:
        kinds: jobs that it is tried on.
        change: what makes it wrong.
        words: a refusal has to hold one of them.
        webhook: only an admission webhook can refuse it.
    """

    kinds: tuple[str, ...]
    change: Callable[[str], Change]
    words: tuple[str, ...]
    webhook: bool = True


def _role(kind: str, role: str, **fields: Any) -> Change:
    """Change fields of a role."""

    def change(job: Object) -> None:
        job["spec"][ROLES[kind][0]][role].update(fields)

    return change


def _policy(**fields: Any) -> Change:
    def change(job: Object) -> None:
        job["spec"].setdefault("runPolicy", {}).update(fields)

    return change


def _container(kind: str, **fields: Any) -> Change:
    def change(job: Object) -> None:
        field, role = ROLES[kind]
        job["spec"][field][role]["template"]["spec"]["containers"][0].update(fields)

    return change


def _name(job: Object) -> None:
    job["metadata"]["name"] = "1st"


def _second_role(kind: str, name: str) -> Change:
    def change(job: Object) -> None:
        field, role = ROLES[kind]
        job["spec"][field][name] = deepcopy(job["spec"][field][role])

    return change


def _bounds(job: Object) -> None:
    job["spec"]["elasticPolicy"].update(minReplicas=3, maxReplicas=2)


BOTH = ("PyTorchJob", "TFJob")
WRONG: dict[str, Wrong] = {
    "a name that no service can have": Wrong(BOTH, lambda k: _name, ("metadata.name",)),
    "an unknown role": Wrong(BOTH, lambda k: _second_role(k, "Helper"), ("Helper",)),
    "a misnamed container": Wrong(
        BOTH, lambda k: _container(k, name="other"), ("container with name",)
    ),
    "no image": Wrong(BOTH, lambda k: _container(k, image=""), ("image",)),
    "no containers": Wrong(
        BOTH,
        lambda k: _role(k, ROLES[k][1], template={"spec": {"containers": []}}),
        ("containers",),
    ),
    "two masters": Wrong(("PyTorchJob",), lambda k: _role(k, "Master", replicas=2), ("replicas",)),
    "a chief and a master": Wrong(
        ("TFJob",), lambda k: _second_role(k, "Master"), ("Chief or Master",)
    ),
    "a minimum above the maximum": Wrong(
        ("elastic",), lambda k: _bounds, ("minReplicas", "maxReplicas")
    ),
    "an unknown field": Wrong(
        BOTH, lambda k: _policy(cleanPodPolici="All"), ("cleanPodPolici",), webhook=False
    ),
    "a number that is none": Wrong(
        BOTH, lambda k: _role(k, "Worker", replicas="two"), ("replicas",), webhook=False
    ),
    "an unknown restart policy": Wrong(
        BOTH, lambda k: _role(k, "Worker", restartPolicy="Sometimes"), ("restartPolicy",)
    ),
    "an unknown clean-up policy": Wrong(
        BOTH, lambda k: _policy(cleanPodPolicy="Sometimes"), ("cleanPodPolicy",)
    ),
    # "value must be positive integer" (API documentation of activeDeadlineSeconds)
    "a negative deadline": Wrong(
        BOTH, lambda k: _policy(activeDeadlineSeconds=-1), ("activeDeadlineSeconds",)
    ),
}


def _job(kind: str) -> Object:
    if kind == "PyTorchJob":
        job = pytorchjob("right", workers=1)
        del job["spec"]["nprocPerNode"]  # the oldest release does not know it
        return job
    if kind == "TFJob":
        return tfjob("right", chief=1, ps=0, workers=1, gpus=0)
    return elastic_program_job("right", workers=1, low=1, high=2)


def refusal(system: SystemUnderTest, namespace: str, job: Object) -> str:
    """What the API server says to a job that is not stored in any case; "" for accepted."""
    kind = KINDS[job["kind"]]
    query: dict[str, object] = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        system.cluster.kube.request("POST", kind.path(namespace), body=job, query=query)
    except ApiError as error:
        return str(error)
    return ""


@pytest.mark.behaviour("V01")
@pytest.mark.parametrize("what", list(WRONG))
def test_what_is_forbidden_is_refused(system: SystemUnderTest, ns: str, what: str) -> None:
    """The same job without the one wrong thing is accepted."""
    wrong = WRONG[what]
    if wrong.webhook:
        needs(system, Feature.WEBHOOKS)
    with tables.judged() as table:
        for kind in wrong.kinds:
            job = _job(kind)
            said = refusal(system, ns, job)
            table.hold(kind, not said, f"a job that is right is refused: {said}")
            wrong.change(kind)(job)
            said = refusal(system, ns, job)
            table.hold(kind, bool(said), f"{what}: accepted")
            told = any(word in said for word in wrong.words)
            table.hold(kind, told, f"{what}: refused without naming the field: {said}")


@pytest.mark.behaviour("V01", case="a name that no service can have, without webhooks")
def test_a_job_that_is_accepted_gets_its_services(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """A legal name of an object that is no legal name of a service: refused, or it works."""
    cast = Cast(system, ns, expect)
    accepted = []
    for kind in KINDS:
        name, said = f"1{kind.lower()}", ""
        try:
            cast.workers(kind, name, 1, program=Program(seconds=600))
            accepted.append(name)
        except ApiError as error:
            said = str(error)
        assert not said or "metadata.name" in said, f"refused without naming the field: {said}"

    def services(items: list[Object]) -> str:
        there = {item["metadata"]["name"] for item in items}
        return "all" if all(f"{name}-worker-0" in there for name in accepted) else ""

    if accepted:
        found = tables.held(cast.kube, SERVICES, ns, services, seconds=HOLD)
        assert found, (
            f"{', '.join(accepted)}: accepted, and no service is made, which its pods are told of"
        )


@pytest.mark.behaviour("V01")
@pytest.mark.parametrize("kind", BOTH, ids=[f"zero workers, {kind}" for kind in BOTH])
def test_zero_workers_are_none(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str
) -> None:
    """Refused, or no worker is ever made."""
    cast = Cast(system, ns, expect)
    job = _job(kind)
    job["spec"][ROLES[kind][0]]["Worker"]["replicas"] = 0
    said = ""
    try:
        cast.create(job)
    except ApiError as error:
        said = str(error)
    if said:
        assert "replicas" in said, f"refused without naming the field: {said}"
        return
    made: set[str] = set()

    def workers(pods: list[Object]) -> str:
        made.update(p["metadata"]["uid"] for p in pods if "-worker-" in p["metadata"]["name"])
        return ""

    tables.held(cast.kube, PODS, ns, workers, seconds=HOLD)
    assert not made, (
        f"accepted with 0 workers, and {len(made)} worker pods were made in {HOLD:.0f} s"
    )
