"""TFJobs with a chief, a parameter server and workers: counts, and what progress lines tell.

A chief hands out steps and tells of checkpoints; the worker that did a step tells of it, so a step
has one line, and no two of them come in order.
"""

from __future__ import annotations

from tests.oracles.build import History, Job, Pod, broken, each, exercised, names

NOTES = {"muster.dev/samples": "8", "muster.dev/checkpoint-every": "2"}
ALL = {"Chief": (1, 0, 0), "PS": (1, 0, 0), "Worker": (2, 0, 0)}
#: as training-operator 1.8.1 counts when the chief has succeeded: whoever ran counts as succeeded
OVER = {"Chief": (0, 1, 0), "PS": (0, 1, 0), "Worker": (0, 2, 0)}


def _running() -> tuple[History, Job, Pod, list[Pod], list[Pod]]:
    """History, job, chief, parameter server and workers, workers."""
    h = History()
    job = h.job("train", "TFJob", annotations=NOTES, Chief=1, PS=1, Worker=2)
    job.says("Created", counts=dict.fromkeys(ALL, (0, 0, 0)), start=0)
    chief, *servers = [job.pod("Chief"), job.pod("PS"), job.pod("Worker", 0), job.pod("Worker", 1)]
    each([chief, *servers], lambda pod: pod.bind("n1"))
    each([chief, *servers], lambda pod: pod.run())
    h.after(1)
    job.says("Created", "Running", counts=ALL)
    return h, job, chief, servers, servers[1:]


def _step(pod: Pod, rank: int, step: int, ids: list[int]) -> int:
    epoch, position = divmod((step - 1) * 4, 8)
    return pod.line(
        "step", rank=rank, world=2, generation="a", step=step, epoch=epoch,
        samples=position + 4, ids=ids,
    )  # fmt: skip


def _ended(h: History, job: Job, chief: Pod, servers: list[Pod]) -> None:
    """The chief ends, and the pods that still run are removed."""
    chief.succeed()
    h.after(1)
    job.says("Created", "-Running", "Succeeded", counts=OVER, end=h.t)
    each(servers, lambda pod: pod.deleting())
    h.after(1)
    each(servers, lambda pod: pod.gone())
    h.after(30)


def test_a_job_that_its_chief_ends_is_fine() -> None:
    h, job, chief, servers, workers = _running()
    _step(workers[1], 1, 2, [4, 5, 6, 7])
    _step(workers[0], 0, 1, [0, 1, 2, 3])
    chief.line("checkpoint", generation="a", step=2, epoch=0, samples=8)
    _step(workers[0], 0, 3, [3, 1, 5, 7])
    _step(workers[0], 0, 4, [0, 2, 4, 6])
    chief.line("checkpoint", generation="a", step=4, epoch=1, samples=8)
    _ended(h, job, chief, servers)

    assert names(h) == set()
    assert exercised(h, "replica-counts") > 6
    assert exercised(h, "ranks") == 1
    assert exercised(h, "steps-and-samples") == 1


def test_a_parameter_server_that_is_counted_too_often_is_told() -> None:
    h, job, *_ = _running()
    wrong = job.says("Created", "Running", counts={**ALL, "PS": (2, 0, 0)})
    h.after(11)
    right = job.says("Created", "Running", counts=ALL)

    assert broken(h) == [
        ("replica-counts", "replica counts disagree with the pods", (wrong, right))
    ]
    assert "ps replicas: status active=2" in h.judge().violations[0].message


def test_a_job_that_ended_and_goes_on_counting_its_servers_is_told() -> None:
    h, job, chief, servers, _ = _running()
    chief.succeed()
    h.after(1)
    counts = {**ALL, "Chief": (0, 1, 0)}
    job.says("Created", "-Running", "Succeeded", counts=counts, end=h.t)
    each(servers, lambda pod: pod.deleting())
    each(servers, lambda pod: pod.gone())
    h.after(30)

    told = {(name, signature) for name, signature, _ in broken(h)}
    assert told == {("replica-counts", "a finished job goes on counting active pods")}


def test_two_workers_of_one_task_are_told() -> None:
    """Both were told to be worker 0."""
    h, _, _, _, workers = _running()
    first = _step(workers[0], 0, 1, [0, 1, 2, 3])
    second = _step(workers[1], 0, 2, [4, 5, 6, 7])

    assert broken(h) == [("ranks", "a rank was given twice", (first, second))]


def test_a_worker_that_never_works_is_told() -> None:
    h, _, _, _, workers = _running()
    first = _step(workers[0], 0, 1, [0, 1, 2, 3])
    _step(workers[0], 0, 2, [4, 5, 6, 7])
    _step(workers[0], 0, 3, [0, 1, 2, 3])
    last = _step(workers[0], 0, 4, [4, 5, 6, 7])

    assert broken(h) == [("ranks", "a rank is missing", (first, last))]


def test_a_sample_that_two_workers_fed_is_told() -> None:
    h, _, _, _, workers = _running()
    _step(workers[0], 0, 1, [0, 1, 2, 3])
    _step(workers[1], 1, 2, [3, 4, 5, 6])

    told = {(name, signature) for name, signature, _ in broken(h)}
    assert told == {
        ("steps-and-samples", "samples of an epoch were fed twice"),
        ("steps-and-samples", "samples of an epoch were never fed"),
    }
