"""Probes of pods and groups: bound, running, held unbound, each there once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chaos import session
from chaos.activities import activity, promised, promised_of
from chaos.errors import NotReached
from clusters import waiting
from clusters.kube import PODS, Object
from clusters.resources import is_bound
from oracles.relations import JOB_NAME, REPLICA_INDEX, REPLICA_TYPE


@activity
def pods_bound(
    count: int, *, job: str = "", app: str = "", within: float = 60, exact: bool = True
) -> int:
    """So many pods exist, and all are bound."""

    def all_bound(pods: list[Object]) -> int | None:
        held = [p for p in pods if is_bound(p)]
        fits = len(held) == count and len(pods) == count if exact else len(held) >= count
        return len(held) if fits else None

    return _wait(count, "bound", all_bound, job, app, within)


@activity
def pods_running(
    count: int, *, job: str = "", app: str = "", within: float = 60, touch: bool = False
) -> int:
    """So many pods run. *touch*: if they do not, say whether a write to the job helps."""

    def up(pods: list[Object]) -> int | None:
        running = [p for p in pods if p["status"].get("phase") == "Running"]
        running = [p for p in running if "deletionTimestamp" not in p["metadata"]]
        return count if len(running) == count else None

    return _wait(count, "run", up, job, app, within, touch=touch)


@activity
def pods_stay_unbound(*, job: str = "", app: str = "", seconds: float = 15, least: int = 0) -> int:
    """No pod is bound for a while: held on the watch."""
    it = session.current()
    ever: set[str] = set()

    def unbound(pods: Mapping[str, Object], after: float) -> None:
        ever.update(pods)
        for name, pod in pods.items():
            assert not is_bound(pod), f"pod {name} is bound to {pod['spec']['nodeName']}"

    waiting.hold(it.kube, PODS, it.namespace, unbound, labels=_labels(job, app), seconds=seconds)
    assert len(ever) >= least, f"{len(ever)} pods exist, {least} were to be held unbound"
    return len(ever)


@activity
def each_pod_once(*, job: str) -> int:
    """No two pods of a job have the same role and index."""
    it = session.current()
    seen: dict[tuple[str, str], str] = {}
    for pod in it.kube.find(PODS, it.namespace, labels=f"{JOB_NAME}={job}"):
        labels = pod["metadata"]["labels"]
        key = (labels.get(REPLICA_TYPE, ""), labels.get(REPLICA_INDEX, ""))
        name = pod["metadata"]["name"]
        assert key not in seen, f"{name} and {seen[key]} are both {' '.join(key)} of {job}"
        seen[key] = name
    return len(seen)


@activity
def same_pods(*, job: str) -> list[str]:
    """The pods of a job are, by uid, those that it had when this was first asked."""
    it = session.current()
    found = it.kube.find(PODS, it.namespace, labels=f"{JOB_NAME}={job}")
    now = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}
    before = it.pods.setdefault(job, now)
    assert now == before, f"pods of {job}: {before}, and later {now}"
    return sorted(now)


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


def _wait(
    count: int, what: str, until: Callable[[list[Object]], int | None], job: str, app: str,
    within: float, *, touch: bool = False,
) -> int:  # fmt: skip
    it = session.current()

    def wait(deadline: float) -> int:
        return it.kube.wait(
            PODS, until, namespace=it.namespace, labels=_labels(job, app), deadline=deadline,
            why=f"{count} pods of {job or app or it.namespace} {what}",
        )  # fmt: skip

    if touch:
        return promised_of(job, f"{count} pods {what}", wait, within)
    return promised(f"{count} pods {what}", lambda: wait(within))


def _labels(job: str, app: str) -> str:
    return f"{JOB_NAME}={job}" if job else f"app={app}" if app else ""
