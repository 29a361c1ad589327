"""Two histories compared by what happened in them, not by what they are called.

Objects are paired by their names with what is random in them taken out (suffixes, uids, the
cluster's name); of each pair the sequences of changes are compared, and then the times at which
the same changes came.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from oracles.history import MARK, TEST_START
from oracles.reading import Damage, History
from oracles.telling import read_changes

#: changes of one object that are compared; more are a loop, and counted
MOST = 2_000

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# what the API server appends to generateName (no vowels, no 0, 1, 3), and a ReplicaSet's hash
_GENERATED = re.compile(
    r"(-[bcdfghjklmnpqrstvwxz2456789]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b"
)
_HEX = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b")
_ADDRESS = re.compile(r"\b\d+\.\d+\.\d+\.\d+\b")
_NUMBER = re.compile(r"\d+(\.\d+)?")


class Step(NamedTuple):
    """A change, comparable. *at*: seconds after the beginning."""

    what: str
    at: float
    seq: int


class Pair(NamedTuple):
    """The same change in both."""

    subject: str
    a: Step
    b: Step

    @property
    def apart(self) -> float:
        """How much later it was in the second history, in seconds."""
        return self.b.at - self.a.at


@dataclass(frozen=True)
class Difference:
    """What differs.

    Attributes:
        only_a, only_b: (object, change) that only one has, by time.
        apart: the same changes at times that differ by more than the threshold.
        same: how many changes both have.
        damage: what is wrong with either file.
    """

    only_a: list[tuple[str, Step]]
    only_b: list[tuple[str, Step]]
    apart: list[Pair]
    same: int
    damage: tuple[tuple[Path, Damage], ...] = ()

    @property
    def any(self) -> bool:
        """Whether what happened differs; times do not count."""
        return bool(self.only_a or self.only_b)


def compare(a: Path, b: Path, *, threshold: float = 5.0, happenings: bool = False) -> Difference:
    """Compare two histories.

    Args:
        threshold: seconds by which the same change may come earlier or later.
        happenings: compare the cluster's Events too; they tell much twice, and in other words.

    Raises:
        HistoryError: one cannot be read.
    """
    first, second = _Story(a, happenings), _Story(b, happenings)
    only_a: list[tuple[str, Step]] = []
    only_b: list[tuple[str, Step]] = []
    apart: list[Pair] = []
    same = 0
    for subject in dict.fromkeys([*first.steps, *second.steps]):
        mine, theirs = first.steps.get(subject, []), second.steps.get(subject, [])
        words = SequenceMatcher(None, [s.what for s in mine], [s.what for s in theirs], False)
        for tag, i, j, k, m in words.get_opcodes():
            if tag == "equal":
                pairs = [
                    Pair(subject, *steps) for steps in zip(mine[i:j], theirs[k:m], strict=True)
                ]
                same += len(pairs)
                apart += [pair for pair in pairs if abs(pair.apart) > threshold]
            else:
                only_a += [(subject, step) for step in mine[i:j]]
                only_b += [(subject, step) for step in theirs[k:m]]

    def when(found: tuple[str, Step]) -> float:
        return found[1].at

    damage = tuple((path, each) for path, of in ((a, first), (b, second)) for each in of.damage)
    return Difference(sorted(only_a, key=when), sorted(only_b, key=when), apart, same, damage)


def normalised(text: str, cluster: str = "") -> str:
    """*text* without what is random in it."""
    if cluster:
        text = text.replace(cluster, "CLUSTER")
    text = _UID.sub("UID", text)
    text = _GENERATED.sub("-*", text)
    text = _HEX.sub("*", text)
    return _ADDRESS.sub("IP", text)


class _Story:
    """What happened to each object of a history."""

    def __init__(self, path: Path, happenings: bool) -> None:
        self.steps: dict[str, list[Step]] = {}
        too_many: Counter[str] = Counter()
        history = History(path)
        for subject, step in self._read(history, happenings):
            steps = self.steps.setdefault(subject, [])
            if len(steps) < MOST:
                steps.append(step)
            else:
                too_many[subject] += 1
        for subject in too_many:
            steps = self.steps[subject]
            steps.append(Step("... and so on", steps[-1].at, steps[-1].seq))
        self.damage = history.damage

    def _read(self, history: History, happenings: bool) -> Iterator[tuple[str, Step]]:
        cluster = history.header.cluster
        zero = history.part.get("started")
        for change in read_changes(history):
            if change.source == MARK and change.what.startswith(f"mark {TEST_START}"):
                zero = change.mono if zero is None else zero
                continue
            if change.what.startswith(("there", "gap ", "mark ")):
                continue
            what = normalised(change.what, cluster)
            if what.startswith("event "):
                if not happenings:
                    continue
                what = _NUMBER.sub("N", what)
            if zero is None:
                zero = change.mono
            name = normalised(change.subject, cluster)
            yield name, Step(what, change.mono - zero, change.seq)
