"""Experiments that go wrong end with a clear word, within their deadline, and leave nothing."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures" / "plugin"))

import fakes

from chaos import experiments
from chaos.experiments import running
from chaos.experiments.verdicts import Verdict
from chaos.session import Handover

fakes.KINDS["deployments"] = "Deployment"

TEMPLATE: dict[str, Any] = yaml.safe_load(
    (experiments.FOLDER / f"{experiments.names()[0]}.yaml").read_text()
)
#: seconds; a child that starts on a busy machine takes a few
SOON = 60.0


def call(func: str, kind: str = "action", **arguments: Any) -> dict[str, Any]:
    module = "chaos.actions" if kind == "action" else "chaos.probes"
    where = {"type": "python", "module": module, "func": func, "arguments": arguments}
    return {"type": kind, "name": func.replace("_", " "), "provider": where}


@dataclass
class Ran:
    verdict: Verdict
    seconds: float
    folder: Path

    @property
    def text(self) -> str:
        return "\n".join(self.verdict.reasons)


class Store(fakes.Store):
    """It serves deployments, too, and has none."""

    def find(self, plural: str, namespace: str, query: dict[str, str]) -> list[dict[str, Any]]:
        return [] if plural == "deployments" else super().find(plural, namespace, query)


@pytest.fixture(autouse=True, scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The fake server notes its calls in the working directory: not in the checkout's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path_factory.mktemp("calls"))
        yield


def server(ready: bool) -> str:
    """An API server with three nodes; its address."""
    store = Store()
    for key, item in store.objects.items():
        if key[0] == "nodes":
            item["spec"] = {}
            if not ready and key[2] == "node-1":
                item["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    store.put("namespaces", "", {"metadata": {"name": "t", "labels": {"muster.dev/run": "r"}}})
    handler = type("Handler", (fakes.Handler,), {"store": store})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
    return f"http://127.0.0.1:{http.server_port}"


def kubeconfig(folder: Path, *, ready: bool) -> Path:
    """Of such a server, with the context ``x``."""
    path = folder / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server(ready)}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return path


def run(
    folder: Path, *method: dict[str, Any], ready: bool = True, deadline: float = SOON,
    change: Callable[[dict[str, Any]], None] = lambda data: None,
) -> Ran:  # fmt: skip
    """Run an experiment with this method in somebody's cluster that is not there."""
    folder.mkdir(parents=True)
    data = copy.deepcopy(TEMPLATE)
    data["method"] = list(method)
    data["steady-state-hypothesis"]["probes"][0]["provider"]["arguments"] = {"within": 0.5}
    data["rollbacks"] = data["rollbacks"][:1]
    change(data)
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(data))
    handover = Handover(
        cluster="x", provider="existing:x", operator="training-operator",
        scheduler="coscheduling", namespace="t", folder=str(folder / "out"),
    )  # fmt: skip
    started = time.monotonic()
    environment = {"KUBECONFIG": str(kubeconfig(folder, ready=ready))}
    verdict = running.run(
        experiments.read(path), handover, deadline=deadline, grace=20, environment=environment
    )
    return Ran(verdict, time.monotonic() - started, folder / "out")


RUNS: dict[str, Callable[[Path], Ran]] = {
    "nothing": lambda f: run(f, call("pause", seconds=0)),
    "raises": lambda f: run(f, call("recover", label="it"), call("pause", seconds=50)),
    "never holds": lambda f: run(f, call("pause", seconds=50), ready=False),
    "endless": lambda f: run(f, call("pause", seconds=0), call("pause", seconds=500), deadline=12),
    "breaks it": lambda f: run(f, call("cordon", node="node-1")),
}


@pytest.fixture(scope="module")
def _futures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Ran]]]:
    base = tmp_path_factory.mktemp("runs")
    with ThreadPoolExecutor(len(RUNS)) as pool:
        yield {
            name: pool.submit(make, base / name.replace(" ", "-")) for name, make in RUNS.items()
        }


@pytest.fixture
def ran(_futures: dict[str, Future[Ran]]) -> Callable[[str], Ran]:
    return lambda name: _futures[name].result()


def test_one_in_which_all_goes_well(ran: Callable[[str], Ran]) -> None:
    found = ran("nothing")
    assert found.verdict.outcome == "PASS", found.text
    journal = json.loads((found.folder / running.JOURNAL).read_text())
    assert [step["status"] for step in journal["rollbacks"]] == ["succeeded"]


