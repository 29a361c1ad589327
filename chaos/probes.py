"""Probes of experiments: what the system under test promises, waited for or held.

A promise that is not kept is an AssertionError: FAIL. That nobody can say is any other error.
Probes of a steady-state hypothesis return True or False instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from chaos import looking, session
from chaos.actions.jobs import INTERVAL
from chaos.activities import activity, mending, promised
from chaos.errors import NotProven, NotReached
from chaos.faults.api import ApiTrouble
from clusters.errors import Expired, Unreachable, WaitTimeout
from clusters.kube import PODS, Object, conditions
from clusters.progress import say
from clusters.resources import is_bound
from fixtures import workloads
from fixtures.workloads import SAMPLES
from oracles import progress, samples
from oracles.errors import HarnessError
from oracles.progress import ProgressLine

#: seconds between two looks at what has no watch: progress files, the insides of nodes
LOOK = 0.25
JOB_LABEL = "training.kubeflow.org/job-name"


# for hypotheses ----------------------------------------------------------------------------


@mending
def cluster_in_order(within: float = 30) -> bool:
    """Nodes Ready, nothing broken, operator and scheduler Ready; says what is not.

    Args:
        within: seconds for what is on its way, a container that starts again for instance.
    """
    site = session.current().site
    end = time.monotonic() + within
    while found := looking.troubles(site):
        if time.monotonic() > end:
            for line in found:
                say(f"not in order: {line}")
            return False
        time.sleep(LOOK)
    return True


# jobs --------------------------------------------------------------------------------------


@activity
def job_has(
    job: str, condition: str, *, kind: str = "PyTorchJob", within: float = 60, status: str = "True"
) -> float:
    """A job gets a condition; seconds since the last fault."""
    it = session.current()

    def check(items: list[Object]) -> bool | None:
        return True if items and conditions(items[0]).get(condition) == status else None

    _job(job, kind, check, within, f"{kind} {job} {condition}")
    return round(time.time() - it.since, 3) if it.since else 0.0


@activity
def job_is_gone(job: str, *, kind: str = "PyTorchJob", within: float = 60) -> bool:
    """A job is gone, and its pods too."""
    _job(job, kind, lambda items: None if items else True, within, f"{kind} {job} gone")
    it = session.current()
    return promised(
        f"no pods of {job}",
        lambda: it.kube.wait(
            PODS, lambda pods: None if pods else True, namespace=it.namespace,
            labels=f"{JOB_LABEL}={job}", deadline=within, why=f"pods of {job} gone",
        ),
    )  # fmt: skip


@activity
def job_never_has(
    job: str, condition: str, *, kind: str = "PyTorchJob", seconds: float = 20
) -> bool:
    """A job does not get a condition for a while; every change is looked at."""
    it = session.current()

    def bad(items: list[Object]) -> str | None:
        if items and conditions(items[0]).get(condition) == "True":
            return str(items[0]["metadata"]["resourceVersion"])
        return None

    try:
        version = it.kube.wait(
            it.operator.jobs[kind], bad, namespace=it.namespace,
            fields=f"metadata.name={job}", deadline=seconds, why=f"{job} {condition}",
        )  # fmt: skip
    except WaitTimeout:
        return True
    raise AssertionError(f"{kind} {job} is {condition} (version {version})")


@activity
def replicas_are(
    job: str, role: str = "Worker", *, active: int, kind: str = "PyTorchJob", within: float = 30
) -> int:
    """The job's own count of a role comes to what it should be."""

    def check(items: list[Object]) -> bool | None:
        if not items:
            return None
        counts = (items[0].get("status", {}).get("replicaStatuses") or {}).get(role) or {}
        return True if int(counts.get("active") or 0) == active else None

    _job(job, kind, check, within, f"{job} counts {active} active {role}")
    return active


