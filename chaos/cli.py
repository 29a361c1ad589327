"""``python -m chaos run | list | check | storm | mend``; exit codes as in ``ExitCode``."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from clusters.progress import say, step
from oracles.ending import ended, signals_interrupt
from oracles.outcome import Outcome, exit_code

app = typer.Typer(
    help="Break clusters on purpose, and see what becomes of the jobs on them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Cluster = Annotated[str, typer.Option(help="A cluster that is up, or existing:CONTEXT.")]
Operator = Annotated[str, typer.Option(help="What is installed there: NAME[:VERSION].")]
Scheduler = Annotated[str, typer.Option(help="As --operator.")]
Torch = Annotated[str, typer.Option(help="Version of PyTorch that jobs train with.")]
Seed = Annotated[int | None, typer.Option(help="Of every random choice; a new one by default.")]
Owned = Annotated[
    list[str] | None,
    typer.Option(
        "--i-own-this-cluster",
        help="A cluster that is not of our making, whose nodes and systems may be broken, too.",
    ),
]
Out = Annotated[Path, typer.Option(help="Where results are written.")]


@app.command()
def run(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Experiments.")],
    cluster: Cluster = "",
    operator: Operator = "training-operator",
    scheduler: Scheduler = "coscheduling",
    torch: Torch = "2.8.0",
    seed: Seed = None,
    out: Out = Path("out"),
    deadline: Annotated[float | None, typer.Option(help="Seconds; else the file's own.")] = None,
    i_own_this_cluster: Owned = None,
) -> int:
    """Run experiments on a cluster that is up, each in a namespace of its own."""
    from chaos import experiments
    from chaos.experiments import running, verdicts
    from chaos.standing import Asked, standing

    found = [experiments.read(experiments.find(name)) for name in files]
    number = seed if seed is not None else secrets.randbelow(2**32)
    asked = Asked(cluster, operator, scheduler, torch, number, out, tuple(i_own_this_cluster or ()))
    outcomes = []
    for experiment in found:
        with step(f"experiment {experiment.name}"), standing(asked, experiment.name) as (given, _):
            folder = Path(given.folder)
            verdict = running.run(experiment, given, deadline=deadline)
        verdict = verdicts.of_run(
            verdict, experiment.about, experiment.name, folder / "history.jsonl"
        )
        print(f"{verdict.outcome.value}  {experiment.name}: {experiment.about.question}")
        for reason in verdict.reasons:
            print(f"  {reason}")
        for name, value in verdict.measures.items():
            print(f"  {name}: {value:g}")
        print(f"  seed {number}, in {folder}")
        outcomes.append(verdict.outcome)
    return exit_code(outcomes)


@app.command("list")
def list_() -> None:
    """The experiments that come with the harness, and what each asks."""
    from chaos import experiments

    for name in experiments.names():
        it = experiments.read(experiments.find(name))
        print(f"{name:40} {it.about.behaviour}  {it.about.question}")


@app.command()
def check(files: Annotated[list[str], typer.Argument(metavar="FILE...")]) -> None:
    """Say what is wrong with experiments, without a cluster."""
    from chaos import experiments

    for name in files:
        it = experiments.read(experiments.find(name))
        print(f"{it.name}: {it.about.question}")


@app.command()
def storm(
    minutes: Annotated[float, typer.Option(min=0.5, max=600, help="How long it blows.")] = 20,
    seed: Seed = None,
    replay: Annotated[
        Path | None, typer.Option(help="A schedule.json of a former storm, instead of a seed.")
    ] = None,
    shrink: Annotated[
        int, typer.Option(min=0, help="If it fails, look for a shorter one, in so many runs.")
    ] = 0,
    cluster: Cluster = "",
    operator: Operator = "training-operator",
    scheduler: Scheduler = "coscheduling",
    out: Out = Path("out"),
    i_own_this_cluster: Owned = None,
) -> int:
    """Blow a storm of random jobs and faults over a cluster that is up, then see that all is well.

    Its schedule comes from the seed; schedule.json, storm.jsonl and history.jsonl tell it all.
    """
    from chaos.standing import Asked
    from chaos.storm import schedule, storming

    number = seed if seed is not None else secrets.randbelow(2**32)
    owned = tuple(i_own_this_cluster or ())
    asked = Asked(cluster, operator, scheduler, "", number, out, owned)
    plan = schedule.Schedule.read(replay) if replay else schedule.make(number, minutes)
    with step(f"storm of {len(plan.strikes)} strikes"):
        result = storming.run(asked, plan)
    print(result.text())
    if result.verdict.outcome is Outcome.FAIL and shrink:
        shorter = storming.shorter(asked, plan, result, runs=shrink)
        print(shorter.text())
    return exit_code([result.verdict.outcome])


@app.command()
def mend(
    everything: Annotated[
        bool, typer.Option("--all", help="Also what a process that is at work has broken.")
    ] = False,
) -> None:
    """Undo what was left broken, in all clusters."""
    from chaos import undo

    lines = undo.everywhere(everything=everything)
    for line in lines:
        print(line)
    left = undo.pending()
    for entry in left:
        print(f"{entry.cluster}: {entry}: its process is at work; --all undoes it all the same")
    if not lines and not left:
        say("nothing is broken")


def main() -> NoReturn:
    """Run the command; each error ends in a few lines and a settled exit code."""
    signals_interrupt()
    sys.exit(ended(app, "chaos"))
