"""How proofs break things: by hand, past the systems under test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clusters.errors import WaitTimeout
from clusters.kube import NODES, PODS, Kube, Object, Resource
from clusters.topology import GPU
from fixtures.plugin.clusters import SystemUnderTest
from oracles.errors import HarnessError
from oracles.graces import graces

#: a scheduler that there is not: pods that name it are bound by nobody
NOBODY = "nobody"
#: keeps an object that was deleted
FINALIZER = "muster.dev/proof"
#: seconds beyond a grace for which what is wrong is held
OVER = 2.0
#: seconds after which somebody who meddles looks whether the test is over
LOOK = 1.0


def grace(system: SystemUnderTest, name: str) -> float:
    """Seconds after which the judges call something broken on this system."""
    combination = system.combination
    return graces([combination.operator_label, combination.scheduler_label])[name]


def bind(kube: Kube, namespace: str, pod: str, node: str) -> None:
    """Bind a pod to a node, as a scheduler does."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    kube.request("POST", f"{PODS.path(namespace, pod)}/binding", body=body)


def gpu_node(kube: Kube) -> tuple[str, int]:
    """A node with GPUs, and how many."""
    for node in kube.find(NODES):
        if count := int(node["status"]["allocatable"].get(GPU, 0)):
            return node["metadata"]["name"], count
    raise HarnessError("no node has GPUs")


def tainted_node(kube: Kube) -> str:
    """A node that takes no ordinary pods, and has no GPUs."""
    for node in kube.find(NODES):
        effects = {taint["effect"] for taint in node["spec"].get("taints") or ()}
        if "NoSchedule" in effects and not int(node["status"]["allocatable"].get(GPU, 0)):
            return str(node["metadata"]["name"])
    raise HarnessError("no node is tainted")


def hold(
    kube: Kube,
    what: Resource,
    namespace: str,
    seconds: float,
    still: Callable[[list[Object]], bool],
    why: str,
) -> None:
    """Hold on the watch that something stays as it is.

    Raises:
        HarnessError: it did not.
    """
    try:
        kube.wait(
            what, lambda items: None if still(items) else True, namespace=namespace,
            deadline=seconds, why=why,
        )  # fmt: skip
    except WaitTimeout:
        return
    raise HarnessError(f"{why}: not for {seconds:.0f} s, somebody undid it")


@contextmanager
def forsaken(kube: Kube, what: Resource, namespace: str, name: str) -> Iterator[None]:
    """A job that its operator does not look after any more, because it is being deleted.

    training-operator leaves a job alone that has a deletion time; a finalizer keeps it there, and
    the garbage collector waits for its end.
    """
    kube.patch(what, name, {"metadata": {"finalizers": [FINALIZER]}}, namespace)
    try:
        kube.delete(what, name, namespace)
        kube.wait(
            what,
            lambda items: True if items and items[0]["metadata"].get("deletionTimestamp") else None,
            namespace=namespace, fields=f"metadata.name={name}", deadline=10,
            why=f"{what.kind} {name} being deleted",
        )  # fmt: skip
        yield
    finally:
        kube.patch(what, name, {"metadata": {"finalizers": []}}, namespace)


def status(kube: Kube, what: Resource, namespace: str, name: str, body: Object) -> None:
    """Change a job's status."""
    kube.patch(what, name, {"status": body}, namespace, subresource="status")


def condition(kube: Kube, what: Resource, namespace: str, job: Object, **changed: str) -> None:
    """Write the conditions of a job with some statuses changed, or added."""
    now = (job.get("status") or {}).get("conditions") or []
    conditions = {each["type"]: each for each in now}
    for name, status_ in changed.items():
        before = conditions.get(name, {"type": name, "reason": "ByHand", "message": "by hand"})
        conditions[name] = {**before, "status": status_}
    body = {"conditions": list(conditions.values())}
    status(kube, what, namespace, job["metadata"]["name"], body)


@contextmanager
def meddling(
    kube: Kube, what: Resource, namespace: str, act: Callable[[list[Object]], bool]
) -> Iterator[None]:
    """Somebody meddles with a namespace, once, as soon as it is as it has to be for that.

    Args:
        act: given all objects of *what* after every change, until it says that it has meddled.

    Raises:
        HarnessError: it never came to that.
    """
    ended, done = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def meddle(found: list[Object]) -> bool | None:
        if not ended.is_set() and act(found):
            done.set()  # said at once: what was done may end the test before this thread goes on
        return True if ended.is_set() or done.is_set() else None

    def run() -> None:
        while not (ended.is_set() or done.is_set() or errors):
            try:
                kube.wait(what, meddle, namespace=namespace, deadline=LOOK, why="meddled")
            except WaitTimeout:
                continue
            except Exception as error:
                errors.append(error)

    thread = threading.Thread(target=run, name="meddling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if not done.is_set():
            why = errors[0] if errors else "there was no occasion"
            raise HarnessError(f"nobody meddled with the {what.plural}: {why}")


@contextmanager
def kept(kube: Kube, ns: str, name: str) -> Iterator[None]:
    """Somebody's finalizer keeps a pod, once it is there; it is taken away at the end."""

    def keep(found: list[Object]) -> bool:
        if not any(pod["metadata"]["name"] == name for pod in found):
            return False
        kube.patch(PODS, name, {"metadata": {"finalizers": [FINALIZER]}}, ns)
        return True

    try:
        with meddling(kube, PODS, ns, keep):
            yield
    finally:
        if kube.get(PODS, name, ns) is not None:
            kube.patch(PODS, name, {"metadata": {"finalizers": None}}, ns)
