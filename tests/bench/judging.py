"""What judging costs: time, memory, and how both grow.

Histories are made by the simulation of the property tests (``tests.oracles.legal``): 100 nodes,
30 jobs of up to 24 pods at a time, about 1 kB an event, two thirds of them pods'. Each judging is a
process of its own, whose processor time and peak memory are taken; reading, ordering and all
invariants are in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from oracles.history import Header, write
from tests.bench.figures import Figure
from tests.oracles.legal import Simulation, Size

EVENTS = 1_000_000
SIZE = Size(nodes=100, gpus=8, slots=30, pods=24, quiet=2, namespaces=8)
HEADER = Header(
    run="bench",
    cluster="made",
    started=0.0,
    facts={"operator": "training-operator:1.8.1", "scheduler": "coscheduling:0.28.9"},
)

_JUDGE = """
import json, resource, sys, time
from pathlib import Path
from oracles.judging import judge, kinds
from oracles.reading import History
history = History(Path(sys.argv[1]))
judgement = judge(history.events(kinds()), facts=history.header.facts)
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "seconds": used.ru_utime + used.ru_stime,
    "megabytes": used.ru_maxrss / 1024,
    "events": judgement.events,
    "outcome": judgement.outcome,
    "idle": judgement.not_exercised,
}))
"""


def measure(rounds: int) -> list[Figure]:
    """*rounds* judgements of half as many events and of all of them, in turn."""
    with TemporaryDirectory() as folder:
        half, whole = (_made(Path(folder), n) for n in (EVENTS // 2, EVENTS))
        pairs = [(_judged(half), _judged(whole)) for _ in range(rounds)]
    return [
        Figure(
            f"judging {EVENTS:,} events",
            "s of one core",
            tuple(whole["seconds"] for _, whole in pairs),
            bound=20.0,
        ),
        Figure(
            f"memory of judging {EVENTS:,} events",
            "MB",
            tuple(whole["megabytes"] for _, whole in pairs),
            bound=2000.0,
        ),
        Figure(
            "time of twice the events",
            "times",
            tuple(whole["seconds"] / half["seconds"] for half, whole in pairs),
            bound=2.2,
        ),
        Figure(
            "memory of twice the events, as many objects alive",
            "times",
            tuple(whole["megabytes"] / half["megabytes"] for half, whole in pairs),
            bound=1.1,
        ),
    ]


def _made(folder: Path, events: int) -> Path:
    path = folder / f"{events}.jsonl"
    write(path, HEADER, Simulation(1, SIZE).events(events))
    return path


def _judged(path: Path) -> dict[str, float]:
    run = subprocess.run(
        [sys.executable, "-c", _JUDGE, str(path)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(run.stdout)
    if found["outcome"] != "PASS" or found["idle"]:
        raise RuntimeError(f"the made history is not judged as it should be: {found}")
    return found
