"""Nodes and the network between them and their pods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from chaos import undo
from chaos.errors import NotMended, NotProven
from chaos.faults import gpus, nodes
from chaos.faults.base import Planned
from chaos.faults.late import UNIT, Relayed, late
from chaos.faults.network import Cut, node_end, pod_end
from chaos.faults.slow import Slow
from chaos.injecting import Injector
from chaos.site import Site
from clusters.kube import NODES, PODS, Kube, Object, conditions

pytestmark = pytest.mark.faults

#: milliseconds; after RESENT, TCP has sent its first packet again: the first one was lost
DELAY, RESENT = 200, 1000

Pods = Callable[..., list[Object]]


@pytest.fixture
def workers(site: Site) -> list[str]:
    """Names of the worker nodes."""
    return sorted(n for n in site.cluster.container_names if "worker" in n)


def test_a_node_is_off_and_comes_back(site: Site, inject: Injector, workers: list[str]) -> None:
    proof = inject(nodes.StopNode(site, workers[1]))
    assert "not running" in proof.evidence["a command on the node"]


@pytest.mark.parametrize("noticed", [False, True])
def test_a_kubelet_is_stopped(
    site: Site, inject: Injector, workers: list[str], noticed: bool
) -> None:
    proof = inject(nodes.StopKubelet(site, workers[1], noticed=noticed))
    assert proof.evidence["kubelet"] == "inactive"
    assert proof.evidence.get("Ready") == ("Unknown" if noticed else None)


def test_cordon(site: Site, kube: Kube, inject: Injector, workers: list[str]) -> None:
    inject(nodes.Cordon(site, workers[0]))
    found = kube.get(NODES, workers[0])
    assert found is not None
    assert found["spec"]["unschedulable"]


def test_a_drain_evicts(
    site: Site, kube: Kube, space: str, inject: Injector, pods: Pods, workers: list[str]
) -> None:
    pods("p", 2, node=workers[0])
    proof = inject(nodes.Drain(site, workers[0], namespaces=[space]))
    assert proof.evidence["evicted"] == f"{space}/p-0, {space}/p-1"
    assert kube.find(PODS, space) == []


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint(
    site: Site, kube: Kube, space: str, inject: Injector, pods: Pods, workers: list[str],
    effect: str,
) -> None:  # fmt: skip
    pods("p", 1, node=workers[0])
    inject(nodes.Taint(site, workers[0], effect))
    if effect == "NoExecute":
        kube.wait(
            PODS, lambda found: None if found else True, namespace=space, deadline=30,
            why="the pod is ended",
        )  # fmt: skip


def test_gpus_are_taken(site: Site, kube: Kube, inject: Injector, workers: list[str]) -> None:
    proof = inject(gpus.TakeGpus(site, workers[0], left=1))
    assert proof.evidence == {"GPUs before": "4", "GPUs now": "1"}


# network -----------------------------------------------------------------------------------


def reaches(kube: Kube, space: str, source: str, target: str) -> bool:
    """Whether a datagram's sender learns of a closed port: it went there, and the answer back."""
    found = kube.get(PODS, target, space)
    assert found is not None
    script = f"exec 3<>/dev/tcp/{found['status']['podIP']}/9 && echo open"
    done = kube.exec(space, source, ["timeout", "3", "bash", "-c", script])
    return "refused" in done.stderr or "open" in done.stdout


def beat(kube: Kube, space: str, source: str, target: str, *, size: int = 2) -> None:
    """Let a pod send *size* bytes to another one, five times a second."""
    found = kube.get(PODS, target, space)
    assert found is not None
    put = f"head -c {size} /dev/zero >/dev/udp/{found['status']['podIP']}/9"
    send = f"while :; do {put}; sleep 0.2; done"
    kube.exec(space, source, ["bash", "-c", f"({send}) </dev/null &>/dev/null &"])


def unproven(inject: Injector, fault: Planned, why: str) -> None:
    """The fault is injected, and nothing proves it within 2 s."""
    fault.proof = partial(fault.proof, deadline=2)  # type: ignore[method-assign]
    with pytest.raises(NotProven, match=why):
        inject(fault)


def connecting(kube: Kube, space: str) -> float:
    """Milliseconds until p-1 refuses a connection of p-0: one packet there, one back."""
    found = kube.get(PODS, "p-1", space)
    assert found is not None
    dial = f"echo $EPOCHREALTIME; echo x 2>/dev/null >/dev/tcp/{found['status']['podIP']}/9"
    said = kube.exec(space, "p-0", ["bash", "-c", f"{dial}; echo $EPOCHREALTIME"])
    began, ended = map(float, said.stdout.split())
    return (ended - began) * 1000


