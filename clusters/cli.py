"""The command ``python -m clusters``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from clusters import (
    addons,
    cache,
    deviceplugin,
    doctor,
    engine,
    ledger,
    listing,
    parts,
    providers,
    topology,
)
from clusters.cluster import Cluster, ClusterSpec
from clusters.parts import pins, plan
from clusters.progress import say
from clusters.providers import provider
from clusters.providers.kind import KindProvider
from oracles.ending import ended, signals_interrupt
from oracles.errors import HarnessError, UsageError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Make, look at and remove clusters with fake GPUs.",
)
out = Console()

Name = Annotated[str, typer.Argument(help="Name of the cluster.")]
Versions = Annotated[list[str] | None, typer.Option(help="Versions to prepare.")]


@app.command()
def up(
    name: Name = "muster",
    topology_name: Annotated[
        str, typer.Option("--topology", help=f"{', '.join(topology.names())}, or a YAML file.")
    ] = "gpu-2x4",
    gpu_mode: Annotated[
        str, typer.Option(help=f"{' or '.join(topology.GpuMode)}; as the topology says.")
    ] = "",
    kubernetes: Annotated[
        str, typer.Option(help=f"One of {', '.join(pins.pins().kubernetes.versions)}.")
    ] = pins.pins().kubernetes.default,
    operator: Annotated[
        str, typer.Option(help="NAME[:VERSION], NAME@image:REF, NAME@src:DIR, or none.")
    ] = "none",
    scheduler: Annotated[str, typer.Option(help="As --operator.")] = "none",
    provider_name: Annotated[
        str, typer.Option("--provider", help="kind, embedded or existing:CONTEXT.")
    ] = "kind",
    keep: Annotated[
        bool, typer.Option("--keep", help="If it fails, leave what there is to be looked into.")
    ] = False,
) -> None:
    """Create a cluster; with --operator and --scheduler they are installed, too.

    It stays until `down`.
    """
    where = provider(provider_name)
    layout = topology.load(topology_name)
    if gpu_mode:
        layout = layout.in_mode(gpu_mode)
    pins.kubernetes_pin(kubernetes)
    addons.check(operator=operator, scheduler=scheduler)
    run = f"up-{time.strftime('%Y%m%d-%H%M%S')}"
    spec = ClusterSpec(name, layout, kubernetes, run, keep=keep)
    where.prepare([kubernetes])
    if isinstance(where, KindProvider):
        spec = replace(spec, mounts=addons.mounts())
    cluster = where.create(spec)
    try:
        addons.install(cluster, operator=operator, scheduler=scheduler)
    except BaseException:
        if where.name in providers.OURS and not keep:
            say(f"removing cluster {cluster.name}; with --keep it stays to be looked into")
            where.delete(cluster.name)
        raise
    finally:
        ledger.update(cluster.name, keep=True)
    _show(cluster)


@app.command()
def down(
    names: Annotated[list[str] | None, typer.Argument(help="Clusters to remove.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that this tool made, but those of runs at work.")
    ] = False,
) -> None:
    """Remove clusters, half-made and left-over ones included."""
    known = providers.names()
    chosen = list(dict.fromkeys(names or []))
    in_use = _in_use() if everything else {}
    if everything:
        for name, pid in in_use.items():
            say(f"cluster {name} stays, pid {pid} works with it; to remove it, name it")
        chosen = [name for name in known if name not in in_use]
    if not chosen and not everything:
        raise UsageError("which cluster?", hint=f"a name or --all; {_there(known)}")
    for name in chosen:
        if name not in known:
            raise UsageError(f"no cluster {name!r}", hint=_there(known))
    trouble: list[HarnessError] = []
    for name in chosen:
        try:
            providers.owner(name).delete(name)
            say(f"removed cluster {name}")
        except HarnessError as error:
            trouble.append(error)
    if trouble:
        raise HarnessError("\n".join(str(error) for error in trouble))
    if everything and not in_use:
        say("nothing is left")


@app.command("list")
def list_() -> None:
    """Clusters that are up, half-made, or left over."""
    rows = listing.rows()
    if rows:
        listing.show(rows, out)
    else:
        print("no clusters", file=sys.stderr)


@app.command()
def load(
    name: Name, images: Annotated[list[str], typer.Argument(help="Images of the engine.")]
) -> None:
    """Make images of the Docker engine available in every node of a cluster."""
    kind = KindProvider()
    kind.load_image(kind.get(name), images)
    say(f"loaded {', '.join(images)}")


@app.command("doctor")
def doctor_() -> None:
    """What this host has, lacks, and how to get it."""
    checks = doctor.report(leftovers=providers.left_over)
    doctor.render(checks)
    raise typer.Exit(doctor.exit_code(checks))


@app.command()
def prepare(kubernetes: Versions = None) -> None:
    """Obtain every part ahead of time, so that later commands start at once."""
    versions = kubernetes or [pins.pins().kubernetes.default]
    for version in versions:
        pins.kubernetes_pin(version)
    parts.source()
    doctor.preflight()
    engine.ensure()  # only a running one can say what it has
    programs = [name for name, program in pins.pins().programs.items() if program.images]
    with_nodes = [version for version in versions if pins.kubernetes_pin(version).tags]
    plan.announce(with_nodes, programs)
    parts.host_binary("kind")
    for version in with_nodes:
        parts.node_image(version)
    for version in versions:
        parts.control_plane(version)
    for program in ("kwok", deviceplugin.PROGRAM):
        parts.program(program)
    parts.base_image()
    for name in programs:
        for image in pins.pins().programs[name].images:
            parts.image(name, None, image)
    say("all parts are here")


@app.command()
def clean() -> None:
    """Remove all clusters and outdated images, stop the Docker engine if it is ours.

    The cache stays.
    """
    alive = [f"pid {pid} works with cluster {name}" for name, pid in _in_use().items()]
    alive += [f"{name} is held by {holder}" for name, holder in cache.held().items()]
    if alive:
        raise HarnessError(
            f"somebody is at work: {'; '.join(alive)}",
            hint="wait for it, or end that process first",
        )
    down(None, everything=True)
    others = KindProvider().strangers()
    if engine.find() is not None and not others:  # theirs may be pinned otherwise
        for reference in parts.prune():
            say(f"removed image {reference}, which no pin asks for any more")
    if others:
        say(f"the Docker engine goes on, for clusters of another cache folder: {', '.join(others)}")
    elif engine.stop():
        say("stopped the Docker engine")


def _in_use() -> dict[str, int]:
    """Clusters of runs that are alive -> the run's process."""
    entries = [entry for entry in ledger.entries() if entry.owner_alive and not entry.keep]
    return {entry.name: entry.pid for entry in entries}


def _there(known: list[str]) -> str:
    return f"there: {', '.join(known)}" if known else "there is none"


def _show(cluster: Cluster) -> None:
    out.print(
        f"cluster [bold]{cluster.name}[/bold]: Kubernetes {cluster.kubernetes}, "
        f"topology {cluster.topology.name}, {cluster.topology.gpus} GPUs"
        f" ({cluster.topology.gpu.mode})"
    )
    out.print(f"  export KUBECONFIG={cluster.kubeconfig}", soft_wrap=True)
    kubectl = parts.found_binary("kubectl")
    if kubectl is not None:
        out.print(f"  {kubectl} --context {cluster.context} get nodes", soft_wrap=True)
    if cluster.provider in providers.OURS:
        out.print(f"  remove it: python -m clusters down {cluster.name}", soft_wrap=True)


def main() -> NoReturn:
    """Run the command; each error ends in a few lines and a settled exit code."""
    signals_interrupt()
    sys.exit(_run())


def _run() -> int:
    return ended(app, "clusters")
