"""A cluster with its systems, a namespace and a recorder, for commands outside of pytest."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos import undo
from chaos.session import Handover, Session, open_session
from chaos.site import Site
from clusters import cache, crowding, ledger, namespaces
from clusters.cluster import Cluster
from clusters.errors import ClusterError, WaitTimeout
from clusters.kube import NAMESPACES, Kube
from clusters.providers import provider
from fixtures.systems import registry
from fixtures.workloads.template import LABEL_RUN
from oracles.crowd import FACT
from oracles.errors import UsageError
from oracles.recorder import Desk, Kind, Recorder

OPERATOR, SCHEDULER, TORCH = "training-operator", "coscheduling", "2.8.0"
#: seconds in which everything that happened has to have arrived at the end
SETTLE = 30.0


@dataclass(frozen=True)
class Asked:
    """What a command was asked for.

    Attributes:
        cluster: name, or ``existing:CONTEXT``; "" for the one that is up.
        folder: below which results are written.
        owned: see :mod:`chaos.safety`.
    """

    cluster: str = ""
    operator: str = OPERATOR
    scheduler: str = SCHEDULER
    torch: str = TORCH
    seed: int = 0
    folder: Path = Path("out")
    owned: Collection[str] = ()


@contextmanager
def from_environment(title: str) -> Iterator[Session]:
    """A session as the environment says; see :mod:`chaos.control`."""
    asked = Asked(
        cluster=os.environ.get("MUSTER_CLUSTER", ""),
        operator=os.environ.get("MUSTER_OPERATOR", OPERATOR),
        scheduler=os.environ.get("MUSTER_SCHEDULER", SCHEDULER),
        torch=os.environ.get("MUSTER_TORCH", TORCH),
        seed=int(os.environ.get("MUSTER_SEED", "0")),
        owned=tuple(filter(None, [os.environ.get("MUSTER_I_OWN_THIS_CLUSTER")])),
    )
    with standing(asked, title) as (handover, recorder):
        yield open_session(handover, recorder)


@contextmanager
def standing(asked: Asked, title: str) -> Iterator[tuple[Handover, Recorder]]:
    """A namespace of a cluster that is up, recorded until the end; all of it is removed again.

    What others left broken in the cluster is mended first.

    Raises:
        UsageError: which cluster?
        HarnessError: it is not in order.
    """
    cluster = _cluster(asked)
    operator = registry.operator(asked.operator)
    scheduler = registry.scheduler(asked.scheduler)
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")
    folder = asked.folder / f"chaos-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
    folder = folder.resolve()
    with cache.host():  # nobody else's tests run while we break things
        folder.mkdir(parents=True)
        kinds = [Kind(r.api_version, r.kind) for r in operator.recorded()]
        if (group := scheduler.group_resource()) is not None:
            kinds.append(Kind(group.api_version, group.kind))
        crowd = crowding.of(cluster)
        facts = {
            **({FACT: crowd.fact} if crowd else {}),
            "provider": cluster.provider,
            "kubernetes": cluster.kubernetes,
            "topology": cluster.topology.name,
            "operator": f"{operator.name}:{operator.version}",
            "scheduler": f"{scheduler.name}:{scheduler.version}",
            "framework": f"torch:{asked.torch}" if asked.torch else "",
            "versions": {
                "kubernetes": cluster.kubernetes,
                operator.name: operator.version,
                scheduler.name: scheduler.version,
                **({"torch": asked.torch} if asked.torch else {}),
            },
        }
        recorder = Recorder(
            Kube(cluster.kubeconfig, cluster.context), folder / "history.jsonl",
            run=folder.name, cluster=cluster.name, facts=facts, kinds=kinds,
            progress=cluster.shared,
        ).start()  # fmt: skip
        desk = Desk(recorder, folder / "desk")
        namespace = make_namespace(cluster, words or "chaos", folder.name)
        try:
            yield (
                Handover(
                    cluster=cluster.name,
                    provider=cluster.provider, operator=asked.operator, scheduler=asked.scheduler,
                    namespace=namespace, folder=str(folder), history=str(recorder.path),
                    desk=str(desk.path), torch=asked.torch, seed=asked.seed,
                    owned=tuple(asked.owned), shared=False,
                ),
                recorder,
            )  # fmt: skip
        finally:
            remove_namespace(cluster, namespace)
            recorder.settle(SETTLE)
            desk.close()
            recorder.stop(settle=0)


def _cluster(asked: Asked) -> Cluster:
    if asked.cluster.startswith("existing:"):
        where = provider(asked.cluster)
        cluster = where.get(asked.cluster)
    else:
        up = {entry.name: entry.provider for entry in ledger.entries() if entry.ready}
        if not asked.cluster and len(up) != 1:
            raise UsageError(
                f"which cluster? {len(up)} are up",
                hint=f"name one of {', '.join(up)}" if up else "python -m clusters up makes one",
            )
        name = asked.cluster or next(iter(up))
        where = provider(up.get(name, "kind"))
        undo.mend_named(where, name)
        return where.get(name)
    undo.mend(Site(cluster, where))
    return cluster


def make_namespace(cluster: Cluster, stem: str, run: str) -> str:
    """A namespace of ours, that can be used; its name."""
    name = f"{stem}-{secrets.token_hex(3)}"
    labels = {LABEL_RUN: run, "app.kubernetes.io/managed-by": "muster"}
    namespaces.make(cluster.kube, name, labels)
    return name


def remove_namespace(cluster: Cluster, name: str) -> None:
    """Delete it, and wait until its pods are gone; by force, if they do not go."""
    cluster.kube.delete(NAMESPACES, name)
    try:
        namespaces.empty(cluster.kube, name)
    except WaitTimeout:
        raise
    except ClusterError:  # the API server is away
        return
