"""Probes of pods: bound, running, ended, the same as before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chaos import session
from chaos.activities import activity, promised, promised_of
from chaos.errors import NotReached
from chaos.session import Seen
from clusters.cluster import Capability
from clusters.kube import PODS, Object, conditions, epoch
from clusters.resources import is_bound
from oracles.relations import JOB_NAME


@activity
def pods_bound(count: int, *, job: str = "", app: str = "", within: float = 60) -> int:
    """So many pods exist, and all are bound."""

    def all_bound(pods: list[Object]) -> int | None:
        return count if len(pods) == count and all(map(is_bound, pods)) else None

    return _wait(count, "bound", all_bound, job, app, within)


@activity
def pods_running(
    count: int, *, job: str = "", app: str = "", within: float = 60, touch: bool = False,
    ready: bool = False,
) -> int:  # fmt: skip
    """So many pods run.

    Args:
        touch: if they do not, say whether a write to the job helps.
        ready: they are Ready, too. A pod whose node is silent or off stays in phase Running, but it
            is not Ready from the time at which the cluster notices until its kubelet says so again.
    """

    def up(pods: list[Object]) -> int | None:
        running = [p for p in pods if _runs(p) and (not ready or _ready(p))]
        return count if len(running) == count else None

    return _wait(count, "run" + " and are Ready" * ready, up, job, app, within, touch=touch)


@activity
def pods_run_again(count: int, *, job: str, of: str, within: float = 120) -> list[str]:
    """So many pods of a job run and are Ready, and those that a node lost run anew; these.

    Anew is a pod that was made again, or one whose containers all began after the last fault.

    Args:
        of: a pod that was on the node when :func:`same_pods` was first asked.

    Raises:
        NotApplicable: pods have no containers here, so nothing begins anew.
    """
    it = session.current()
    it.site.cluster.require(Capability.CONTAINERS)
    before = before_fault(job)
    lost = neighbours(job, of)

    def anew(pod: Object) -> bool:
        meta = pod["metadata"]
        if meta["name"] not in lost or meta["uid"] != before[meta["name"]].uid:
            return True
        told = pod["status"].get("containerStatuses") or []
        begun = [(s.get("state") or {}).get("running", {}).get("startedAt") for s in told]
        # the API tells whole seconds
        return bool(begun) and all(t and epoch(t) >= int(it.since) for t in begun)

    def up(pods: list[Object]) -> list[str] | None:
        running = [p for p in pods if _runs(p) and _ready(p) and anew(p)]
        return lost if len(running) == count else None

    what = f"{count} pods run, {', '.join(lost)} anew"
    return promised(
        what,
        lambda: it.kube.wait(
            PODS, up, namespace=it.namespace, labels=labels_of(job, ""), deadline=within, why=what
        ),
    )


@activity
def pods_succeed(count: int, *, job: str = "", app: str = "", within: float = 60) -> int:
    """So many pods have ended well."""

    def ended(pods: list[Object]) -> int | None:
        good = [p for p in pods if p["status"].get("phase") == "Succeeded"]
        return count if len(good) == count else None

    return _wait(count, "succeed", ended, job, app, within)


@activity
def pod_is_gone(pod: str, *, within: float = 60) -> bool:
    """There is no such pod any more: its processes have ended, too."""
    it = session.current()
    return promised(
        f"{pod} gone",
        lambda: it.kube.wait(
            PODS, lambda pods: None if pods else True, namespace=it.namespace,
            fields=f"metadata.name={pod}", deadline=within, why=f"{pod} gone",
        ),
    )  # fmt: skip


@activity
def same_pods(*, job: str, containers: bool = False, pod: str = "") -> list[str]:
    """The pods of a job are, by uid, those that it had when this was first asked.

    Args:
        containers: their containers are the same, too, none started again.
        pod: only this one.

    Raises:
        NotReached: it had none then.
    """
    it = session.current()
    found = it.kube.find(PODS, it.namespace, labels=labels_of(job, ""))
    now = {
        item["metadata"]["name"]: Seen.of(item)
        for item in found
        if "deletionTimestamp" not in item["metadata"]  # it is about to be another one
    }
    if job not in it.pods:
        if not now:
            raise NotReached(f"{job} has no pods to compare later ones with")
        it.pods[job] = now
    before = it.pods[job]
    names = [pod] if pod else sorted(before.keys() | now.keys())

    def known(all_of_them: Mapping[str, Seen]) -> dict[str, object]:
        seen = {name: all_of_them.get(name) for name in names}
        return {n: s and ((s.uid, *s.containers) if containers else s.uid) for n, s in seen.items()}

    assert known(now) == known(before), f"pods of {job}: {known(before)}, and later {known(now)}"
    return names


@activity
def volume_has_room(pod: str, path: str, *, container: str = "main") -> bool:
    """A file can be written in a volume."""
    it = session.current()
    done = it.kube.exec(
        it.namespace, pod, ["sh", "-c", f"echo x > {path}/probe && rm {path}/probe"],
        container=container,
    )  # fmt: skip
    assert done.code == 0, f"nothing can be written to {path} of {pod}: {done.stderr.strip()}"
    return True


def before_fault(job: str) -> Mapping[str, Seen]:
    """A job's pods before the fault. Raises NotReached when nobody looked."""
    found = session.current().pods.get(job)
    if not found:
        raise NotReached(f"nobody looked which pods {job} had before: `same_pods` comes first")
    return found


def neighbours(job: str, pod: str) -> list[str]:
    """The pods of a job that were on a pod's node before, itself too. Raises NotReached."""
    before = before_fault(job)
    if pod not in before or not before[pod].node:
        raise NotReached(f"{pod} was on no node before")
    return sorted(name for name, seen in before.items() if seen.node == before[pod].node)


def _runs(pod: Object) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def _ready(pod: Object) -> bool:
    return conditions(pod).get("Ready") == "True"


def _wait(
    count: int, what: str, until: Callable[[list[Object]], int | None], job: str, app: str,
    within: float, *, touch: bool = False,
) -> int:  # fmt: skip
    it = session.current()

    def wait(deadline: float) -> int:
        return it.kube.wait(
            PODS, until, namespace=it.namespace, labels=labels_of(job, app), deadline=deadline,
            why=f"{count} pods of {job or app or it.namespace} {what}",
        )  # fmt: skip

    if touch:
        return promised_of(job, f"{count} pods {what}", wait, within)
    return promised(f"{count} pods {what}", lambda: wait(within))


def labels_of(job: str, app: str) -> str:
    return f"{JOB_NAME}={job}" if job else f"app={app}" if app else ""