def test_an_activity_that_raises(ran: Callable[[str], Ran]) -> None:
    found = ran("raises")
    assert found.verdict.outcome == "INCONCLUSIVE"
    assert "nothing is broken under the label 'it'" in found.text
    assert "skipped" not in found.text
    assert found.seconds < SOON, "what comes after it is not done"


def test_a_hypothesis_that_never_holds(ran: Callable[[str], Ran]) -> None:
    found = ran("never holds")
    assert found.verdict.outcome == "INCONCLUSIVE"
    assert "nothing was done: before it, 'cluster in order'" in found.text
    log = (found.folder / running.LOG).read_text()
    assert "not in order: node-1: Ready is False" in log


def test_an_endless_activity_ends_at_the_deadline(ran: Callable[[str], Ran]) -> None:
    found = ran("endless")
    assert found.verdict.outcome == "INCONCLUSIVE"
    assert "it was told to end after its deadline of 12 s\n" in found.text
    assert "'pause' did not come to its end" in found.text
    assert found.seconds < 12 + 20 + 10


def test_somebodys_nodes_are_not_touched(ran: Callable[[str], Ran]) -> None:
    found = ran("breaks it")
    assert found.verdict.outcome == "NOT_APPLICABLE", found.text
    assert "--i-own-this-cluster x" in found.text


def stock(
    tmp_path: Path, method: dict[str, Any], rollbacks: int = 1, **about: Any
) -> tuple[int, dict[str, Any], str]:
    """`chaos run FILE`: its exit code, its journal, and what it said."""
    (tmp_path / "out").mkdir()
    data = copy.deepcopy(TEMPLATE)
    data["method"] = [method]
    data["rollbacks"] = data["rollbacks"][:rollbacks]
    data["extensions"][0].update(about)
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(data))
    environment = {
        **os.environ, "KUBECONFIG": str(kubeconfig(tmp_path, ready=True)),
        "MUSTER_CLUSTER": "existing:x", "MUSTER_TORCH": "",
    }  # fmt: skip
    command = [sys.executable, "-m", "chaostoolkit", "run", "experiment.yaml"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    return done.returncode, json.loads((tmp_path / "journal.json").read_text()), said


def test_the_stock_command_runs_it_too(tmp_path: Path) -> None:
    """The control finds the cluster, makes a namespace, records, and judges."""
    code, journal, said = stock(tmp_path, call("pause", seconds=0))
    assert code == 0, said
    assert journal["muster"] == {"outcome": "PASS", "reasons": [], "measures": {}}
    (folder,) = (tmp_path / "out").iterdir()
    assert (folder / "history.jsonl").stat().st_size > 0


def test_under_the_stock_command_it_ends_at_its_deadline_too(tmp_path: Path) -> None:
    _, journal, said = stock(tmp_path, call("pause", seconds=500), deadline_s=3)
    assert "it was told to end after its deadline of 3 s" in said
    assert journal["status"] == "interrupted"
    assert [step["status"] for step in journal["rollbacks"]] == ["succeeded"]
    assert journal["muster"]["outcome"] == "INCONCLUSIVE"
    assert journal["muster"]["reasons"] == [
        "it was told to end after its deadline of 3 s",
        "it was interrupted before its end",
        "'pause' did not come to its end",
    ]


def test_under_the_stock_command_a_file_that_mends_nothing_is_refused_too(tmp_path: Path) -> None:
    code, journal, said = stock(tmp_path, call("cordon", node="node-1"), rollbacks=0)
    assert code != 0
    assert "rollbacks: recover_all is needed" in said
    assert journal["run"] == []


HANGS = """
import signal, time
for sign in (signal.SIGTERM, signal.SIGINT):
    signal.signal(sign, signal.SIG_IGN)
print("I hear nothing", flush=True)
time.sleep(600)
"""


def test_a_process_that_does_not_listen_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    monkeypatch.setattr(running, "CHILD", [str(script)])
    monkeypatch.setattr(running, "_mended", lambda handover: None)
    experiment = experiments.read(experiments.find(experiments.names()[0]))
    handover = Handover(
        cluster="x", provider="kind", operator="o", scheduler="s", namespace="t",
        folder=str(tmp_path / "out"),
    )  # fmt: skip
    started = time.monotonic()
    verdict = running.run(experiment, handover, deadline=3, grace=0.5)
    assert time.monotonic() - started < 15
    assert verdict.outcome == "INCONCLUSIVE"
    assert "so it was killed after its deadline of 3 s" in "\n".join(verdict.reasons)
    assert "I hear nothing" in "\n".join(verdict.reasons)
