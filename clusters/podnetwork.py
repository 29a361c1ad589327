"""The pod network of a kind cluster, without a CNI daemon.

Each node gets a static CNI configuration (ptp, host-local, portmap) with its own pod CIDR, and a
route to every other node's. Nothing runs for it, so nothing of it can fail or use CPU. Routes
live in a node's network namespace and are gone when its container restarts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial

from clusters.errors import CommandError
from clusters.kube import NODES, Kube, Object, until_true

#: runs a shell script on a node (by name) and returns what it printed
NodeShell = Callable[[str, str], str]

CONFIG = "/etc/cni/net.d/10-muster.conflist"


def cni_config(pod_cidr: str) -> str:
    """The CNI configuration of a node with *pod_cidr*."""
    ptp = {
        "type": "ptp",
        "ipMasq": False,
        "mtu": 1500,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni-ipam-state",
            "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[{"subnet": pod_cidr}]],
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    config = {"cniVersion": "0.3.1", "name": "muster", "plugins": [ptp, portmap]}
    return json.dumps(config, indent=1)


def pod_cidrs(kube: Kube, nodes: int, *, deadline: float = 60.0) -> dict[str, str]:
    """Node name -> pod CIDR, once the controller manager gave one to each of *nodes* nodes."""

    def all_there(items: list[Object]) -> dict[str, str] | None:
        found = {i["metadata"]["name"]: i["spec"].get("podCIDR") for i in items}
        return found if len(found) == nodes and all(found.values()) else None

    return kube.wait(NODES, all_there, deadline=deadline, why="a pod CIDR for every node")


def proxy_ready(shell: NodeShell, node: str) -> bool:
    """Whether kube-proxy on *node* has its rules for the API server's service."""
    try:
        shell(node, "iptables-save -t nat | grep -q default/kubernetes:https")
    except CommandError:
        return False
    return True


def disconnect(shell: NodeShell, node: str) -> None:
    """Take the CNI configuration away: the node starts no pod until :func:`connect`.

    A pod that asks for a service before kube-proxy has its rules sends its first packet astray,
    and the connection tracking repeats that for all that follow: 30 s and more are lost.
    """
    shell(node, f"rm -f {CONFIG}")


def connect(
    shell: NodeShell, addresses: Mapping[str, str], cidrs: Mapping[str, str], node: str
) -> None:
    """Write *node*'s routes to the other nodes' pods and its CNI configuration.

    Waits for kube-proxy first, for the reason that :func:`disconnect` gives.

    Args:
        addresses: node name -> the node's address in the cluster's Docker network.
        cidrs: node name -> its pod CIDR.

    Raises:
        ClusterError: kube-proxy did not come up.
    """
    until_true(
        partial(proxy_ready, shell, node),
        deadline=60,
        why=f"kube-proxy's rules on {node}",
        every=0.2,
    )
    routes = "; ".join(
        f"ip route replace {cidr} via {addresses[other]}"
        for other, cidr in cidrs.items()
        if other != node
    )
    config = cni_config(cidrs[node])
    shell(
        node,
        f"set -e; {routes or ':'}; mkdir -p /etc/cni/net.d; cat > {CONFIG}.partial <<'EOF'\n"
        f"{config}\nEOF\nmv {CONFIG}.partial {CONFIG}",
    )


#: a DNS query for kube-dns.kube-system.svc.cluster.local (type A), as a shell's printf takes it;
#: no byte of it is a newline, since bash would send what stands before one as a datagram of its own
_QUERY = (
    r"\x4d\x55\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
    r"\x08kube-dns\x0bkube-system\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01"
)


def dns_answers(shell: NodeShell, node: str, server: str) -> bool:
    """Whether the cluster's DNS *server* answers with an address, asked from *node*.

    bash speaks UDP by itself, so the node needs no DNS tool.
    """
    script = (
        f"exec 3<>/dev/udp/{server}/53; printf '{_QUERY}' >&3; "
        "timeout 1 dd bs=512 count=1 <&3 2>/dev/null | od -An -tu1 -N8"
    )
    try:
        answer = shell(node, script).split()
    except CommandError:
        return False
    # header: id id flags rcode . . answers answers
    return len(answer) == 8 and int(answer[3]) & 0x0F == 0 and int(answer[7]) > 0
