"""The nodes of a kind cluster from creation, or a restart, to readiness."""

from __future__ import annotations

import math
import time
from functools import partial

from clusters import deviceplugin, fakegpus, ledger, podnetwork
from clusters.cluster import Cluster
from clusters.engine import Engine
from clusters.errors import ApiError, ClusterError, CommandError, Unreachable
from clusters.kube import NODES, PODS, SERVICES, Kube, Object, conditions, epoch, until_true
from clusters.parallel import in_parallel
from clusters.progress import step
from clusters.providers import containers
from clusters.providers.containers import PREFIX
from clusters.topology import Node
from clusters.waiting import describe

#: file in a cluster's folder: when its pod network was last made whole, in seconds since 1970
CONNECTED = "connected"


def of(cluster: Cluster) -> dict[str, Node]:
    """Node name -> what the topology says of it."""
    return fakegpus.node_names(PREFIX + cluster.name, cluster.topology)


def shell(docker: Engine, node: str, script: str) -> str:
    """Run a shell script on a node; its output."""
    return docker.docker("exec", node, "bash", "-c", script, timeout=30)


def connect(docker: Engine, cluster: Cluster) -> None:
    """Give every node its part of the pod network.

    Raises:
        ClusterError: no pod CIDRs, or no kube-proxy.
    """
    now = time.time()
    names = list(cluster.container_names)
    cidrs = podnetwork.pod_cidrs(cluster.kube, len(names))
    addresses = containers.addresses(docker, names)
    in_parallel(partial(podnetwork.connect, partial(shell, docker), addresses, cidrs), names)
    (ledger.folder(cluster.name) / CONNECTED).write_text(str(now))


def start_gpus(docker: Engine, cluster: Cluster) -> None:
    """Start what gives GPUs out where that is a device plugin; it stays with its node.

    Raises:
        PartError, CommandError: it does not start.
    """
    if deviceplugin.used(cluster):
        gpus = {name: node.gpus for name, node in of(cluster).items() if node.gpus}
        deviceplugin.start(cluster, partial(shell, docker), gpus)


def restore_gpus(cluster: Cluster) -> None:
    """Give every node its GPUs and labels again, as :func:`fakegpus.restore` does."""
    nodes = of(cluster)
    fakegpus.restore(cluster.kube, nodes, deviceplugin.offers(cluster, nodes))


def heal(docker: Engine, cluster: Cluster) -> None:
    """Restore what is lost when the nodes were restarted by others: the engine, or the host's boot.

    Raises:
        ClusterError: nodes are stopped, or do not come back.
    """
    started = containers.started(docker, cluster.container_names)
    stopped = sorted(name for name, when in started.items() if when is None)
    if stopped:
        raise ClusterError(
            f"nodes of cluster {cluster.name} are stopped: {', '.join(stopped)}",
            hint=f"docker start {' '.join(stopped)}, or python -m clusters down {cluster.name}",
        )
    try:
        connected = float((ledger.folder(cluster.name) / CONNECTED).read_text())
    except (OSError, ValueError):
        connected = 0.0
    if all(when is not None and when <= connected for when in started.values()):
        return
    with step(f"restore cluster {cluster.name}, whose nodes were restarted"):
        until_true(cluster.kube.ready, deadline=120, why="its API server ready")
        connect(docker, cluster)
        wait_ready(cluster)
        restore_gpus(cluster)
        wait_dns(docker, cluster)


def wait_ready(cluster: Cluster) -> None:
    """Wait until all nodes are Ready. Raises WaitTimeout."""
    count = len(cluster.container_names)

    def ready(items: list[Object]) -> bool | None:
        up = [i for i in items if conditions(i).get("Ready") == "True"]
        return True if len(up) == count else None

    cluster.kube.wait(NODES, ready, deadline=90, why="all nodes Ready")