@activity
def worker_restarts(pod: str, *, at_least: int = 1, within: float = 60) -> int:
    """A worker process of a pod is started again by its agent, in the same container."""
    it = session.current()
    pods = {p["metadata"]["uid"]: p for p in it.kube.find(PODS, it.namespace)}

    def enough(lines: list[ProgressLine]) -> int | None:
        most = max(
            (int(x.restart or 0) for x in lines if x.pod == pod and x.pod_uid in pods), default=0
        )
        return most if most >= at_least else None

    job = next(
        p["metadata"]["labels"][JOB_LABEL] for p in pods.values() if p["metadata"]["name"] == pod
    )
    return _told(job, enough, within, f"{at_least} restarts of the worker process of {pod}")


# training ----------------------------------------------------------------------------------


@activity
def trains(
    job: str, *, steps: int = 5, world: int | None = None, within: float = 120,
    since_fault: bool = False,
) -> Object:  # fmt: skip
    """A process group does so many steps, after the last fault (*since_fault*) or at all."""
    it = session.current()
    since = it.since + 1.0 if since_fault else 0.0

    def enough(lines: list[ProgressLine]) -> Object | None:
        done: dict[str, dict[int, set[int | None]]] = {}
        sizes: dict[str, int] = {}
        first: dict[str, float] = {}
        for line in progress.steps(lines):
            if line.t <= since or line.generation is None or line.step is None:
                continue
            done.setdefault(line.generation, {}).setdefault(line.step, set()).add(line.rank)
            sizes[line.generation] = line.world or 0
            first.setdefault(line.generation, line.t)
        for generation, by_step in done.items():
            size = sizes[generation]
            whole = sum(ranks == set(range(size)) for ranks in by_step.values())
            if whole >= steps and world in (None, size):
                return {"world": size, "after": round(first[generation] - it.since, 3)}
        return None

    what = f"{job} does {steps} steps" + (f" in a world of {world}" if world else "")
    return _told(job, enough, within, what)


@activity
def no_sample_was_lost(job: str) -> bool:
    """No sample was skipped, and at most one checkpoint's interval of steps was lost at a time."""
    wrong = samples.faults(_lines(job), size=SAMPLES, interval=INTERVAL)
    assert not wrong, "; ".join(wrong)
    return True


# pods --------------------------------------------------------------------------------------


@activity
def pods_bound(
    count: int, *, job: str = "", app: str = "", within: float = 60, exact: bool = True
) -> int:
    """So many pods exist, and all are bound."""
    it = session.current()

    def all_bound(pods: list[Object]) -> int | None:
        held = [p for p in pods if is_bound(p)]
        fits = len(held) == count and len(pods) == count if exact else len(held) >= count
        return len(held) if fits else None

    return promised(
        f"{count} pods bound",
        lambda: it.kube.wait(
            PODS, all_bound, namespace=it.namespace, labels=_labels(job, app), deadline=within,
            why=f"{count} pods of {job or app or it.namespace} bound",
        ),
    )  # fmt: skip


@activity
def pods_running(count: int, *, job: str = "", app: str = "", within: float = 60) -> int:
    """So many pods run."""
    it = session.current()

    def up(pods: list[Object]) -> int | None:
        running = [p for p in pods if p["status"].get("phase") == "Running"]
        running = [p for p in running if "deletionTimestamp" not in p["metadata"]]
        return count if len(running) == count else None

    return promised(
        f"{count} pods run",
        lambda: it.kube.wait(
            PODS, up, namespace=it.namespace, labels=_labels(job, app), deadline=within,
            why=f"{count} pods of {job or app or it.namespace} run",
        ),
    )  # fmt: skip


