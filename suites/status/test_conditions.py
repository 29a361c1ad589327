"""Conditions of a job, judged on every version of it that the watch shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.kube import PYTORCHJOBS, TFJOBS, Kube, Object, Resource, conditions
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.workloads import Program, pytorchjob, tfjob
from oracles.errors import HarnessError

#: seconds for a job whose pods run for two
LIFE = 90.0
#: conditions of which at most one is True at a time
EXCLUSIVE = (("Running", "Restarting"), ("Running", "Suspended"), ("Succeeded", "Failed"))
ORDER = ("Created", "Running", "Succeeded")


@pytest.mark.e2e
@pytest.mark.behaviour("T01")
@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob"])
def test_conditions_come_in_order(system: SystemUnderTest, ns: str, kind: str) -> None:
    """Created, then Running, then Succeeded; none of them ever taken back before its time."""
    kube = system.cluster.kube
    program = Program(seconds=2, code=0)
    what, job = (
        (PYTORCHJOBS, pytorchjob("life", workers=1, program=program))
        if kind == "PyTorchJob"
        else (TFJOBS, tfjob("life", ps=0, workers=2, gpus=0, program=program))
    )
    made = kube.create(job, namespace=ns)
    first_seen: dict[str, int] = {}
    last: dict[str, str] = {}
    for number, version in enumerate(follow(kube, what, made, deadline=LIFE)):
        now = conditions(version)
        for one, other in EXCLUSIVE:
            assert not (now.get(one) == now.get(other) == "True"), (
                f"version {number}: {one} and {other} are both True"
            )
        for done in ("Succeeded", "Failed"):
            assert not (last.get(done) == "True" and now.get(done) != "True"), (
                f"version {number}: {done} was True and is no more"
            )
        for name, status in now.items():
            if status == "True":
                first_seen.setdefault(name, number)
        last = now
    assert last.get("Succeeded") == "True", f"the job ended as {last}"
    assert set(first_seen) == set(ORDER), f"conditions that were ever True: {sorted(first_seen)}"
    moments = [first_seen[name] for name in ORDER]
    assert moments == sorted(moments), f"order of appearance: {first_seen}"
    assert last.get("Running") == "False", "a job that succeeded is still Running"


def follow(kube: Kube, what: Resource, job: Object, *, deadline: float) -> Iterator[Object]:
    """Every version of *job* that the watch shows, until it is terminal.

    Raises:
        AssertionError: it is not terminal after *deadline* seconds.
        HarnessError: the watch ended early, so versions may have been missed.
    """
    meta = job["metadata"]
    for event in kube.watch(
        what, meta["namespace"], since=meta["resourceVersion"],
        fields=f"metadata.name={meta['name']}", timeout=deadline,
    ):  # fmt: skip
        if event["type"] == "BOOKMARK":
            continue
        if event["type"] == "DELETED":
            raise HarnessError(f"{what.kind} {meta['name']} was deleted while it was followed")
        job = event["object"]
        yield job
        now = conditions(job)
        if "True" in (now.get("Succeeded"), now.get("Failed")):
            return
    raise AssertionError(
        f"{what.kind} {meta['name']} is not terminal after {deadline:.0f} s: {conditions(job)}"
    )
