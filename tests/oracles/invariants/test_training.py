"""Ranks, steps and samples, as progress lines tell them."""

from __future__ import annotations

from tests.oracles.build import History, Job, Pod, broken, exercised, names

POLICY = {"minReplicas": 1, "maxReplicas": 2, "maxRestarts": 3, "nProcPerNode": 1}
LOST = ("steps-and-samples", "a rollback lost more steps than a checkpoint interval")
GAP = ("steps-and-samples", "training went on from work that no checkpoint holds")
TWICE = ("steps-and-samples", "samples of an epoch were fed twice")
NEVER = ("steps-and-samples", "samples of an epoch were never fed")
#: 8 samples an epoch, 4 a step, a checkpoint every 2 steps
SIZE, BATCH, EVERY = 8, 4, 2
NOTES = {"muster.dev/samples": str(SIZE), "muster.dev/checkpoint-every": str(EVERY)}


def _job(**job: object) -> tuple[History, Job, list[Pod]]:
    h = History()
    made = h.job(Worker=2, elastic=POLICY, annotations=NOTES, **job)  # type: ignore[arg-type]
    pods = [made.pod("Worker", i) for i in range(2)]
    return h, made, pods


def _steps(
    pods: list[Pod],
    first: int,
    last: int,
    generation: str = "a",
    *,
    skip: tuple[int, ...] = (),
    checkpoints: bool = True,
) -> list[int]:
    """Lines of steps *first* to *last* of all ranks; the numbers of rank 0's."""
    h, world, seqs = pods[0].history, len(pods), []
    for step in range(first, last + 1):
        done = (step - 1) * BATCH
        epoch, position = divmod(done, SIZE)
        for rank, pod in enumerate(pods):
            ids = [i for i in range(position, position + BATCH)[rank::world] if i not in skip]
            seq = pod.line(
                "step",
                rank=rank,
                world=world,
                generation=generation,
                step=step,
                epoch=epoch,
                samples=position + BATCH,
                ids=ids,
            )
            if rank == 0:
                seqs.append(seq)
        h.after(0.1)
        if step % EVERY == 0 and checkpoints:
            common = {"rank": 0, "world": world, "generation": generation, "epoch": epoch}
            pods[0].line("checkpoint", step=step, samples=position + BATCH, **common)
    return seqs


def _resume(pod: Pod, step: int, generation: str, world: int = 2) -> int:
    return pod.line("resume", rank=0, world=world, generation=generation, step=step)


def test_two_epochs_with_a_rollback_are_fine() -> None:
    h, job, pods = _job()
    _steps(pods, 1, 3)
    _resume(pods[0], 2, "b")
    _steps(pods, 3, 8, "b")
    job.gone()

    assert names(h) == set()
    assert exercised(h, "steps-and-samples") == 1
    assert exercised(h, "ranks") == 2


def test_a_shrunken_world_is_fine() -> None:
    h, _, pods = _job()
    _steps(pods, 1, 3)
    _resume(pods[0], 2, "b", world=1)
    _steps(pods[:1], 3, 8, "b")

    assert names(h) == set()


def test_a_rollback_over_two_intervals_is_told() -> None:
    h, _, pods = _job()
    _steps(pods, 1, 5)
    resumed = _resume(pods[0], 2, "b")
    last = _steps(pods, 3, 8, "b")[-1]

    [(name, signature, events)] = broken(h)
    assert (name, signature) == LOST
    assert events[0] == resumed
    assert events[-1] >= last


def test_a_sample_that_was_skipped_is_told() -> None:
    h, _, pods = _job()
    first = _steps(pods, 1, 2, skip=(5,))[0]
    _steps(pods, 3, 4)

    [(name, signature, events)] = broken(h)
    assert (name, signature) == NEVER
    assert events[0] == first
    assert "epoch 0: 1 samples never fed: [5]" in h.judge().violations[0].message


def test_a_gap_between_checkpoints_and_a_sample_twice_are_told() -> None:
    h, _, pods = _job()
    _steps(pods, 1, 2)
    _resume(pods[0], 3, "b")  # there is no checkpoint of step 3
    _steps(pods, 4, 8, "b")
    assert GAP in [(n, s) for n, s, _ in broken(h)]

    h, _, pods = _job()
    _steps(pods, 1, 1)
    _steps(pods, 1, 4, "a")

    assert TWICE in [(n, s) for n, s, _ in broken(h)]


def test_without_annotations_size_and_interval_are_read_off_the_lines() -> None:
    h = History()
    job = h.job(Worker=2, elastic=POLICY)
    pods = [job.pod("Worker", i) for i in range(2)]
    _steps(pods, 1, 7, skip=(5,))
    _resume(pods[0], 2, "b")
    _steps(pods, 3, 8, "b")

    assert {(n, s) for n, s, _ in broken(h)} == {LOST, NEVER}


def test_lines_that_come_after_their_pod_are_still_its_job_s() -> None:
    h, job, pods = _job()
    _steps(pods, 1, 4)
    for pod in pods:
        pod.gone()
    _steps(pods, 5, 8)
    job.gone()

    assert names(h) == set()
    assert exercised(h, "steps-and-samples") == 1


# ranks


def test_a_rank_given_twice_is_told() -> None:
    h, _, pods = _job()
    common = {"rank": 1, "world": 2, "generation": "a", "step": 1}
    first = pods[0].line("step", **common)
    second = pods[1].line("step", **common)

    assert broken(h) == [("ranks", "a rank was given twice", (first, second))]


def test_a_world_that_ranks_disagree_on_and_a_rank_outside_it_are_told() -> None:
    h, _, pods = _job()
    first = pods[0].line("start", rank=0, world=2, generation="a")
    second = pods[1].line("start", rank=1, world=1, generation="a")

    assert broken(h) == [
        ("ranks", "ranks disagree on the world size", (first, second)),
        ("ranks", "a rank outside the world", (second,)),
    ]


def test_a_rank_that_nothing_is_heard_of_is_told() -> None:
    h, job, pods = _job()
    for step in range(1, 6):
        pods[0].line("step", rank=0, world=2, generation="a", step=step)
    last = h.seq
    job.gone()

    assert broken(h) == [("ranks", "a rank is missing", (last - 4, last))]


def test_a_rank_that_dies_before_it_says_anything_is_fine() -> None:
    h, _, pods = _job()
    pods[0].line("start", rank=0, world=2)  # no process group yet
    pods[0].line("step", rank=0, world=2, generation="a", step=1)

    assert names(h) == set()


def test_a_world_outside_the_policy_is_told() -> None:
    h, _, pods = _job()
    seq = pods[0].line("start", rank=0, world=3, generation="a")

    assert broken(h) == [("ranks", "a world outside the policy's bounds", (seq,))]
    assert h.judge().violations[0].behaviour == "E13"
