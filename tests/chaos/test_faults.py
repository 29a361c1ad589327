"""Each fault: nothing to break is an error, the proof is no guess, and it is undone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from places import MINE, Place

from chaos.errors import FaultError, NotMended, NotProven
from chaos.faults import gpus, network, nodes
from chaos.faults.api import ApiTrouble, ThroughProxy, away, held, refusing, slow, watches_stale
from chaos.faults.clock import ShiftClock
from chaos.faults.control_plane import ApiServerAway, FreezeComponent
from chaos.faults.disk import FillVolume
from chaos.faults.jobs import ScaleJob, SuspendJob
from chaos.faults.network import Cut, End, node_end, pod_end
from chaos.faults.slow import Slow
from chaos.faults.systems import FreezeSystem, KillSystem, TakeSystemAway
from chaos.injecting import Injector
from chaos.proxy import Counts
from chaos.target import Target
from chaos.undo import OnNode
from clusters import deviceplugin
from clusters.cluster import Capability
from clusters.deviceplugin import Offer
from clusters.errors import CommandError, WaitTimeout
from clusters.kube import DEPLOYMENTS, NODES, PODS, PYTORCHJOBS, ExecResult, Object
from clusters.topology import GPU
from oracles.errors import NotApplicable


def node(name: str = "n1", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"podCIDR": "10.244.1.0/24", **spec},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {GPU: "4"},
            "addresses": [{"type": "InternalIP", "address": "172.18.0.3"}],
        },
    }


@pytest.fixture
def site(place: Place) -> Place:
    place.kube.put(NODES, node())
    return place


# nodes -------------------------------------------------------------------------------------


def test_a_node_is_stopped_and_started(site: Place) -> None:
    injector = Injector(site.site)
    fault = nodes.StopNode(site.site, "n1")
    proof = injector(fault)
    assert "not running" in proof.evidence["a command on the node"]
    with pytest.raises(FaultError, match="off already"):
        injector(nodes.StopNode(site.site, "n1"))
    injector.close()
    assert site.provider.calls == ["stop n1", "start n1"]


def test_a_node_that_goes_on_is_no_proof(site: Place) -> None:
    site.provider.stop_node = lambda cluster, name: None  # type: ignore[method-assign]
    with pytest.raises(NotProven, match="but it answers"):
        Injector(site.site)(nodes.StopNode(site.site, "n1"))


def test_no_such_node(place: Place) -> None:
    for fault in (nodes.StopNode, nodes.Cordon, nodes.Taint, gpus.TakeGpus):
        with pytest.raises(FaultError, match="no node n9"):
            Injector(place.site)(fault(place.site, "n9"))


def test_the_kubelet(site: Place) -> None:
    site.provider.scripts = {"is-active": "active\n"}
    injector = Injector(site.site)
    with pytest.raises(NotProven, match="but it is active"):
        injector(nodes.StopKubelet(site.site, "n1"))
    assert site.provider.calls[-1] == "kubelet n1", "it is started again"
    site.provider.scripts = {"is-active": "inactive\n"}
    with pytest.raises(FaultError, match="does not run"):
        injector(nodes.StopKubelet(site.site, "n1"))


def test_cordon(site: Place) -> None:
    injector = Injector(site.site)
    injector(nodes.Cordon(site.site, "n1"))
    assert site.kube.get(NODES, "n1")["spec"]["unschedulable"]
    with pytest.raises(FaultError, match="cordoned already"):
        injector(nodes.Cordon(site.site, "n1"))
    injector.close()
    assert "unschedulable" not in site.kube.get(NODES, "n1")["spec"]


def test_a_taint_goes_and_others_stay(place: Place) -> None:
    master = {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
    place.kube.put(NODES, node(taints=[master]))
    injector = Injector(place.site)
    injector(nodes.Taint(place.site, "n1", "NoExecute"))
    assert [t["effect"] for t in place.kube.get(NODES, "n1")["spec"]["taints"]] == [
        "NoSchedule",
        "NoExecute",
    ]
    injector.close()
    assert place.kube.get(NODES, "n1")["spec"]["taints"] == [master]


def test_gpus_are_taken_and_given_back(site: Place) -> None:
    injector = Injector(site.site)
    proof = injector(gpus.TakeGpus(site.site, "n1", left=1))
    assert proof.evidence == {"GPUs before": "4", "GPUs now": "1"}
    with pytest.raises(FaultError, match="has 1 GPUs"):
        injector(gpus.TakeGpus(site.site, "n1", left=1))
    injector.close()
    assert site.kube.get(NODES, "n1")["status"]["allocatable"] == {GPU: "4"}


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A site whose node has a device plugin of four GPUs, of which its kubelet tells nothing."""
    monkeypatch.setattr(deviceplugin.parts, "program", lambda name: tmp_path)
    (tmp_path / deviceplugin.PROGRAM).touch()
    place = Place(tmp_path, capabilities=MINE | {Capability.DEVICE_PLUGIN})
    topology = place.site.cluster.topology.in_mode("device-plugin")
    object.__setattr__(place.site.cluster, "topology", topology)
    place.kube.put(NODES, node())
    deviceplugin.start(place.site.cluster, lambda *_: "", {"n1": 4})
    return place


