"""The pod network: what is written to the nodes, and how DNS is asked."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from clusters import podnetwork
from clusters.errors import ClusterError, CommandError
from clusters.podnetwork import CONFIG


class Shell:
    """Nodes that note the scripts they are given; kube-proxy is up after ``not_yet`` looks."""

    def __init__(self, not_yet: int = 0) -> None:
        self.scripts: list[tuple[str, str]] = []
        self.not_yet = not_yet

    def __call__(self, node: str, script: str) -> str:
        self.scripts.append((node, script))
        if "iptables-save" in script and self.not_yet > 0:
            self.not_yet -= 1
            raise CommandError("exit code 1", code=1)
        return ""


def test_configuration() -> None:
    config = json.loads(podnetwork.cni_config("10.244.3.0/24"))
    assert config["cniVersion"] == "0.3.1"
    ptp, portmap = config["plugins"]
    assert (ptp["type"], portmap["type"]) == ("ptp", "portmap")
    assert ptp["ipam"]["ranges"] == [[{"subnet": "10.244.3.0/24"}]]
    # pods talk to pods of other nodes under their own address
    assert ptp["ipMasq"] is False


CIDRS = {"a": "10.244.0.0/24", "b": "10.244.1.0/24", "c": "10.244.2.0/24"}
ADDRESSES = {"a": "172.18.0.2", "b": "172.18.0.3", "c": "172.18.0.4"}


def test_connect_waits_for_kube_proxy_and_writes_routes_and_configuration() -> None:
    shell = Shell(not_yet=2)
    podnetwork.connect(shell, ADDRESSES, CIDRS, "b")
    assert [node for node, _ in shell.scripts] == ["b"] * 4
    script = shell.scripts[-1][1]
    assert re.findall(r"ip route replace (\S+) via (\S+)", script.replace(";", " ;")) == [
        ("10.244.0.0/24", "172.18.0.2"), ("10.244.2.0/24", "172.18.0.4"),
    ]  # fmt: skip
    # the file appears whole: containerd reads it as soon as it is there
    assert f"mv {CONFIG}.partial {CONFIG}" in script
    written = script.partition("<<'EOF'\n")[2].partition("\nEOF")[0]
    assert json.loads(written) == json.loads(podnetwork.cni_config("10.244.1.0/24"))
    assert script.startswith("set -e;")


def test_connect_of_a_single_node() -> None:
    shell = Shell()
    podnetwork.connect(shell, {"a": "172.18.0.2"}, {"a": "10.244.0.0/24"}, "a")
    check = ["bash", "-n", "-c", shell.scripts[-1][1]]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_connect_without_kube_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = podnetwork.until_true

    def briefly(check: Callable[[], bool], *, why: str, **_: float) -> None:
        wait(check, deadline=0.3, why=why, every=0.05)

    monkeypatch.setattr(podnetwork, "until_true", briefly)
    with pytest.raises(ClusterError, match="kube-proxy's rules on a: not within"):
        podnetwork.connect(Shell(not_yet=1000), ADDRESSES, CIDRS, "a")


def test_disconnect() -> None:
    shell = Shell()
    podnetwork.disconnect(shell, "a")
    assert shell.scripts == [("a", f"rm -f {CONFIG}")]


# DNS


def _printed() -> bytes:
    done = subprocess.run(
        ["bash", "-c", f"printf '{podnetwork._QUERY}'"], capture_output=True, check=True
    )
    return done.stdout


def test_the_query_is_one_datagram_for_the_clusters_own_service() -> None:
    data = _printed()
    assert b"\n" not in data  # bash sends what stands before one as a datagram of its own
    header, question = data[:12], data[12:]
    assert header[2:] == bytes([1, 0, 0, 1, 0, 0, 0, 0, 0, 0])  # recursion wanted, one question
    labels = []
    while question[0]:
        labels.append(question[1 : question[0] + 1])
        question = question[question[0] + 1 :]
    assert b".".join(labels) == b"kube-dns.kube-system.svc.cluster.local"
    assert question[1:] == bytes([0, 1, 0, 1])  # type A, class IN


@pytest.mark.parametrize(
    ("printed", "answers"),
    [
        ("77 85 129 128 0 1 0 1", True),
        ("77 85 129 128 0 1 0 2", True),
        ("77 85 129 131 0 1 0 0", False),  # no such name
        ("77 85 129 130 0 1 0 1", False),  # the server failed
        ("77 85 129 128 0 1 0 0", False),  # no address
        ("", False),  # silence
        ("77 85", False),
    ],
)
def test_answers(printed: str, answers: bool) -> None:
    assert podnetwork.dns_answers(lambda *_: printed, "a", "10.96.0.10") is answers


def test_a_node_that_cannot_ask() -> None:
    def fail(*_: object) -> str:
        raise CommandError("exit code 1")

    assert podnetwork.dns_answers(fail, "a", "10.96.0.10") is False


@pytest.fixture
def dns() -> Iterator[tuple[int, list[bytes]]]:
    """A server on 127.0.0.1 that answers anything with one address; its port, what it got."""
    got: list[bytes] = []
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                data, peer = server.recvfrom(512)
            except OSError:
                return
            if not data:
                return
            got.append(data)
            answer = data[:2] + b"\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + data[12:]
            address = bytes([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 96, 0, 10])
            server.sendto(answer + address, peer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1], got
    server.close()


def test_a_real_shell_asks_and_understands(dns: tuple[int, list[bytes]]) -> None:
    port, got = dns

    def shell(_: str, script: str) -> str:
        here = script.replace("/53", f"/{port}")
        return subprocess.run(["bash", "-c", here], capture_output=True, text=True).stdout

    assert podnetwork.dns_answers(shell, "a", "127.0.0.1")
    assert got == [_printed()]
