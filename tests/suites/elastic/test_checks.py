"""What is judged of training, shown good and bad; and who counts which restart."""

from __future__ import annotations

from typing import Any

from oracles.progress import Event, ProgressLine
from suites.elastic import checks
from suites.elastic.agents import Agent, Agents, torchrun_restarts


def step(number: int, t: float, *, group: str = "a", rank: int = 0, loss: float | None = None,
         restart: int = 0) -> ProgressLine:  # fmt: skip
    return ProgressLine(
        t=t, event=Event.STEP, pod=f"p{rank}", pod_uid=f"u{rank}", pid=7, rank=rank, world=2,
        generation=group, step=number, epoch=0, samples=number,
        loss=1.0 / number if loss is None else loss, restart=restart,
    )  # fmt: skip


def run(first: int, last: int, start: float, **more: Any) -> list[ProgressLine]:
    return [step(n, start + n, **more) for n in range(first, last + 1)]


def test_a_step_done_again_comes_out_the_same() -> None:
    lines = run(1, 6, 0.0) + run(4, 9, 20.0, group="b")
    assert checks.replays(lines) == []
    lines.append(step(5, 60.0, group="c", loss=0.5))
    assert [text.partition(" was")[0] for text in checks.replays(lines)] == ["step 5"]


def test_two_worlds_at_once() -> None:
    good = run(1, 6, 0.0) + run(4, 9, 20.0, group="b")
    assert checks.beside(good) == []
    # group a goes on until 46 s, when b trains since 24 s
    bad = run(1, 46, 0.0) + run(4, 9, 20.0, group="b")
    assert checks.beside(bad) == ["process group a did a step 22.0 s after the first of b"]


def test_a_step_that_is_told_late_is_no_second_world() -> None:
    lines = run(1, 6, 0.0) + run(7, 9, -0.5, group="b")
    assert checks.beside(lines) == []


def test_losses_are_those_of_an_undisturbed_run() -> None:
    peace = run(1, 9, 0.0)
    assert checks.unlike(run(1, 6, 0.0) + run(4, 9, 20.0, group="b"), peace) == []
    assert checks.furthest(run(1, 9, 0.0), peace) == 0.0
    off = [*run(1, 8, 0.0), step(9, 9.0, loss=0.2)]
    assert "step 9: the loss differs by 0.089" in checks.unlike(off, peace)[0]
    assert abs(checks.furthest(off, peace) - (0.2 - 1 / 9)) < 1e-9
    assert checks.unlike(run(1, 8, 0.0), peace) == ["1 steps are in one run only: [9]"]


def test_the_longest_pause() -> None:
    lines = run(1, 6, 0.0) + run(7, 9, 20.0)
    assert checks.longest_pause(lines, 6.0) == 21.0
    assert checks.longest_pause(lines, 28.5) == 1.0
    assert checks.longest_pause(lines, 99.0) == 0.0


def pod(name: str, uid: str, container: str, restarts: int = 0) -> dict[str, Any]:
    status = {"containerID": container, "restartCount": restarts}
    return {
        "metadata": {"name": name, "uid": uid},
        "status": {"containerStatuses": [status]},
    }


def test_who_restarted() -> None:
    before = Agents.of([pod("w0", "u0", "c0"), pod("w1", "u1", "c1", 1), pod("w2", "u2", "c2")])
    now = Agents.of([pod("w0", "u0", "c9", 1), pod("w1", "u7", "c7", 2), pod("w2", "u2", "c2")])
    assert now.restarted_since(before) == ["w0", "w1"]
    assert now.restarted_since(before, but=["w1"]) == ["w0"]
    assert before.restarted_since(before) == []
    assert now.replaced(before) == 1
    # one of w0, and both of the new w1, which counts from 0
    assert now.kubelet_restarts(before) == 3
    assert before.kubelet_restarts(before) == 0


def test_a_pod_that_is_gone_restarted_nobody() -> None:
    before = Agents.of([pod("w0", "u0", "c0"), pod("w1", "u1", "c1")])
    now = Agents.of([pod("w0", "u0", "c0"), {"metadata": {"name": "w2"}, "status": {}}])
    assert now.by_pod == {"w0": Agent("u0", "c0", 0)}
    assert now.restarted_since(before) == []


def test_what_torchrun_counts() -> None:
    lines = run(1, 3, 0.0) + run(4, 6, 10.0, restart=2)
    assert torchrun_restarts(lines) == 2
    assert torchrun_restarts(lines, since=99.0) == 0
