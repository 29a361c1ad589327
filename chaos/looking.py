"""What a cluster is like: compared before a fault and after, nothing may be different.

Only what faults change: nodes, their GPUs, routes, rules, queues and delays, stopped processes,
kubelets, what the harness left running on them, and the systems under test.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from chaos.faults import late, network
from chaos.proxy import UNIT
from chaos.site import Site
from chaos.undo.journal import Journal
from clusters import fakegpus
from clusters.cluster import Capability
from clusters.errors import ClusterError
from clusters.kube import DEPLOYMENTS, NODES, Object, conditions
from fixtures.systems.manifests import SYSTEM
from oracles.errors import HarnessError

_SCRIPT = rf"""
echo "routes: $(ip -4 route | grep -v ' dev veth' | sort | tr '\n' ';')"
echo "rules: $({{ iptables-save; ip6tables-save; }} |
    grep -o '{network.MARK}[0-9a-f]\{{8\}}' | sort -u | tr '\n' ' ')"
echo "queues: $(tc qdisc | grep -E 'tbf|netem' | tr '\n' ';')"
echo "delays: $({{ ip rule | grep '^{late.PRIORITY}:';
    ip -o link | grep -o ' late-[0-9a-f]*';
    systemctl list-units --all --no-legend '{late.UNIT}*'; }} | tr '\n' ';')"
echo "stopped: $(for f in /proc/[0-9]*/stat; do
    sed 's/^\([0-9]*\) .*) \(.\) .*/\2 \1/' "$f" 2>/dev/null; done | grep '^T' | tr '\n' ' ')"
echo "kubelet: $(systemctl is-active kubelet)"
echo "proxy: $(systemctl is-active {UNIT})"
"""

State = dict[str, str]


def look(site: Site) -> State:
    """What it is like now: ``NODE: what`` -> value.

    Raises:
        HarnessError: the API server does not answer.
    """
    found: State = {}
    nodes = site.kube.find(NODES)
    for node in nodes:
        found |= _of_node(node)
    if Capability.NODE_EXEC in site.cluster.capabilities:
        names = [node["metadata"]["name"] for node in nodes]
        with ThreadPoolExecutor(max(1, len(names))) as pool:
            for name, lines in zip(
                names, pool.map(lambda n: _on_node(site, n), names), strict=True
            ):
                found |= {f"{name}: {key}": value for key, value in lines.items()}
    for item in site.kube.find(DEPLOYMENTS, labels=SYSTEM):
        name = f"{item['metadata'].get('namespace')}/{item['metadata']['name']}"
        wanted = item["spec"].get("replicas", 1)
        found[f"{name}: replicas"] = f"{item['status'].get('readyReplicas', 0)} of {wanted} ready"
        containers = item["spec"]["template"]["spec"]["containers"]
        found[f"{name}: container"] = "; ".join(
            f"{c['image']} {' '.join(c.get('args') or [])}"
            + "".join(f" {e['name']}={e.get('value')}" for e in c.get("env") or [])
            for c in containers
        )
    entries = Journal(site).entries()
    found["faults in force"] = ", ".join(entry.fault for entry in entries if not entry.namespace)
    # a job that was scaled, for instance: no trouble of the cluster's
    within = (f"{entry.namespace}: {entry.fault}" for entry in entries if entry.namespace)
    found["faults within namespaces"] = ", ".join(within)
    return found


def differences(before: State, after: State) -> list[str]:
    """What is different, one line each."""
    return [
        f"{key}: {before.get(key, '(none)')!r} became {after.get(key, '(none)')!r}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key, "") != after.get(key, "")
    ]


def troubles(site: Site) -> list[str]:
    """What is wrong with a cluster that should be whole, one line each."""
    try:
        now = look(site)
    except HarnessError as error:
        return [f"the API server does not answer: {str(error).partition(chr(10))[0]}"]
    return list(_wrong(now))


def _wrong(now: State) -> Iterable[str]:
    for key, value in sorted(now.items()):
        what = key.rpartition(": ")[2]
        if (what == "Ready" and value != "True") or (what == "kubelet" and value != "active"):
            yield f"{key} is {value or 'nothing'}"
        elif what in ("rules", "queues", "delays", "stopped", "faults in force") and value.strip():
            yield f"{key}: {value}"
        elif what == "unschedulable" and value == "True":
            yield f"{key.rpartition(': ')[0]} is cordoned"
        elif (what == "taints" and "muster.dev/" in value) or (
            what == "replicas" and value.partition(" of ")[0] != value.split()[2]
        ):
            yield f"{key}: {value}"


def _of_node(node: Object) -> State:
    name = node["metadata"]["name"]
    labels = node["metadata"].get("labels") or {}
    taints = sorted(
        f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in node["spec"].get("taints") or []
    )
    return {
        f"{name}: Ready": conditions(node).get("Ready", ""),
        f"{name}: unschedulable": str(bool(node["spec"].get("unschedulable"))),
        f"{name}: taints": ", ".join(taints),
        f"{name}: GPUs": str(fakegpus.allocatable(node)),
        f"{name}: GPU labels": ", ".join(
            f"{key}={value}" for key, value in sorted(labels.items())
            if key.startswith("nvidia.com/") or key == "gpu"
        ),
    }  # fmt: skip


def _on_node(site: Site, node: str) -> State:
    try:
        text = site.on(node, _SCRIPT)
    except ClusterError as error:
        return {"on": f"no: {error}"}
    except HarnessError as error:
        return {"on": f"no: {str(error).partition(chr(10))[0]}"}
    lines = (line.partition(": ") for line in text.splitlines())
    found = {key: value.strip() for key, sep, value in lines if sep}
    if found.get("proxy") in ("inactive", "failed", "unknown"):
        found["proxy"] = "none"
    return found
