import pytest

from clusters.errors import WaitTimeout
from clusters.kube import PODS
from fixtures.plugin import outcomes
from oracles.outcome import Outcome
from suites import tables
from suites.recovery import test_restart_policy as policies


class Kube:
    """Plays prepared looks of a watch; the last one stays until the deadline."""

    def __init__(self, *looks):
        self.looks = looks

    def wait(self, what, until, **how):
        for items in self.looks:
            if (answer := until(items)) is not None:
                return answer
        raise WaitTimeout(f"{how['why']}: never")


def pod(name, phase="Running"):
    return {"metadata": {"name": name}, "status": {"phase": phase}}


def test_what_was_reached_once_is_reached():
    kube = Kube([pod("a", "Failed"), pod("b")], [pod("a"), pod("b", "Failed")])
    failed = {name: lambda item: item["status"]["phase"] == "Failed" for name in "ab"}
    assert tables.reach(kube, PODS, "ns", failed, deadline=1) == {}


def test_what_was_never_reached_is_told_as_it_was_last_seen():
    kube = Kube([pod("a")], [pod("a", "Succeeded")])
    wanted = {
        name: lambda item: bool(item) and item["status"]["phase"] == "Failed" for name in "ab"
    }
    late = tables.reach(kube, PODS, "ns", wanted, deadline=1)
    assert late == {"a": "a Succeeded", "b": "there is none"}


def test_an_object_that_has_to_be_gone_is_seen_to_be():
    kube = Kube([pod("a")], [])
    assert tables.reach(kube, PODS, "ns", {"a": lambda item: item is None}, deadline=1) == {}


def test_what_must_not_be_is_told_at_the_first_sight():
    kube = Kube([], [pod("a")], [pod("a"), pod("b")])

    def names(items):
        return ",".join(item["metadata"]["name"] for item in items)

    assert tables.held(kube, PODS, "ns", names, seconds=1) == "a"
    assert tables.held(kube, PODS, "ns", lambda items: "", seconds=1) == ""


def test_each_broken_cell_is_a_violation_of_its_own():
    def body():
        with tables.judged() as table:
            table.broke("one", "first")
            table.broke("one", "second")
            table.hold("two", True, "never told")
            table.hold("three", False, "third")

    with pytest.raises(tables.CellsBroken) as caught:
        body()
    verdict = outcomes.judge(caught.value, list)
    assert verdict.outcome is Outcome.FAIL
    assert [v.message for v in verdict.violations] == ["one: first", "three: third"]
    assert outcomes.judge(caught.value, lambda: ["a node is down"]).outcome is Outcome.INCONCLUSIVE


def test_a_table_without_a_broken_cell_passes():
    with tables.judged() as table:
        table.hold("one", True, "")


def test_conditions_are_read():
    job = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    assert tables.true("Failed")(job)
    assert not tables.true("Failed", "Succeeded")(job)
    assert not tables.true("Failed")(None)
    told = [tables.told(item) for item in (job, {}, None)]
    assert told == ["Failed", "no condition", "gone"]


def container(uid, phase="Running", restarts=0, state="running"):
    status = {"restartCount": restarts, "state": {state: {}}}
    return {
        "metadata": {"name": "p", "uid": uid},
        "status": {"phase": phase, "containerStatuses": [status]},
    }


BEFORE = container("u1")


@pytest.mark.parametrize(
    ("outcome", "right", "wrong"),
    [
        (policies.RESTARTED, container("u1", restarts=1), container("u2", restarts=1)),
        (policies.REPLACED, container("u2"), container("u1", restarts=1)),
        (policies.DONE, container("u1", "Succeeded"), container("u2", "Succeeded")),
    ],
)
def test_what_became_of_a_pod_is_told_apart(outcome, right, wrong):
    check = policies.check(BEFORE, policies.Cell("j", "worker", 1, outcome))
    assert check(right)
    assert not check(wrong)
    assert not check(BEFORE)
    assert not check(None)


def test_policies_differ_where_the_documentation_says_so():
    assert [policies.expected(p, 137) for p in policies.POLICIES] == [
        policies.RESTARTED, policies.RESTARTED, policies.FAILED, policies.REPLACED
    ]  # fmt: skip
    assert [policies.expected("ExitCode", c) for c in (0, 1, 127, 128, 255)] == [
        policies.DONE, policies.FAILED, policies.FAILED, policies.REPLACED, policies.REPLACED
    ]  # fmt: skip
    assert policies.expected("Always", 0) == policies.RESTARTED
