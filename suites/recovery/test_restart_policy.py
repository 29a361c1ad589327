"""Restart policy × exit code × role: what becomes of the pod, and of its job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from clusters.kube import PODS, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.workloads import order
from suites import tables
from suites.cast import ANSWER, LEADERS, Cast, failed

ROLES = {"PyTorchJob": ("master", "worker"), "TFJob": ("chief", "ps", "worker", "evaluator")}
#: success, a permanent error, and a retryable one (API documentation of RestartPolicyExitCode:
#: 1 to 127 are permanent, 128 to 255 retryable)
CODES = (0, 1, 137)
#: tried on workers only: both sides of that border, and the end
BORDER = (127, 128, 255)
POLICIES = ("Always", "OnFailure", "Never", "ExitCode")

RESTARTED, REPLACED, DONE, FAILED = (
    "restarted in place",
    "replaced by a new pod",
    "succeeded and left alone",
    "job failed",
)


def expected(policy: str, code: int) -> str:
    """What the documentation promises for a pod that ends with *code*."""
    if policy == "Always":
        return RESTARTED
    if code == 0:
        return DONE
    if policy == "ExitCode":
        return REPLACED if code >= 128 else FAILED
    return RESTARTED if policy == "OnFailure" else FAILED


@dataclass(frozen=True)
class Cell:
    """One job, of which one pod ends with a code."""

    job: str
    role: str
    code: int
    outcome: str

    @property
    def pod(self) -> str:
        """The pod that ends."""
        return f"{self.job}-{self.role}-0"


@pytest.mark.behaviour("R01")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ROLES)
def test_the_policy_decides_for_every_code_and_role(
    system: SystemUnderTest, ns: str, expect: Expecting, kind: str, policy: str
) -> None:
    """One job per cell; when all run, one pod of each ends with its code."""
    cast = Cast(system, ns, expect)
    cells = [
        Cell(f"{role}-{code}", role, code, expected(policy, code))
        for role in ROLES[kind]
        for code in (*CODES, *(BORDER if (policy, role) == ("ExitCode", "worker") else ()))
    ]
    for cell in cells:
        cast.add(kind, cell.job, role=cell.role, restart=policy)
    before = cast.run()
    for cell in cells:
        cast.tell(cell.job, order("exit", cell.code, role=cell.role, times=1, id="once"))

    def tell(pod: Object) -> str:
        return seen(pod, before[pod["metadata"]["name"]])

    checks = {cell.pod: check(before[cell.pod], cell) for cell in cells if cell.outcome != FAILED}
    with tables.judged() as table:
        late = tables.reach(system.cluster.kube, PODS, ns, checks, deadline=ANSWER, describe=tell)
        ends = cast.reach({cell.job: failed for cell in cells if cell.outcome == FAILED})
        for cell in cells:
            name = f"{policy}, exit code {cell.code}, {cell.role}"
            job = cast.job(cell.job)
            if cell.pod in late:
                table.broke(name, f"expected: {cell.outcome}; seen: {late[cell.pod]}")
            if cell.job in ends:
                table.broke(name, f"expected: {cell.outcome}; the job is {ends[cell.job]}")
            if cell.outcome != FAILED:
                table.hold(name, not failed(job), f"{cell.outcome}, and yet the job Failed")
            leader_done = cell.outcome == DONE and cell.role == LEADERS[kind]
            if cell.outcome == DONE and not leader_done:
                over = tables.true("Succeeded")(job)
                table.hold(name, not over, "the job succeeded without its leader")


def check(before: Object, cell: Cell) -> Callable[[Object | None], bool]:
    """Whether a pod is what is expected of it."""
    uid = before["metadata"]["uid"]

    def as_expected(pod: Object | None) -> bool:
        if pod is None:
            return False
        same: bool = pod["metadata"]["uid"] == uid
        states = pod["status"].get("containerStatuses") or []
        if cell.outcome == RESTARTED:
            return same and any(state["restartCount"] for state in states)
        if cell.outcome == REPLACED:
            return not same and any("running" in state["state"] for state in states)
        return same and bool(pod["status"].get("phase") == "Succeeded")

    return as_expected


def seen(pod: Object, before: Object) -> str:
    """What became of a pod, in words."""
    same = pod["metadata"]["uid"] == before["metadata"]["uid"]
    states = pod["status"].get("containerStatuses") or []
    restarts = sum(state["restartCount"] for state in states)
    return (
        f"{'the same pod' if same else 'a new pod'}, {pod['status'].get('phase')},"
        f" {restarts} restarts"
    )
