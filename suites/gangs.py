"""Gangs of bare pods, and pods in their way, as the tables of suites/gang and suites/sched tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: more GPUs than any node has
TOO_MANY = 99


@dataclass(frozen=True)
class Gang:
    """A gang of bare pods.

    Attributes:
        asks: GPUs that each of its pods asks for, in the order in which they are made.
        minimum: None: all of them.
        priority: ``low`` or ``high``; None: no priority class.
        seconds: after which each pod ends with success; None: not by itself.
        selector: node selector of the pods.
        brief: index of a pod that ends sooner -> seconds after which it does, with success.
    """

    name: str
    asks: tuple[int, ...]
    minimum: int | None = None
    priority: str | None = None
    seconds: int | None = None
    selector: Mapping[str, str] | None = None
    brief: Mapping[int, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of pods."""
        return len(self.asks)


def gang(
    name: str, size: int, minimum: int | None = None, *, gpus: int = 1, **more: object
) -> Gang:
    """A gang of *size* pods of *gpus* GPUs each."""
    return Gang(name, (gpus,) * size, minimum, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Block:
    """A pod in the way, in no gang.

    Attributes:
        node: index among the nodes with GPUs, in the order of their names; None: any of them.
        seconds: after which it ends by itself.
    """

    gpus: int = 1
    node: int | None = None
    seconds: int | None = None
