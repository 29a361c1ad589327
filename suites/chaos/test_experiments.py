"""The experiments of ``chaos/experiments``, each a case of a behaviour.

What an experiment says of itself, and what all invariants say of its history, is its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos import experiments
from chaos.experiments import Experiment, running
from chaos.session import Handover
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Measuring
from fixtures.runtimes import Runtime
from oracles.errors import HarnessError, NotApplicable
from oracles.outcome import Outcome

Going = Callable[[Experiment, str], None]


def _cases(*, torch: bool) -> Iterator[Any]:
    for name in experiments.names():
        it = experiments.read(experiments.find(name))
        if it.about.torch != torch:
            continue
        marks = [pytest.mark.behaviour(it.about.behaviour, case=name), pytest.mark.jobs(*it.jobs)]
        if it.about.exclusive:
            marks.append(pytest.mark.exclusive)
        if it.about.topology:
            marks.append(pytest.mark.topology(*it.about.topology))
        yield pytest.param(it, id=name, marks=marks)


@pytest.fixture
def go(
    request: pytest.FixtureRequest, system: SystemUnderTest, ns: str, folder: Path, seed: int,
    gpus: Callable[[int], int], measure: Measuring, owned: tuple[str, ...],
) -> Going:  # fmt: skip
    """``go(experiment, torch)`` runs it; raises what it means."""

    def run(experiment: Experiment, torch: str) -> None:
        if experiment.about.gpus:
            gpus(experiment.about.gpus)
        cluster, book = system.cluster, system.book
        handover = Handover(
            cluster=cluster.name, provider=cluster.provider,
            operator=system.combination.operator_label,
            scheduler=system.combination.scheduler_label,
            namespace=ns, folder=str(folder),
            history=str(book.history) if book is not None else "",
            desk=str(book.desk) if book is not None else "",
            torch=torch, seed=seed, owned=owned, shared=not experiment.about.exclusive,
        )  # fmt: skip
        verdict = running.run(experiment, handover)
        for name, value in verdict.measures.items():
            measure(name, value, "s" if name.endswith("after") else "ranks")
        text = "\n".join(verdict.reasons)
        if verdict.outcome is Outcome.FAIL:
            failed = AssertionError(f"{experiment.about.question} No: {text}")
            if verdict.in_part_unsure:  # a published fault must not hide that
                raise ExceptionGroup(experiment.name, [failed, HarnessError(text)])
            raise failed
        if verdict.outcome is Outcome.NOT_APPLICABLE:
            raise NotApplicable(text)
        if verdict.outcome is not Outcome.PASS:
            raise HarnessError(text)

    return run


@pytest.mark.parametrize("experiment", list(_cases(torch=False)))
def test_experiment(go: Going, experiment: Experiment) -> None:
    """Jobs of controllable programs."""
    go(experiment, "")


@pytest.mark.parametrize("experiment", list(_cases(torch=True)))
def test_training(go: Going, torch: Runtime, experiment: Experiment) -> None:
    """Jobs that train with PyTorch."""
    go(experiment, torch.version)