@activity
def pods_stay_unbound(*, job: str = "", app: str = "", seconds: float = 15, least: int = 0) -> int:
    """No pod is bound for a while: held on the watch."""
    it = session.current()
    labels = _labels(job, app)
    end = time.monotonic() + seconds
    try:
        pods, version = it.kube.list_with_version(PODS, it.namespace, labels=labels)
        seen = {p["metadata"]["name"]: p for p in pods}
        _none_bound(pods)
        while (left := end - time.monotonic()) > 0:
            for event in it.kube.watch(
                PODS, it.namespace, since=version, labels=labels, timeout=left
            ):
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] in ("ADDED", "MODIFIED"):
                    seen[event["object"]["metadata"]["name"]] = event["object"]
                    _none_bound([event["object"]])
    except (Expired, Unreachable) as error:
        raise HarnessError(f"the watch that held pods unbound broke: {error}") from error
    assert len(seen) >= least, f"{len(seen)} pods exist, {least} were to be held unbound"
    return len(seen)


@activity
def each_pod_once(*, job: str) -> int:
    """No two pods of a job have the same role and index."""
    it = session.current()
    seen: dict[tuple[str, str], str] = {}
    for pod in it.kube.find(PODS, it.namespace, labels=f"{JOB_LABEL}={job}"):
        labels = pod["metadata"]["labels"]
        key = (
            labels.get("training.kubeflow.org/replica-type", ""),
            labels.get("training.kubeflow.org/replica-index", ""),
        )
        name = pod["metadata"]["name"]
        assert key not in seen, f"{name} and {seen[key]} are both {' '.join(key)} of {job}"
        seen[key] = name
    return len(seen)


@activity
def same_pods(*, job: str) -> list[str]:
    """The pods of a job are, by uid, those that it had when this was first asked."""
    it = session.current()
    found = it.kube.find(PODS, it.namespace, labels=f"{JOB_LABEL}={job}")
    now = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}
    before = it.pods.setdefault(job, now)
    assert now == before, f"pods of {job}: {before}, and later {now}"
    return sorted(now)


@activity
def nothing_told(job: str) -> bool:
    """No process of a job has told of anything yet: its agents have not met.

    Raises:
        NotReached: one has, so the moment before it is over.
    """
    lines = _lines(job)
    if lines:
        raise NotReached(f"{lines[0].pod} has told of its {lines[0].event.value} already")
    return True


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
def rule_acted(label: str, times: int = 1) -> int:
    """A rule of a proxy has done something to so many requests.

    Raises:
        NotProven: it has not, so whatever was seen says nothing about it.
    """
    fault = session.current().labels.get(label)
    if not isinstance(fault, ApiTrouble):
        raise NotProven(f"{label!r} names no trouble of a proxy")
    acted = fault.counts().acted
    if acted < times:
        raise NotProven(f"{fault.name} ({fault.about}) acted on {acted} requests")
    return acted


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


# helpers -----------------------------------------------------------------------------------


def _none_bound(pods: list[Object]) -> None:
    for pod in pods:
        assert not is_bound(pod), (
            f"pod {pod['metadata']['name']} is bound to {pod['spec']['nodeName']}"
        )


def _labels(job: str, app: str) -> str:
    return f"{JOB_LABEL}={job}" if job else f"app={app}" if app else ""


def _job(
    job: str, kind: str, check: Callable[[list[Object]], bool | None], within: float, why: str
) -> None:
    it = session.current()
    promised(
        why,
        lambda: it.kube.wait(
            it.operator.jobs[kind], check, namespace=it.namespace,
            fields=f"metadata.name={job}", deadline=within, why=why,
        ),
    )  # fmt: skip


def _lines(job: str) -> list[ProgressLine]:
    it = session.current()
    return workloads.read_progress(it.site.cluster, it.namespace, job)


def _told[T](
    job: str, until: Callable[[list[ProgressLine]], T | None], within: float, why: str
) -> T:
    def wait() -> T:
        end = time.monotonic() + within
        while True:
            lines = _lines(job)
            if (answer := until(lines)) is not None:
                return answer
            if time.monotonic() > end:
                last = "; ".join(
                    f"{x.event.value} of {x.pod} rank {x.rank}/{x.world} step {x.step}"
                    for x in lines[-4:]
                )
                raise WaitTimeout(f"{why}: not within {within:.0f} s; last lines: {last or 'none'}")
            time.sleep(LOOK)

    return promised(why, wait)
