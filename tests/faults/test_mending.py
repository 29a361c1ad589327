"""What was broken is mended: after Ctrl-C, after a crash, and when its time is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos import undo
from chaos.errors import NotMended
from chaos.faults import nodes
from chaos.injecting import Injector
from chaos.site import Site
from clusters.kube import NODES, Kube, Object

pytestmark = pytest.mark.faults

#: breaks, says so, and is killed before it can mend
CRASHES = """
import os, signal, sys
from chaos.faults import nodes
from chaos.injecting import Injector
from chaos.site import Site
from clusters.providers.kind import KindProvider
kind = KindProvider()
site = Site(kind.get(sys.argv[1]), kind)
Injector(site)(nodes.Cordon(site, sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""
#: an experiment that breaks, and goes on for longer than anybody waits
EXPERIMENT = """
version: 1.0.0
title: A node is cordoned for long
description: Somebody presses Ctrl-C meanwhile.
tags: [node]
extensions:
  - name: muster
    question: Is the node as it was, whatever happens to the experiment?
    behaviour: S08
    deadline_s: {deadline}
    exclusive: true
controls:
  - name: session
    provider: {{type: python, module: chaos.control}}
runtime:
  rollbacks: {{strategy: always}}
steady-state-hypothesis:
  title: the cluster is in order
  probes:
    - type: probe
      name: cluster in order
      tolerance: true
      provider: {{type: python, module: chaos.probes, func: cluster_in_order}}
method:
  - type: action
    name: nobody comes
    provider:
      type: python
      module: chaos.actions
      func: cordon
      arguments: {{node: {node}}}
    pauses: {{after: 600}}
rollbacks:
  - type: action
    name: mend what is broken
    provider: {{type: python, module: chaos.actions, func: recover_all}}
"""


@pytest.fixture
def node(site: Site) -> str:
    """A worker's name."""
    return min(name for name in site.cluster.container_names if "worker" in name)


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """``started(*words)``: Python in a process of its own, ended with the test."""
    running: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "MUSTER_SHARE_HOST": "1"}, start_new_session=True,
        )  # fmt: skip
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_the_next_one_mends_what_a_crash_left(
    site: Site, kube: Kube, node: str, started: Callable[..., subprocess.Popen[str]]
) -> None:
    process = started("-c", CRASHES, site.cluster.name, node)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, said
    _wait_cordoned(kube, node, True)
    (line,) = undo.mend(site)
    assert "undid cordon" in line
    _wait_cordoned(kube, node, False)


def test_a_fault_ends_when_its_time_is_over(site: Site, kube: Kube, node: str) -> None:
    injector = Injector(site)
    injector(nodes.Cordon(site, node), within=2.0)
    _wait_cordoned(kube, node, True)
    _wait_cordoned(kube, node, False)
    with pytest.raises(NotMended, match="its time was over"):
        injector.close()


@pytest.mark.parametrize(
    ("sign", "deadline"), [(signal.SIGINT, 300), (signal.SIGTERM, 300), (None, 15)],
    ids=["Ctrl-C", "told to end", "its deadline"],
)  # fmt: skip
def test_an_experiment_that_is_ended_mends(
    site: Site, kube: Kube, node: str, tmp_path: Path,
    started: Callable[..., subprocess.Popen[str]], sign: signal.Signals | None, deadline: int,
) -> None:  # fmt: skip
    file = tmp_path / "long.yaml"
    file.write_text(EXPERIMENT.format(node=node, deadline=deadline))
    process = started(
        "-m", "chaos", "run", str(file), "--cluster", site.cluster.name, "--out", str(tmp_path)
    )
    _wait_cordoned(kube, node, True)
    if sign is not None:
        process.send_signal(sign)
    began = time.monotonic()
    said, _ = process.communicate(timeout=deadline + 60)
    assert process.returncode not in (0, 1), said
    assert time.monotonic() - began < deadline + 30, said
    _wait_cordoned(kube, node, False)
    assert undo.mend(site) == [], "nothing was left for the next one"


def _wait_cordoned(kube: Kube, node: str, wanted: bool) -> None:
    def so(found: list[Object]) -> bool | None:
        return True if bool(found and found[0]["spec"].get("unschedulable")) is wanted else None

    kube.wait(
        NODES, so, fields=f"metadata.name={node}", deadline=60,
        why=f"{node} {'cordoned' if wanted else 'takes pods'}",
    )  # fmt: skip
