"""Fields that are documented as immutable."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.errors import ApiError
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.systems.protocols import Feature
from suites.cast import KINDS, Cast, needs

#: field of runPolicy -> the feature it came with, its value, and another one
FIELDS: dict[str, tuple[Feature, dict[str, Any], dict[str, Any]]] = {
    "managedBy": (
        Feature.MANAGED_BY,
        {"managedBy": "kubeflow.org/training-operator"},
        {"managedBy": "kueue.x-k8s.io/multikueue"},
    ),
    "schedulingPolicy.queue": (
        Feature.WEBHOOKS,
        {"schedulingPolicy": {"queue": "first"}},
        {"schedulingPolicy": {"queue": "second"}},
    ),
}


@pytest.mark.behaviour("V03")
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("field", list(FIELDS))
def test_an_immutable_field_cannot_be_changed(
    system: SystemUnderTest, ns: str, expect: Expecting, field: str, kind: str
) -> None:
    """The change is refused with the field's name, and the job runs on as it was."""
    feature, before, after = FIELDS[field]
    needs(system, feature)
    cast = Cast(system, ns, expect)
    cast.add(kind, "fixed", policy=before)
    running = cast.run()
    said = ""
    try:
        cast.patch("fixed", {"spec": {"runPolicy": after}})
    except ApiError as error:
        said = str(error)
    assert said, f"runPolicy.{field} of a running {kind} could be changed"
    assert field.rsplit(".", 1)[-1] in said, f"refused without naming the field: {said}"
    now = cast.uids()
    assert all(now.get(name) == pod["metadata"]["uid"] for name, pod in running.items()), (
        "its pods were replaced"
    )
