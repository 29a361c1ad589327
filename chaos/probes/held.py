"""Probes of pods that have to stay as they are for a while, held on the watch; and of moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chaos import session
from chaos.activities import activity, promised
from chaos.errors import NotReached
from chaos.probes.pods import labels_of
from clusters import waiting
from clusters.kube import PODS, Object
from clusters.resources import is_bound
from oracles.relations import JOB_NAME


@activity
def pods_stay_unbound(*, job: str = "", app: str = "", seconds: float = 15, least: int = 0) -> int:
    """No pod is bound for a while: held on the watch.

    Raises:
        NotReached: there were not even *least* pods that could have been.
    """
    it = session.current()
    ever: set[str] = set()

    def unbound(pods: Mapping[str, Object], after: float) -> None:
        ever.update(pods)
        for name, pod in pods.items():
            assert not is_bound(pod), f"pod {name} is bound to {pod['spec']['nodeName']}"

    waiting.hold(it.kube, PODS, it.namespace, unbound, labels=labels_of(job, app), seconds=seconds)
    if len(ever) < least:
        raise NotReached(f"{len(ever)} pods exist, {least} were to be held unbound")
    return len(ever)


@activity
def pods_stay_bound(count: int, *, job: str = "", app: str = "", seconds: float = 10) -> int:
    """So many pods are bound, and stay so for a while: held on the watch."""
    it = session.current()

    def held(pods: Mapping[str, Object], after: float) -> None:
        bound = sorted(name for name, pod in pods.items() if is_bound(pod))
        assert len(bound) == len(pods) == count, (
            f"after {after:.1f} s {len(bound)} of {len(pods)} pods are bound, not {count}:"
            f" {', '.join(bound)}"
        )

    waiting.hold(it.kube, PODS, it.namespace, held, labels=labels_of(job, app), seconds=seconds)
    return count


@activity
def pod_stays_away(pod: str, *, seconds: float) -> float:
    """Nobody makes a pod for a while: held on the watch.

    Raises:
        NotReached: it is there, so that whoever makes it is not kept from it.
    """
    it = session.current()

    def away(pods: Mapping[str, Object], after: float) -> None:
        if pod in pods:
            uid = pods[pod]["metadata"]["uid"]
            raise NotReached(f"pod {pod} is there ({uid}) after {after:.1f} of {seconds:.0f} s")

    waiting.hold(it.kube, PODS, it.namespace, away, seconds=seconds)
    return seconds


@activity
def one_gang_whole(
    jobs: Sequence[str], count: int, *, within: float = 60, seconds: float = 10
) -> str:
    """Of several jobs one has so many pods bound, and the others as many unbound; it stays so.

    Args:
        within: seconds until it is so.
        seconds: for which it is then held on the watch.
    """
    it = session.current()

    def bound(pods: Sequence[Object]) -> dict[str, tuple[int, int]]:
        """Job -> pods bound, and pods."""
        mine = {
            job: [p for p in pods if (p["metadata"].get("labels") or {}).get(JOB_NAME) == job]
            for job in jobs
        }
        return {job: (sum(map(is_bound, own)), len(own)) for job, own in mine.items()}

    def split(pods: Sequence[Object]) -> str | None:
        found = bound(pods)
        whole = [job for job, numbers in found.items() if numbers == (count, count)]
        waiting_ones = [job for job, numbers in found.items() if numbers == (0, count)]
        fits = len(whole) == 1 and len(waiting_ones) == len(jobs) - 1
        return whole[0] if fits else None

    what = f"all {count} pods of one of {', '.join(jobs)} bound, and none of the others'"
    first = promised(
        what,
        lambda: it.kube.wait(PODS, split, namespace=it.namespace, deadline=within, why=what),
    )

    def stays(pods: Mapping[str, Object], after: float) -> None:
        now = split(list(pods.values()))
        told = "; ".join(f"{job}: {b} of {n}" for job, (b, n) in bound([*pods.values()]).items())
        assert now == first, f"{first} alone was whole; {after:.1f} s later pods bound: {told}"

    waiting.hold(it.kube, PODS, it.namespace, stays, seconds=seconds)
    return first


@activity
def group_without_pods(pods: int = 0) -> int:
    """There is a group object, and so many pods.

    Raises:
        NotReached: it is otherwise, so this is not the moment that was meant.
    """
    it = session.current()
    what = it.scheduler.group_resource()
    groups = it.kube.find(what, it.namespace) if what is not None else []
    found = it.kube.find(PODS, it.namespace)
    if not groups or len(found) != pods:
        raise NotReached(f"{len(groups)} groups and {len(found)} pods, 1 and {pods} were meant")
    return len(groups)