def wait_dns(docker: Engine, cluster: Cluster) -> None:
    """Wait until the cluster's DNS answers on every node. Raises ClusterError."""
    service = cluster.kube.get(SERVICES, "kube-dns", "kube-system")
    if service is None:
        raise ClusterError("the cluster has no DNS service kube-dns in kube-system")
    address = service["spec"]["clusterIP"]

    def wait(node: str) -> None:
        until_true(
            partial(podnetwork.dns_answers, partial(shell, docker), node, address),
            deadline=90, why=f"cluster DNS ({address}) answering on {node}", every=0.3,
        )  # fmt: skip

    try:
        in_parallel(wait, cluster.container_names)
    except ClusterError as error:
        raise ClusterError(f"{error}; {_dns_state(cluster.kube)}") from error


def _dns_state(kube: Kube) -> str:
    """The DNS server's pods, and the end of what they logged."""
    try:
        pods = kube.find(PODS, "kube-system", labels="k8s-app=kube-dns")
        text = f"its pods: {describe(pods)}"
        for pod in pods:
            name = pod["metadata"]["name"]
            log = kube.logs("kube-system", name, tail=5).strip()
            text += "".join(f"\n  | {name}: {line}" for line in log.splitlines())
    except ClusterError as error:
        return f"its pods cannot be looked at: {str(error).splitlines()[0]}"
    return text


def recover(docker: Engine, cluster: Cluster, node: str, since: float) -> None:
    """Restore what a restart of *node* or its kubelet took away, and wait until all is well.

    Args:
        since: :func:`next_second` of before the kubelet was started again.

    Raises:
        ClusterError: with what did not come back in time.
    """
    until_true(partial(_kubelet_runs, docker, node), deadline=90, why=f"kubelet of {node} running")
    until_true(cluster.kube.ready, deadline=120, why=f"the API server of {cluster.name} ready")
    # Docker gives addresses anew when containers start: every node's routes may have changed
    connect(docker, cluster)
    cluster.kube.wait(
        NODES, partial(ready_since, node, since), deadline=120, why=f"{node} Ready again"
    )
    restore_gpus(cluster)
    until_true(
        partial(_knows_its_pods, cluster.kube, node),
        deadline=60, why=f"the kubelet of {node} knowing its pods",
    )  # fmt: skip
    wait_dns(docker, cluster)


def next_second() -> float:
    """The next full second, once the clock has reached it.

    Heartbeats are written in full seconds: only now can one of before not be taken for a later one.
    """
    second = math.ceil(time.time())
    while (left := second - time.time()) > 0:
        time.sleep(left)
    return float(second)


def ready_since(node: str, since: float, items: list[Object]) -> bool | None:
    """Whether *node* is Ready by a heartbeat sent at or after the full second *since*."""
    for item in items:
        if item["metadata"]["name"] != node:
            continue
        for condition in item["status"].get("conditions") or []:
            if condition["type"] == "Ready" and condition["status"] == "True":
                return True if epoch(condition["lastHeartbeatTime"]) >= since else None
    return None


def _kubelet_runs(docker: Engine, container: str) -> bool:
    try:
        docker.docker("exec", container, "systemctl", "is-active", "--quiet", "kubelet")
    except CommandError:
        return False
    return True


def _knows_its_pods(kube: Kube, node: str) -> bool:
    """Whether the kubelet has heard of every pod on *node*: until then it refuses exec and logs."""
    try:
        answer = kube.request("GET", f"{NODES.path(name=node)}/proxy/pods", timeout=10.0)
        known = {item["metadata"]["uid"] for item in answer["items"] or []}
    except (ApiError, Unreachable):
        return False
    return all(
        item["metadata"]["uid"] in known
        for item in kube.find(PODS, fields=f"spec.nodeName={node}")
        # what the kubelet runs from files has another uid there
        if "kubernetes.io/config.mirror" not in item["metadata"].get("annotations", {})
        and item["status"].get("phase") not in ("Succeeded", "Failed")
    )
