"""What recording costs, and whether everything is written.

A process of its own plays the API server (``replay``); the recorder runs in this one, whose
processor time is what is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from clusters.kube import Kube
from oracles.recorder import Recorder
from tests.bench.figures import Figure
from tests.bench.replay import FIRST_VERSION

STEADY, SECONDS = 200, 10
FAST, FAST_SECONDS = 2000, 30


def measure(rounds: int) -> list[Figure]:
    """*rounds* replays at the steady rate, one at the fast one."""
    steady = [_replay(STEADY, SECONDS) for _ in range(rounds)]
    fast = _replay(FAST, FAST_SECONDS)
    return [
        Figure(
            f"recorder at {STEADY} events/s",
            "% of a core",
            tuple(100 * share for share, _ in steady),
            bound=5.0,
        ),
        Figure(f"recorder at {FAST} events/s", "% of a core", (100 * fast[0],)),
        Figure(
            f"events missing of {FAST * FAST_SECONDS} at {FAST}/s", "1", (float(fast[1]),), bound=0
        ),
    ]


def _replay(rate: int, seconds: int) -> tuple[float, int]:
    """Share of a core that recording took, and how many events are not in the history."""
    total = rate * seconds
    with TemporaryDirectory() as folder:
        certificate = _certificate(Path(folder))
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.replay", str(rate), str(seconds), certificate],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            kube = _client(Path(folder), int(server.stdout.readline()))
            history = Path(folder, "history.jsonl")
            recorder = Recorder(kube, history, run="bench", cluster="replay").start()
            used = time.process_time()
            took = float(server.stdout.readline())
            _wait_for(recorder, total)
            used = time.process_time() - used
            recorder.stop(settle=0)
            return used / took, total - _found(history, total)
        finally:
            server.stdin.close()
            server.wait(10)


def _wait_for(recorder: Recorder, total: int) -> None:
    end = time.monotonic() + 60
    while recorder.statistics().events.get("watch", 0) < total and time.monotonic() < end:
        time.sleep(0.05)


def _found(history: Path, total: int) -> int:
    versions = range(FIRST_VERSION + 1, FIRST_VERSION + 1 + total)
    with history.open() as file:
        next(file)
        seen = {event["rv"] for event in map(json.loads, file) if event["source"] == "watch"}
    return len(seen.intersection(versions))


def _certificate(folder: Path) -> str:
    path = str(folder / "server.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "1", "-subj", "/CN=replay"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", path, "-out", f"{path}.c"),
        ],
        check=True,
        capture_output=True,
    )
    with open(path, "a") as file:
        file.write(Path(f"{path}.c").read_text())
    return path


def _client(folder: Path, port: int) -> Kube:
    path = folder / "kubeconfig"
    authority = str(folder / "server.pem")
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": authority}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))
    return Kube(path)
