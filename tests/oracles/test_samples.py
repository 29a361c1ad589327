"""What a job trained on, from hand-made progress: good histories pass, each bad one is named."""

from __future__ import annotations

import dataclasses

import pytest

from oracles import samples
from oracles.progress import Event, ProgressLine

SIZE, BATCH, EVERY = 12, 4, 3


class Job:
    """Writes the lines that trainers of a small job would write."""

    def __init__(self) -> None:
        self.lines: list[ProgressLine] = []
        self.t = 0.0
        self.saved = 0

    def line(self, event: Event, generation: str, rank: int, world: int, **fields: object) -> None:
        self.t += 0.1
        self.lines.append(
            ProgressLine(
                t=self.t, event=event, pod=f"p{rank}", pod_uid=f"u{rank}", pid=9, rank=rank,
                world=world, generation=generation, **fields,  # type: ignore[arg-type]
            )
        )  # fmt: skip

    def train(self, generation: str, world: int, start: int, end: int) -> None:
        """Steps after *start* up to *end*, a checkpoint every EVERY."""
        if start:
            for rank in range(world):
                self.line(Event.RESUME, generation, rank, world, step=start)
        per_epoch = SIZE // BATCH
        for step in range(start + 1, end + 1):
            epoch, index = divmod(step - 1, per_epoch)
            chunk = range(index * BATCH, (index + 1) * BATCH)
            for rank in range(world):
                self.line(
                    Event.STEP, generation, rank, world, step=step, epoch=epoch,
                    samples=(index + 1) * BATCH, ids=tuple(chunk)[rank::world],
                )  # fmt: skip
            if step % EVERY == 0:
                self.line(Event.CHECKPOINT, generation, 0, world, step=step)

    def faults(self) -> list[str]:
        return samples.faults(self.lines, size=SIZE, interval=EVERY)


def test_an_undisturbed_job_is_sound() -> None:
    """Two epochs, two ranks."""
    job = Job()
    job.train("a", 2, 0, 6)
    assert job.faults() == []
    assert samples.losses(job.lines) == []


def test_replay_after_a_rollback_is_allowed() -> None:
    """Steps 4 and 5 are done again by a smaller world."""
    job = Job()
    job.train("a", 2, 0, 5)
    job.train("b", 1, 3, 6)
    assert job.faults() == []
    assert [(loss.reached, loss.resumed, loss.steps) for loss in samples.losses(job.lines)] == [
        (5, 3, 2)
    ]


def test_two_rollbacks_to_one_checkpoint() -> None:
    """The group in between did nothing that lasts."""
    job = Job()
    job.train("a", 2, 0, 4)
    job.train("b", 2, 3, 5)
    job.train("c", 2, 3, 9)
    assert job.faults() == []
    assert [loss.steps for loss in samples.losses(job.lines)] == [1, 2]


def test_a_group_that_read_a_checkpoint_and_died() -> None:
    """It counts as a group, with no work of its own."""
    job = Job()
    job.train("a", 2, 0, 4)
    job.train("b", 2, 3, 3)
    job.train("c", 1, 3, 6)
    assert job.faults() == []
    assert [g.name for g in samples.generations(job.lines)] == ["a", "b", "c"]


def test_a_skipped_sample_is_found() -> None:
    """The counters say 4, but only 3 samples were fed."""
    job = Job()
    job.train("a", 1, 0, 6)
    spoilt = job.lines[1]
    assert spoilt.ids == (4, 5, 6, 7)
    job.lines[1] = dataclasses.replace(spoilt, ids=(5, 6, 7))
    assert job.faults() == ["epoch 0: 1 samples never fed: [4]"]


def test_a_sample_fed_twice_is_found() -> None:
    """Two ranks with one share."""
    job = Job()
    job.train("a", 2, 0, 3)
    assert job.lines[1].ids == (1, 3)
    job.lines[1] = dataclasses.replace(job.lines[1], ids=(0, 2))
    assert sorted(job.faults()) == [
        "epoch 0: 2 samples fed twice: [0, 2]",
        "epoch 0: 2 samples never fed: [1, 3]",
    ]


def test_an_unfinished_epoch_lacks_nothing() -> None:
    """The job was stopped in the middle."""
    job = Job()
    job.train("a", 1, 0, 5)
    assert job.faults() == []


def test_a_lost_checkpoint_is_found() -> None:
    """Step 8 was done, a checkpoint of step 6 was there, training went on from 3."""
    job = Job()
    job.train("a", 2, 0, 8)
    job.train("b", 2, 3, 9)
    assert job.faults() == [
        "process group b went on from step 3 when step 8 was done: 5 steps lost,"
        " checkpoints are 3 apart"
    ]


def test_starting_from_scratch_is_found() -> None:
    """All checkpoints lost: no resume line at all."""
    job = Job()
    job.train("a", 2, 0, 8)
    job.train("b", 2, 0, 3)
    assert len(job.faults()) == 1
    assert "went on from step 0 when step 8 was done" in job.faults()[0]


def test_work_that_no_checkpoint_joins_is_found() -> None:
    """The later group claims a checkpoint of step 6; nobody told of steps 5 and 6."""
    job = Job()
    job.train("a", 1, 0, 4)
    job.train("b", 1, 6, 9)
    assert any("ends with step 4" in fault for fault in job.faults())


@pytest.mark.parametrize("steps", [0, 3])
def test_a_rollback_of_a_whole_interval_is_allowed(steps: int) -> None:
    """The next checkpoint was being written when its writer died."""
    job = Job()
    job.train("a", 1, 0, 3)
    job.train("a", 1, 3, 3 + steps)
    job.lines = [
        line for line in job.lines
        if not (line.event is Event.CHECKPOINT and line.step == 6)
        and line.event is not Event.RESUME
    ]  # fmt: skip
    job.train("b", 1, 3, 6)
    assert job.faults() == []
