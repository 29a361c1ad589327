"""Packets that come late by a program on the node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import Place

from chaos.errors import FaultError, NotMended, NotProven
from chaos.faults import late
from chaos.faults.late import Relayed
from chaos.faults.slow import Slow
from chaos.injecting import Injector
from chaos.undo.journal import Journal
from chaos.undo.steps import OnNode
from clusters.kube import PODS
from oracles.errors import NotApplicable

POD = {"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}, "status": {"podIP": "10.0.0.5"}}
NODE = {
    "/dev/net/tun": "/dev/net/tun\n",
    "ip -o route": "10.0.0.5 dev veth7 src 10.0.0.1",
    "cat /proc/sys": "0\n",
    "ip neigh": "10.0.0.5 lladdr 02:42:ac:11:00:02 STALE\n",
}


@pytest.fixture
def place(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    program = tmp_path / "relay-0123" / "relay"
    program.parent.mkdir()
    program.touch()
    monkeypatch.setattr(late.gobuild, "build_file", lambda *_: program.parent)
    place.kube.put(PODS, POD, "t")
    place.provider.scripts = dict(NODE)
    return place


COUNTS = json.dumps({"taken": 5, "given": 3, "lost": 0, "least_ms": 100.1, "most_ms": 104.25})


def answers(after: float | None, how: str = "bash: connect: Connection refused") -> str:
    """What the node says when it dialled the pod: an answer after so many milliseconds, or none."""
    if after is None:
        return "1796081329.000000 1796081349.000000 no answer"
    return f"1796081329.000000 {1796081329 + after / 1000:.6f} {how}"


def test_the_kernel_delays_where_it_can(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late.faults, "features", lambda: {"tbf", "statistic"})
    assert isinstance(late.late(place.site, "t", "a", 100), Relayed)
    monkeypatch.setattr(late.faults, "features", lambda: {"tbf", "netem"})
    assert isinstance(late.late(place.site, "t", "a", 100), Slow)
    monkeypatch.setattr(late.faults, "features", lambda: None)
    assert isinstance(late.late(place.site, "t", "a", 100), Relayed), "nobody can say"


def test_packets_are_led_to_the_relay(place: Place) -> None:
    fault = Relayed(place.site, "t", "a", 100)
    fault.inject()
    script = place.provider.calls[-1]
    assert "-out veth7 -mac 02:42:ac:11:00:02 -to 10.0.0.5 -ms 100" in script
    assert "ip rule add pref 90 to 10.0.0.5 lookup" in script
    place.provider.scripts = {"/dev/tcp/10.0.0.5/9": answers(101.5), "cat /run": COUNTS}
    evidence = fault.proof(deadline=0).evidence
    assert evidence["answered after"] == "101.5 ms"
    assert evidence["kept for"] == "100.1 to 104.2 ms"


def test_the_rule_goes_before_the_relay(place: Place) -> None:
    """Otherwise packets are lost between the two."""
    place.provider.scripts["cat /proc/sys"] = "1\n"
    (step,) = Relayed(place.site, "t", "a", 100).plan()
    assert isinstance(step, OnNode)
    assert step.script.index("ip rule del") < step.script.index("systemctl stop")
    assert "echo 1 >/proc/sys/net/ipv4/conf/veth7/rp_filter" in step.script


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (answers(99.0), "answered after 99.0 ms"),
        (answers(1102.0), "answered after 1102.0 ms"),
        (answers(None), "answered after inf ms"),
        (answers(120.0, "bash: connect: No route to host"), "answered after inf ms"),
    ],
    ids=["too soon", "sent again", "never", "by another"],
)
@pytest.mark.parametrize("kind", [Relayed, Slow])
def test_what_is_not_late_is_no_proof(place: Place, kind: type, answer: str, told: str) -> None:
    """A packet that was lost comes late, too: TCP sends it again after a second."""
    fault = kind(place.site, "t", "a", delay_ms=100)
    place.provider.scripts |= {"tc qdisc show": "", "/dev/tcp/10.0.0.5/9": answer}
    fault.inject()
    with pytest.raises(NotProven, match=told):
        fault.proof(deadline=0)


def test_a_relay_that_ends_early_makes_it_unsure(place: Place) -> None:
    injector = Injector(place.site)
    place.provider.scripts |= {"/dev/tcp": answers(101.5), "cat /run": COUNTS}
    injector(Relayed(place.site, "t", "a", 100))
    place.provider.scripts = {"is-active muster": "failed"}
    with pytest.raises(NotMended, match="late for a while only"):
        injector.close()
    assert injector.open == []
    assert Journal(place.site).entries() == [], "all is mended"


def test_a_node_without_tun_devices(place: Place) -> None:
    place.provider.scripts["/dev/net/tun"] = ""
    with pytest.raises(NotApplicable, match="neither netem nor tun"):
        Relayed(place.site, "t", "a", 100).plan()


def test_what_cannot_be_delayed(place: Place) -> None:
    with pytest.raises(FaultError, match="at least 1"):
        Relayed(place.site, "t", "a", 0)
    place.provider.scripts["ip neigh"] = "10.0.0.5 FAILED\n"
    with pytest.raises(FaultError, match="does not know the link address"):
        Relayed(place.site, "t", "a", 100).inject()
    place.provider.scripts["ip -o route"] = "10.0.0.5 dev late-0a1b2c3d table 20001"
    with pytest.raises(FaultError, match="late already"):
        Relayed(place.site, "t", "a", 100).plan()


def test_what_is_left_is_told(place: Place) -> None:
    fault = Relayed(place.site, "t", "a", 100)
    fault.plan()
    place.provider.scripts["ip rule | grep"] = "90: from all to 10.0.0.5 lookup 20001\n"
    with pytest.raises(FaultError, match="still slow"):
        fault.healed()
