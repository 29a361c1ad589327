"""What suites ask of group objects: waited for, and counted."""

from __future__ import annotations

from collections.abc import Callable

from clusters.errors import Expired, Unreachable, WaitTimeout
from clusters.kube import Kube, Object, Resource
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.systems.protocols import GroupState
from oracles.errors import HarnessError


def wait(
    system: SystemUnderTest,
    namespace: str,
    until: Callable[[GroupState], bool],
    *,
    deadline: float,
    why: str,
) -> GroupState:
    """Wait until the one group of the namespace is as *until* says; returns its state."""
    scheduler = system.scheduler
    what = scheduler.group_resource()
    assert what is not None

    def check(items: list[Object]) -> GroupState | None:
        states = [scheduler.read_group(item) for item in items]
        return states[0] if len(states) == 1 and until(states[0]) else None

    return system.cluster.kube.wait(
        what, check, namespace=namespace, deadline=deadline, why=why
    )  # fmt: skip


def asks_for(
    system: SystemUnderTest, namespace: str, minimum: int, *, deadline: float, why: str
) -> None:
    """Hold whoever makes the namespace's group to its minimum; *why* it has to be that.

    Raises:
        AssertionError: it is another one at the end of the deadline.
    """
    try:
        wait(
            system, namespace, lambda group: group.min_member == minimum,
            deadline=deadline, why=f"group with a minimum of {minimum}",
        )  # fmt: skip
    except WaitTimeout:
        what = system.scheduler.group_resource()
        assert what is not None
        states = [
            system.scheduler.read_group(item) for item in system.cluster.kube.find(what, namespace)
        ]
        found = [state.min_member for state in states]
        raise AssertionError(
            f"{why}: its group's minimum is to be {minimum}, and is"
            f" {', '.join(map(str, found)) or 'nowhere, for there is no group'}"
        ) from None


def asks_for_all(system: SystemUnderTest, namespace: str, members: int) -> None:
    """Hold the namespace's one group to a minimum of all members, as it is now."""
    what = system.scheduler.group_resource()
    assert what is not None
    found = [system.scheduler.read_group(i) for i in system.cluster.kube.find(what, namespace)]
    assert [g.min_member for g in found] == [members], (
        f"the job has {members} replicas, its groups ask for {[g.min_member for g in found]}"
    )


def version(kube: Kube, what: Resource, namespace: str) -> str:
    """The version to count from, see :func:`made`."""
    return kube.list_with_version(what, namespace)[1]


def made(kube: Kube, what: Resource, namespace: str, *, since: str, seconds: float) -> list[str]:
    """Names of all groups that were made after a version, up to *seconds* from now.

    Raises:
        HarnessError: the server does not tell all of that time.
    """
    try:
        return [
            event["object"]["metadata"]["name"]
            for event in kube.watch(what, namespace, since=since, timeout=seconds)
            if event["type"] == "ADDED"
        ]
    except (Expired, Unreachable) as error:
        raise HarnessError(f"nobody can say how often {what.kind}s were made: {error}") from error
