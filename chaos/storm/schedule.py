"""What happens in a storm, and when: all of it from one seed, and a file that can be replayed.

A strike does not name the pod or the node that it hits, since nobody knows beforehand which ones
there are: it holds a number from 0 to 1 that picks one of those that are there when it comes. The
same schedule therefore does the same to the same cluster, as far as the cluster does the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from oracles.errors import UsageError
from oracles.strict import Strict, problems

#: seconds between two strikes, shortest and longest
PAUSE = (2.0, 12.0)
#: of a storm's time: the rest is for what was struck last
UNTIL = 0.85

Deed = Literal[
    "pytorchjob", "tfjob", "gang", "finish",
    "delete pod", "evict pod", "kill container", "stop processes", "scale job", "suspend job",
    "cordon", "taint", "take GPUs", "cut pods",
    "kill operator", "freeze operator", "kill scheduler", "freeze scheduler",
    "API server away", "freeze etcd", "stop kubelet", "stop node",
]  # fmt: skip

#: deed -> how often it comes, and for how many seconds it lasts
DEEDS: dict[Deed, tuple[float, tuple[float, float]]] = {
    "pytorchjob": (5, (0, 0)),
    "tfjob": (4, (0, 0)),
    "gang": (3, (0, 0)),
    "finish": (3, (0, 0)),
    "delete pod": (4, (0, 0)),
    "evict pod": (2, (0, 0)),
    "kill container": (4, (0, 0)),
    "stop processes": (2, (2, 10)),
    "scale job": (3, (5, 20)),
    "suspend job": (2, (5, 15)),
    "cordon": (2, (5, 20)),
    "taint": (1, (5, 20)),
    "take GPUs": (2, (5, 20)),
    "cut pods": (2, (3, 10)),
    "kill operator": (2, (0, 0)),
    "freeze operator": (2, (2, 12)),
    "kill scheduler": (2, (0, 0)),
    "freeze scheduler": (2, (2, 12)),
    "API server away": (1, (3, 12)),
    "freeze etcd": (1, (3, 8)),
    "stop kubelet": (1, (5, 15)),
    "stop node": (1, (5, 15)),
}
#: deeds that a cluster of somebody's would not survive well, or that need a provider of ours
ROUGH: frozenset[Deed] = frozenset({"API server away", "freeze etcd", "stop kubelet", "stop node"})


class Strike(Strict):
    """One thing that happens.

    Attributes:
        number: of its place in the whole schedule; names what it makes.
        at: seconds after the storm's start.
        lasts: seconds until it is mended; 0 for what mends itself.
        pick, size: numbers from 0 to 1 that choose whom it hits, and how much.
    """

    number: int
    at: float
    deed: Deed
    lasts: float = 0.0
    pick: float = 0.0
    size: float = 0.0


class Schedule(Strict):
    """A whole storm."""

    seed: int
    seconds: float
    strikes: tuple[Strike, ...]

    def only(self, strikes: Sequence[Strike]) -> Schedule:
        """The same storm with some of its strikes."""
        return Schedule(seed=self.seed, seconds=self.seconds, strikes=tuple(strikes))

    def write(self, path: Path) -> None:
        """To a file."""
        path.write_text(self.model_dump_json(indent=1))

    @classmethod
    def read(cls, path: Path) -> Schedule:
        """From a file. Raises UsageError."""
        try:
            return cls.model_validate_json(path.read_text())
        except OSError as error:
            raise UsageError(f"{path}: no readable schedule: {error.strerror}") from error
        except ValidationError as error:
            raise UsageError(f"{path} is no schedule:\n{problems(error)}") from error


def make(seed: int, minutes: float, *, rough: bool = True) -> Schedule:
    """The storm of a seed: the first strikes make jobs, so that there is something to hit.

    Args:
        rough: with those that break nodes and the control plane.
    """
    rng = random.Random(f"storm {seed}")
    seconds = minutes * 60
    deeds = [deed for deed in DEEDS if rough or deed not in ROUGH]
    weights = [DEEDS[deed][0] for deed in deeds]
    first: list[Deed] = ["pytorchjob", "tfjob", "gang"]
    strikes: list[Strike] = []
    at = 0.0
    while at < seconds * UNTIL or len(strikes) < len(first):
        number = len(strikes)
        deed = first[number] if number < len(first) else rng.choices(deeds, weights)[0]
        low, high = DEEDS[deed][1]
        strikes.append(
            Strike(
                number=number, at=round(at, 1), deed=deed, lasts=round(rng.uniform(low, high), 1),
                pick=round(rng.random(), 4), size=round(rng.random(), 4),
            )
        )  # fmt: skip
        at += rng.uniform(*PAUSE) if number >= len(first) - 1 else 1.0
    return Schedule(seed=seed, seconds=seconds, strikes=tuple(strikes))
