"""What suites find wrong with a training by parameter servers."""

from dataclasses import replace

import pytest

from oracles.progress import Event, ProgressLine
from suites import parameter_servers as checks

PODS = ["j-worker-0", "j-worker-1"]
#: steps of an epoch
STEPS = 29


def trained(losses=(2.0, 1.2, 0.7, 0.5, 0.3), accuracy=0.94):
    """Lines of a good training: the steps of all epochs, by both workers in turn, and the end."""
    lines = []
    for epoch, loss in enumerate(losses):
        for number in range(STEPS):
            step = epoch * STEPS + number + 1
            ids = tuple(range(number * 64, min((number + 1) * 64, 1797)))
            lines.append(
                ProgressLine(
                    t=step, event=Event.STEP, pod=PODS[step % 2], pod_uid="u", pid=1, rank=step % 2,
                    world=2, generation="a", step=step, epoch=epoch, samples=ids[-1] + 1, ids=ids,
                    loss=loss,
                )
            )  # fmt: skip
    end = ProgressLine(
        t=1e6, event=Event.END, pod="j-chief-0", pod_uid="u", pid=1, accuracy=accuracy, code=0
    )
    return [*lines, end]


def changed(index, **fields):
    lines = trained()
    lines[index] = replace(lines[index], **fields)
    return lines


def test_a_good_training_has_no_faults():
    assert checks.learning_faults(trained()) == []
    assert checks.step_faults(trained(), PODS) == []
    assert checks.epochs(trained()) == pytest.approx({0: 2.0, 1: 1.2, 2: 0.7, 3: 0.5, 4: 0.3})
    assert checks.all_work(trained(), 2)


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (trained(losses=(2.0, 1.9, 1.8, 1.8, 1.7)), "went from 2.000 to 1.700"),
        (trained(accuracy=0.5), "0.500 of the samples are right, not 0.9"),
        (trained()[:-1], "0.000 of the samples are right"),
        (trained(losses=(2.0, 0.1)), "losses are told of epochs [0, 1], 5 were to be trained"),
        (changed(7, loss=None), "no finite number"),
        ([], "losses are told of epochs []"),
    ],
)
def test_a_training_that_did_not_learn_is_found_out(lines, word):
    assert any(word in fault for fault in checks.learning_faults(lines))


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (changed(4, step=4), "steps were done twice: [4]"),
        (changed(4, step=4), "steps were not done: [5]"),
        (changed(4, ids=(1,)), "fed twice"),
        (changed(4, ids=(256,)), "63 samples never fed"),
        (changed(4, rank=0), "('j-worker-1', 0, 2)"),
        (changed(4, pod="j-worker-7"), "('j-worker-7', 1, 2)"),
        ([x for x in trained() if x.rank != 1], "steps were done by [('j-worker-0', 0, 2)], not"),
        ([], "steps were done by [], not by"),
    ],
)
def test_steps_that_are_not_as_they_should_be_are_found_out(lines, word):
    assert any(word in fault for fault in checks.step_faults(lines, PODS)), checks.step_faults(
        lines, PODS
    )


def test_steps_that_no_checkpoint_holds_may_come_in_any_order():
    """Step 12 is told before step 11; step 10 is in the checkpoint, as are all before it."""
    lines = [x for x in trained() if x.step != 11 and (x.step or 0) <= 12]
    kept = replace(lines[0], event=Event.CHECKPOINT, pod="j-chief-0", rank=None, step=10, ids=None)
    assert checks.step_faults([*lines, kept], PODS) == ["steps were not done: [11]"]
    assert checks.step_faults(checks.settled([*lines, kept]), PODS) == []
    assert not checks.all_work(checks.settled(lines), 2), "nothing is settled without a checkpoint"


def test_one_worker_is_not_all():
    assert not checks.all_work([x for x in trained() if x.rank != 1], 2)
