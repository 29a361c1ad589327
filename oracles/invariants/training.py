"""What a disturbance cost: steps, and samples of an epoch.

The rules are those of :mod:`oracles.samples`; this feeds it with the lines of one job, once the
job is over. The lines of a live job are kept (packed) until then, as a later rollback can undo any
of them.

What the rules need to know of the training is in annotations of the job, ``muster.dev/samples``
and ``muster.dev/checkpoint-every``; where they are missing it is read off the lines.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import cast

from oracles import relations, samples
from oracles.history import Event
from oracles.invariants.rule import Rule
from oracles.invariants.world import GONE
from oracles.progress import Event as What
from oracles.progress import ProgressLine

SAMPLES = "muster.dev/samples"
CHECKPOINT_EVERY = "muster.dev/checkpoint-every"
#: lines that say nothing of steps and samples
_KEPT = {w.value: w for w in (What.STEP, What.CHECKPOINT, What.RESUME)}
#: no interval is known: no loss is too great
_UNKNOWN = 10**9

#: words of a fault -> its signature
_SIGNATURES = (
    ("steps lost", "a rollback lost more steps than a checkpoint interval"),
    ("but the work before", "training went on from work that no checkpoint holds"),
    ("fed twice", "samples of an epoch were fed twice"),
    ("never fed", "samples of an epoch were never fed"),
)


class _Line:
    """The fields of a ``ProgressLine`` that :mod:`oracles.samples` reads, in little memory."""

    __slots__ = ("epoch", "event", "generation", "ids", "samples", "seq", "step", "t", "world")

    def __init__(self, event: Event, what: What) -> None:
        line = event.object
        self.seq = event.seq
        self.t = event.t
        self.event = what
        self.generation: str | None = line.get("generation")
        self.world: int | None = line.get("world")
        self.step: int | None = line.get("step")
        self.epoch: int | None = line.get("epoch")
        self.samples: int | None = line.get("samples")
        ids = line.get("ids")
        self.ids = array("I", ids) if ids else None


class Training(Rule):
    """E14."""

    name = "steps-and-samples"
    promise = (
        "A restart loses at most one checkpoint interval of steps, and the work that survived has "
        "fed every sample of a finished epoch exactly once."
    )
    source = "pytorch.org: torchrun, Train script (checkpoints); catalogue E14"
    behaviour = "E14"
    kinds = frozenset({"source:progress"}) | frozenset(relations.JOB_KINDS)

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self._lines: dict[str, list[_Line]] = {}
        self._known: dict[str, tuple[str, int | None, int | None]] = {}

    def feed(self, event: Event) -> None:
        """Keep lines; judge them when their job goes."""
        if event.source == "watch":
            job = self.world.job
            if job is None:
                return
            if self.world.changed & GONE:
                self._judge(job.uid, event.mono)
            elif job.uid not in self._known:
                annotations = (event.object.get("metadata") or {}).get("annotations") or {}
                self._known[job.uid] = (
                    job.subject,
                    _whole(annotations.get(SAMPLES)),
                    _whole(annotations.get(CHECKPOINT_EVERY)),
                )
            return
        what = _KEPT.get(event.object.get("event", ""))
        if what is not None:
            key = self.world.line_job
            self._lines.setdefault(key, []).append(_Line(event, what))

    def _judge(self, key: str, t: float) -> None:
        own = self._lines.pop(key, [])
        subject, size, interval = self._known.pop(key, (f"Job {key}", None, None))
        if not own:
            return
        self.judged += 1
        lines = cast(Sequence[ProgressLine], own)
        size = size or epoch_size(lines) or 0
        interval = interval or checkpoint_interval(lines) or _UNKNOWN
        for text in samples.faults(lines, size=size, interval=interval):
            about = _about(own, text)
            self.broke(
                subject,
                text,
                next((s for words, s in _SIGNATURES if words in text), "samples or steps lost"),
                *([about[0].seq, about[-1].seq] if about else []),
                t=t,
            )

    def end(self, now: float) -> None:
        """Jobs that are there at the end."""
        for key in list(self._lines):
            self._judge(key, now)


def epoch_size(lines: Sequence[ProgressLine]) -> int | None:
    """Samples of an epoch, as told by steps after which another epoch came; None: unknown."""
    last: dict[tuple[str | None, int], int] = {}
    for line in lines:
        if line.event is What.STEP and line.epoch is not None and line.samples is not None:
            key = (line.generation, line.epoch)
            last[key] = max(last.get(key, 0), line.samples)
    whole = [n for (generation, epoch), n in last.items() if (generation, epoch + 1) in last]
    return Counter(whole).most_common(1)[0][0] if whole else None


def checkpoint_interval(lines: Sequence[ProgressLine]) -> int | None:
    """Steps between two checkpoints, as most of them are apart; None: unknown."""
    apart: Counter[int] = Counter()
    before: dict[str | None, int] = {}
    for line in lines:
        if line.event is What.CHECKPOINT and line.step is not None:
            if line.generation in before and line.step > before[line.generation]:
                apart[line.step - before[line.generation]] += 1
            before[line.generation] = line.step
    return apart.most_common(1)[0][0] if apart else None


def _about(lines: list[_Line], text: str) -> list[_Line]:
    """The lines that a fault's text is about."""
    group = re.match(r"process group (\S+)", text)
    if group:
        return [line for line in lines if line.generation == group[1]]
    epoch = re.match(r"epoch (\d+):", text)
    if epoch:
        return [x for x in lines if x.event is What.STEP and x.epoch == int(epoch[1])]
    return []


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