@pytest.mark.parametrize("same", [False, True])
def test_two_pods_are_cut_off_from_each_other(
    site: Site, kube: Kube, space: str, inject: Injector, pods: Pods, workers: list[str],
    same: bool,
) -> None:  # fmt: skip
    pods("a", 1, node=workers[0])
    pods("b", 1, node=workers[0 if same else 1])
    pods("c", 1, node=workers[1])
    assert reaches(kube, space, "a-0", "b-0")
    beat(kube, space, "a-0", "b-0")
    fault = Cut(site, pod_end(site, space, "a-0"), pod_end(site, space, "b-0"))
    proof = inject(fault)
    assert int(proof.evidence["packets dropped"]) > 0
    assert not reaches(kube, space, "a-0", "b-0")
    assert not reaches(kube, space, "b-0", "a-0")
    assert reaches(kube, space, "a-0", "c-0"), "others are reached"
    inject.recover(fault)
    assert reaches(kube, space, "a-0", "b-0")


def test_pods_that_do_not_talk_are_not_proven_to_be_cut(
    site: Site, space: str, inject: Injector, pods: Pods
) -> None:
    pods("p", 2)
    fault = Cut(site, pod_end(site, space, "p-0"), pod_end(site, space, "p-1"))
    unproven(inject, fault, "nothing was dropped")


def test_some_packets_are_lost(
    site: Site, kube: Kube, space: str, inject: Injector, pods: Pods
) -> None:
    pods("p", 2)
    beat(kube, space, "p-0", "p-1")
    ends = pod_end(site, space, "p-0"), pod_end(site, space, "p-1")
    proof = inject(Cut(site, *ends, loss=0.5))
    assert int(proof.evidence["packets dropped"]) > 0


def test_two_nodes_are_cut_off_from_each_other(
    site: Site, kube: Kube, space: str, inject: Injector, pods: Pods, workers: list[str]
) -> None:
    pods("a", 1, node=workers[0])
    pods("b", 1, node=workers[1])
    beat(kube, space, "a-0", "b-0")
    inject(Cut(site, node_end(site, workers[0]), node_end(site, workers[1])))
    assert not reaches(kube, space, "a-0", "b-0")


def test_a_node_without_its_control_plane_is_lost(
    site: Site, kube: Kube, inject: Injector, workers: list[str]
) -> None:
    plane = site.control_plane()
    proof = inject(Cut(site, node_end(site, workers[1]), node_end(site, plane)))
    assert int(proof.evidence["packets dropped"]) > 0
    kube.wait(
        NODES,
        lambda found: True if found and conditions(found[0])["Ready"] != "True" else None,
        fields=f"metadata.name={workers[1]}", deadline=90, why="the node seen as not Ready",
    )  # fmt: skip


def test_packets_wait_for_their_turn(
    site: Site, kube: Kube, space: str, inject: Injector, pods: Pods
) -> None:
    pods("p", 2)
    beat(kube, space, "p-0", "p-1", size=20_000)
    assert "tbf" in inject(Slow(site, space, "p-1", rate_kbit=64)).evidence["queue"]


def test_who_waits_for_nothing_is_not_proven_to_be_slow(
    site: Site, space: str, inject: Injector, pods: Pods
) -> None:
    pods("p", 1)
    fault = Slow(site, space, "p-0", rate_kbit=64)
    unproven(inject, fault, "waited for their turn")


def test_each_packet_comes_late(
    site: Site, kube: Kube, space: str, inject: Injector, pods: Pods
) -> None:
    """By netem, or by the relay: a connection takes as much longer as the fault says."""
    pods("p", 2)
    before = connecting(kube, space)
    evidence = inject(late(site, space, "p-1", DELAY)).evidence
    during = connecting(kube, space)
    assert before < DELAY <= during < RESENT, evidence


def test_a_relay_that_dies_lets_packets_go_directly(
    site: Site, kube: Kube, space: str, pods: Pods
) -> None:
    """And whoever waits for the end of the test is told that the fault did not last."""
    pods("p", 2)
    injector = Injector(site)
    injector(Relayed(site, space, "p-1", DELAY))
    assert DELAY <= connecting(kube, space) < RESENT
    site.on(site.pod(space, "p-1")["spec"]["nodeName"], f"systemctl kill -s KILL '{UNIT}*'")
    assert connecting(kube, space) < DELAY
    with pytest.raises(NotMended, match="for a while only"):
        injector.close()


@pytest.mark.parametrize("gone", [False, True])
def test_the_next_one_mends_a_delay(
    site: Site, kube: Kube, space: str, pods: Pods, gone: bool
) -> None:
    """Also of a pod that is gone by then."""
    pods("p", 2)
    injector = Injector(site)
    injector(Relayed(site, space, "p-1", DELAY))
    assert DELAY <= connecting(kube, space) < RESENT
    if gone:
        kube.delete(PODS, "p-1", space, grace=0)
    assert undo.mend(site, everything=True)
    if not gone:
        assert connecting(kube, space) < DELAY
    with pytest.raises(NotMended, match="for a while only"):
        injector.close()