def _kubelet_tells(place: Place) -> None:
    told = deviceplugin.offer(place.site.cluster, "n1")
    status = place.kube.objects[("nodes", "", "n1")]["status"]
    status |= {"capacity": {GPU: str(told.count)}, "allocatable": {GPU: str(told.healthy)}}


@pytest.fixture
def telling(plugged: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same, and its kubelet tells of each change."""
    change = deviceplugin.change

    def and_tell(*args: Any) -> None:
        change(*args)
        _kubelet_tells(plugged)

    monkeypatch.setattr(deviceplugin, "change", and_tell)
    _kubelet_tells(plugged)
    return plugged


def test_gpus_of_a_plugin_are_taken_and_given_back(telling: Place) -> None:
    cluster, injector = telling.site.cluster, Injector(telling.site)
    deviceplugin.change(cluster, "n1", Offer(4, (3,)))
    proof = injector(gpus.TakeGpus(telling.site, "n1", left=1))
    assert proof.evidence == {"GPUs before": "3", "GPUs now": "1"}
    assert deviceplugin.offer(cluster, "n1") == Offer(1)
    assert not any("nodes/n1 status" in call for call in telling.kube.calls), "the kubelet's alone"
    injector.close()
    assert deviceplugin.offer(cluster, "n1") == Offer(4, (3,)), "the ill one is ill again"


def test_gpus_that_a_kubelet_does_not_take_away_are_no_proof(plugged: Place) -> None:
    """Their node goes on to show them; what the plugin was told is undone."""
    with pytest.raises(NotProven, match="with 0 GPUs"):
        Injector(plugged.site)(gpus.TakeGpus(plugged.site, "n1"))
    assert deviceplugin.offer(plugged.site.cluster, "n1") == Offer(4)


def test_gpus_fall_ill_and_get_well(telling: Place) -> None:
    cluster, injector = telling.site.cluster, Injector(telling.site)
    proof = injector(gpus.SickenGpus(telling.site, "n1", which=(0, 2)))
    assert proof.evidence == {
        "capacity": "4", "allocatable before": "4", "allocatable now": "2",
    }  # fmt: skip
    assert deviceplugin.offer(cluster, "n1") == Offer(4, (0, 2))
    for index in (2, 4, -1):
        with pytest.raises(FaultError, match=f"no GPU {index} that is well"):
            injector(gpus.SickenGpus(telling.site, "n1", which=(index,)))
    injector.close()
    assert deviceplugin.offer(cluster, "n1") == Offer(4)


@pytest.mark.parametrize("gone", ["the node", "its kubelet"])
@pytest.mark.parametrize("kind", [gpus.TakeGpus, gpus.SickenGpus])
def test_nobody_tells_of_gpus_while_a_node_or_its_kubelet_is_off(
    telling: Place, monkeypatch: pytest.MonkeyPatch, kind: Any, gone: str
) -> None:
    """They are offered again, and who starts the node waits for them."""
    injector = Injector(telling.site)
    injector(kind(telling.site, "n1"))
    monkeypatch.undo()  # nobody tells of a change any more
    if gone == "the node":
        telling.provider.stop_node(telling.site.cluster, "n1")
    else:
        telling.provider.scripts = {"is-active": "inactive\n"}
    injector.close()
    assert deviceplugin.offer(telling.site.cluster, "n1") == Offer(4)


def test_a_kubelet_that_works_has_to_tell_of_gpus(
    telling: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    injector = Injector(telling.site)
    injector(gpus.TakeGpus(telling.site, "n1"))
    monkeypatch.undo()
    telling.provider.scripts = {"is-active": "active\n"}
    with pytest.raises(NotMended, match="with 4 GPUs again"):
        injector.close()


def test_only_a_plugin_has_ill_gpus(site: Place) -> None:
    with pytest.raises(NotApplicable, match="by a device plugin"):
        gpus.SickenGpus(site.site, "n1")


def test_a_drain_of_nobody_is_no_drain(site: Place) -> None:
    with pytest.raises(FaultError, match="no pod on n1"):
        Injector(site.site)(nodes.Drain(site.site, "n1", namespaces=["t"]))
    assert "unschedulable" not in site.kube.get(NODES, "n1")["spec"]


def test_a_node_that_is_slow_is_not_taken_for_one_that_is_off(place: Place) -> None:
    """Else what is to be undone on it would be taken for gone with its power."""
    place.provider.scripts = {"": CommandError("docker exec n1: no end after 30 s")}
    with pytest.raises(CommandError, match="no end after"):
        OnNode(node="n1", script="kill -CONT 7").run(place.site)


# network -----------------------------------------------------------------------------------

A, B = End("pod t/a", "n1", ("10.244.1.5",)), End("pod t/b", "n2", ("10.244.2.7",))


def counted(fault: Cut, packets: int, rules: int | None = None) -> str:
    lines = fault.rules() if rules is None else fault.rules()[:rules]
    return "".join(f"[{packets}:0] -A FORWARD --comment {fault.mark} -j DROP\n" for _ in lines)


def test_both_ways_are_cut(place: Place) -> None:
    fault = Cut(place.site, A, B)
    assert [rule.split(" -m ")[0] for rule in fault.rules()] == [
        "iptables -w 5 -I FORWARD -s 10.244.1.5 -d 10.244.2.7",
        "iptables -w 5 -I FORWARD -s 10.244.2.7 -d 10.244.1.5",
    ]
    assert fault.namespace == "t"


def test_a_node_is_cut_from_its_pods_too(site: Place) -> None:
    site.kube.put(NODES, node("n2"))
    site.provider.scripts = {"ip -o -6": "fc00::5\n"}
    fault = Cut(site.site, node_end(site.site, "n1"), node_end(site.site, "n2"))
    rules = fault.rules()
    assert len([rule for rule in rules if rule.startswith("iptables ")]) == 3 * 2 * 4
    assert len([rule for rule in rules if rule.startswith("ip6tables ")]) == 3 * 2
    assert fault.namespace == ""


def test_dropped_packets_are_the_proof(place: Place) -> None:
    fault = Cut(place.site, A, B, loss=0.25)
    assert "--probability 0.2500" in fault.rules()[0]
    place.provider.scripts = {"-save -c": counted(fault, 0)}
    with pytest.raises(NotProven, match="nothing was dropped"):
        fault.proof(deadline=0)
    place.provider.scripts = {"-save -c": counted(fault, 3)}
    assert fault.proof(deadline=0).evidence["packets dropped"] == "6"
    place.provider.scripts = {"-save -c": counted(fault, 3, rules=1)}
    with pytest.raises(NotProven, match="1 of 2 rules"):
        fault.proof(deadline=0)


def test_rules_that_stay_are_said(place: Place) -> None:
    fault = Cut(place.site, A, B)
    fault.inject()
    place.provider.scripts = {"-save -c": counted(fault, 3)}
    with pytest.raises(FaultError, match="still on n1"):
        fault.recover()


def test_the_script_that_removes_rules_finds_them_by_their_mark() -> None:
    saved = (
        "*filter\n"
        "-A FORWARD -s 10.0.0.1/32 -d 10.0.0.2/32 -m comment --comment muster-0a1b2c3d -j DROP\n"
        '-A FORWARD -m comment --comment "muster-0a1b2c3d" -j DROP\n'
        '-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD\n'
        "-A FORWARD -m comment --comment muster-ffffffff -j DROP\n"
    )
    script = f"""iptables-save() {{ cat <<'X'\n{saved}X\n}}
    ip6tables-save() {{ :; }}
    """ + network.remove_rules("muster-0a1b2c3d").replace("xargs $tool", "xargs echo")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "-w 5 -t filter -D FORWARD -s 10.0.0.1/32 -d 10.0.0.2/32 -m comment --comment"
        " muster-0a1b2c3d -j DROP",
        "-w 5 -t filter -D FORWARD -m comment --comment muster-0a1b2c3d -j DROP",
    ], done.stderr
    assert list(network.marks(saved)) == ["muster-0a1b2c3d", "muster-ffffffff"]


def test_a_pod_without_an_address_cannot_be_cut(place: Place) -> None:
    place.kube.put(PODS, {"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}}, "t")
    with pytest.raises(FaultError, match="no address yet"):
        pod_end(place.site, "t", "a")


def test_a_slow_link(place: Place) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}, "status": {"podIP": "10.0.0.5"}}
    place.kube.put(PODS, pod, "t")
    place.provider.scripts = {"ip -o route": "10.0.0.5 dev veth7 src 10.0.0.1", "tc qdisc show": ""}
    fault = Slow(place.site, "t", "a", rate_kbit=64)
    fault.inject()
    assert "dev veth7 root tbf rate 64kbit" in place.provider.calls[-1]
    place.provider.scripts = {"tc -s": "qdisc tbf 8001: root\n Sent 900 bytes 3 pkt (overlimits 0)"}
    with pytest.raises(NotProven, match="waited for their turn"):
        fault.proof(deadline=0)
    place.provider.scripts = {"tc -s": "qdisc tbf 8001: root\n Sent 900 bytes 3 pkt (overlimits 2)"}
    assert "overlimits 2" in fault.proof(deadline=0).evidence["queue"]
    with pytest.raises(FaultError, match="still slow"):
        fault.healed()


# systems -----------------------------------------------------------------------------------


def deployed(place: Place, name: str, app: str, system: str = "coscheduling") -> None:
    space = "scheduler-plugins"
    labels = {"muster.dev/system": system}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": app}}}
    place.kube.put(DEPLOYMENTS, {"metadata": {"name": name, "labels": labels}, "spec": spec}, space)
    pod = {
        "metadata": {"name": f"{name}-0", "labels": {"app": app}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "i:1"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"name": "main", "state": {"running": {}}, "containerID": f"containerd://{app}"}
            ],
        },
    }
    place.kube.put(PODS, pod, space)


@pytest.fixture
def target(place: Place) -> Target:
    deployed(place, "scheduler-plugins-scheduler", "s")
    deployed(place, "scheduler-plugins-controller", "c")
    return Target("scheduler", "coscheduling", "scheduler-plugins", "scheduler")


def stat(pid: int) -> str:
    return f"{pid} (x) S 1" + " 0" * 17 + f" {pid} 0\tscheduler"


def test_the_scheduler_is_meant_not_its_controller(place: Place, target: Target) -> None:
    names = [pod["metadata"]["name"] for pod in target.pods(place.site)]
    assert names == ["scheduler-plugins-scheduler-0"]


def test_the_clusters_own_scheduler(place: Place) -> None:
    pod = {"metadata": {"name": "ks", "labels": {"component": "kube-scheduler"}}}
    place.kube.put(PODS, pod, "kube-system")
    (found,) = Target("scheduler", "default", "kube-system", "scheduler").pods(place.site)
    assert found["metadata"]["name"] == "ks"
    with pytest.raises(FaultError, match="no pods"):
        Target("operator", "x", "kubeflow").pods(place.site)


def test_a_scheduler_is_frozen(place: Place, target: Target) -> None:
    place.provider.scripts = {"grep -ls 's'": stat(41)}
    fault = FreezeSystem(place.site, target)
    assert fault.pauses == ("scheduler",)
    fault.inject()
    assert "kill -19 41" in place.provider.calls[-1]
    place.provider.scripts = {"echo 41": "41 T"}
    assert fault.proof(deadline=0).what == "coscheduling is frozen"


def test_a_killed_process_that_is_there_is_no_proof(place: Place, target: Target) -> None:
    place.provider.scripts = {"grep -ls 's'": stat(41), "else echo 41 gone": "41 S"}
    fault = KillSystem(place.site, target)
    fault.inject()
    with pytest.raises(NotProven, match="still there"):
        fault.proof(deadline=0)
    place.provider.scripts = {"else echo 41 gone": "41 gone"}
    assert list(fault.proof(deadline=0).evidence.values()) == ["gone"]


def test_a_system_is_back_with_another_container(
    place: Place, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod is Ready for a while after its process was killed: nobody has looked yet."""
    monkeypatch.setattr("chaos.faults.systems.BACK", 0.0)
    place.provider.scripts = {"grep -ls 's'": stat(41)}
    fault = KillSystem(place.site, target)
    fault.inject()
    with pytest.raises(WaitTimeout, match="another container"):
        fault.recover()
    (pod,) = target.pods(place.site)
    pod["status"]["containerStatuses"][0]["containerID"] = "containerd://t2"
    place.kube.put(PODS, pod, "scheduler-plugins")
    fault.recover()


def test_killed_pods(place: Place, target: Target) -> None:
    injector = Injector(place.site)
    fault = KillSystem(place.site, target, "pod")
    proof = injector(fault)
    assert list(proof.evidence) == ["pod scheduler-plugins-scheduler-0"]
    deployed(place, "another", "s")
    injector.close()


def test_a_system_is_away_until_it_is_back(place: Place, target: Target) -> None:
    injector = Injector(place.site)
    injector(TakeSystemAway(place.site, target))
    key = ("deployments", "scheduler-plugins", "scheduler-plugins-scheduler")
    assert place.kube.objects[key]["spec"]["replicas"] == 0
    deployed(place, "other", "s")
    injector.close()
    assert place.kube.objects[key]["spec"]["replicas"] == 1


# the control plane -------------------------------------------------------------------------


@pytest.fixture
def plane(place: Place) -> Place:
    item = node("cp")
    item["metadata"]["labels"] = {"node-role.kubernetes.io/control-plane": ""}
    place.kube.put(NODES, item)
    return place


def test_the_api_server_is_away(plane: Place) -> None:
    fault = ApiServerAway(plane.site)
    fault.inject()
    assert "--reject-with tcp-reset" in plane.provider.calls[-1]
    assert "! -s $(ip -4 route" in plane.provider.calls[-1]
    plane.provider.scripts = {
        "-save -c": f"[4:0] -A INPUT --comment {fault.mark} -j REJECT\n",
    }
    with pytest.raises(NotProven, match="answers its own node"):
        fault.proof(deadline=0)
    plane.provider.scripts["curl"] = CommandError("exit code 7")
    assert fault.proof(deadline=0).evidence["packets refused"] == "4"


def test_an_api_server_that_is_away_cannot_be_taken_away(plane: Place) -> None:
    plane.provider.scripts = {"curl": CommandError("exit code 7")}
    with pytest.raises(FaultError, match="does not answer already"):
        ApiServerAway(plane.site).inject()


def test_no_control_plane_to_be_seen(place: Place) -> None:
    with pytest.raises(NotApplicable, match="control plane"):
        FreezeComponent(place.site, "etcd").inject()


# the proxy ---------------------------------------------------------------------------------


class Proxy:
    node = "cp"

    def __init__(self, acted: int) -> None:
        self.acted = acted
        self.rules: list[str] = []
        self.watches = [3]  # now, and at each later look

    def stats(self) -> dict[str, int]:
        return {"requests": 0, "watches": self.watches.pop(0) if self.watches[1:] else 3}

    def running(self) -> bool:
        return True

    def add(self, rule: Any) -> None:
        self.rules.append(rule.id)

    def takes_back(self, rule: str) -> OnNode:
        return OnNode(node="cp", script=f"remove {rule}")

    def ends(self) -> OnNode:
        return OnNode(node="cp", script="end")

    def wait(self, rule: str, acted: int, *, deadline: float) -> Counts:
        return Counts(self.acted, self.acted, 0, 0)


def route(plane: Place, acted: int) -> ThroughProxy:
    found = ThroughProxy(
        plane.site, Target("operator", "o", "kubeflow"), operator="o", scheduler="s"
    )
    found.proxy = Proxy(acted)  # type: ignore[assignment]
    return found


def test_a_rule_that_acted_is_proven_and_taken_back(plane: Place) -> None:
    way = route(plane, acted=2)
    injector = Injector(plane.site)
    fault = ApiTrouble(way, refusing(429))
    assert injector(fault).evidence["acted on"] == "2"
    injector.close()
    assert plane.provider.calls == [f"cp: remove {fault.rule.id}"]


def test_a_rule_that_never_acted_is_not_proven(plane: Place) -> None:
    with pytest.raises(NotProven, match="acted on 0 of 1"):
        Injector(plane.site)(ApiTrouble(route(plane, acted=0), away()))


def test_cut_watches_are_mended_when_they_are_there_again(plane: Place) -> None:
    way = route(plane, acted=1)
    looks = way.proxy.watches = [3, 0, 2]  # type: ignore[attr-defined]
    injector = Injector(plane.site)
    injector(ApiTrouble(way, away()))
    injector.close()
    assert looks == [2], "it looked until there were 3 again"


def test_a_system_that_is_not_there_cannot_go_through_a_proxy(plane: Place) -> None:
    with pytest.raises(FaultError, match="not installed by us"):
        Injector(plane.site)(route(plane, acted=1))


def test_rules_in_words(plane: Place) -> None:
    way = route(plane, acted=1)
    assert ApiTrouble(way, slow(300)).about == "300 ms late"
    assert ApiTrouble(way, refusing(409)).about == "create update patch delete -> 409"
    assert ApiTrouble(way, watches_stale()).about == "watch"
    assert ApiTrouble(way, held("create", "/pods$")).about == "create /pods$"


# jobs, volumes, clocks ---------------------------------------------------------------------


def job(workers: int = 3, **policy: Any) -> Object:
    replicas = {"Worker": {"replicas": workers}}
    return {
        "metadata": {"name": "j"},
        "spec": {"pytorchReplicaSpecs": replicas, "runPolicy": policy},
    }


def test_a_job_is_scaled_and_scaled_back(place: Place) -> None:
    place.kube.put(PYTORCHJOBS, job(), "t")
    fault = ScaleJob(place.site, PYTORCHJOBS, "t", "j", 1)
    fault.inject()
    assert "pytorchjobs/j scale {'spec': {'replicas': 1}}" in place.kube.calls[-1]
    with pytest.raises(NotProven, match="it was written, but"):
        fault.proof(deadline=0)
    fault.recover()
    assert "pytorchjobs/j scale {'spec': {'replicas': 3}}" in place.kube.calls[-1]
    with pytest.raises(FaultError, match="3 workers already"):
        ScaleJob(place.site, PYTORCHJOBS, "t", "j", 3).inject()


def test_a_job_is_suspended_and_resumed(place: Place) -> None:
    place.kube.put(PYTORCHJOBS, job(), "t")
    injector = Injector(place.site)
    injector(SuspendJob(place.site, PYTORCHJOBS, "t", "j"))
    with pytest.raises(FaultError, match="suspended already"):
        injector(SuspendJob(place.site, PYTORCHJOBS, "t", "j"))
    injector.close()
    assert place.kube.get(PYTORCHJOBS, "j", "t")["spec"]["runPolicy"] == {"suspend": False}


def test_there_is_no_such_job(place: Place) -> None:
    with pytest.raises(FaultError, match="no PyTorchJob t/j"):
        SuspendJob(place.site, PYTORCHJOBS, "t", "j").inject()


@pytest.mark.parametrize(
    ("df", "why"),
    [
        ("ext4 8000 4000 /data", "not a volume with a size of its own"),
        ("tmpfs 99999999 400 /data", "over 256"),
        ("overlay 8000 4000 /", "no mount of its own"),
        ("", "no mount of its own"),
    ],
)
def test_only_a_small_volume_of_the_pods_own_is_filled(place: Place, df: str, why: str) -> None:
    place.kube.put(PODS, {"metadata": {"name": "p"}}, "t")
    place.kube.answers = [ExecResult(0, df + "\n", "")]
    with pytest.raises(FaultError, match=why):
        FillVolume(place.site, "t", "p", "main", "/data").inject()
    assert len(place.kube.commands) == 1, "nothing was written"


def test_a_full_volume(place: Place) -> None:
    place.kube.put(PODS, {"metadata": {"name": "p"}, "status": {"phase": "Running"}}, "t")
    ok = ExecResult(0, "", "")
    place.kube.answers = [
        ExecResult(0, "tmpfs 8000 8000 /data\n", ""), ok,
        ExecResult(0, "tmpfs 8000 0 /data\n", ""),
        ExecResult(0, "sh: write error: No space left on device\n", ""), ok,
    ]  # fmt: skip
    injector = Injector(place.site)
    proof = injector(FillVolume(place.site, "t", "p", "main", "/data"))
    assert proof.evidence["free"] == "0 kB"
    injector.close()
    assert place.kube.commands[-1][:3] == ["rm", "-f", "/data/.muster-fill"]


def test_clocks_are_not_shifted(place: Place) -> None:
    with pytest.raises(NotApplicable, match="the kernel's"):
        ShiftClock(place.site, "t", "p", 60)
