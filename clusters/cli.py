"""The command ``python -m clusters``."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from clusters import addons, doctor, engine, ledger, parts, topology
from clusters.cluster import Cluster, ClusterSpec
from clusters.parts import pins
from clusters.progress import say
from clusters.providers import provider
from oracles.errors import HarnessError, UsageError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Make, look at and remove clusters with fake GPUs.",
)
out = Console()

Name = Annotated[str, typer.Argument(help="Name of the cluster.")]


@app.command()
def up(
    name: Name = "muster",
    topology_name: Annotated[
        str, typer.Option("--topology", help=f"{', '.join(topology.names())}, or a YAML file.")
    ] = "gpu-2x4",
    kubernetes: Annotated[
        str, typer.Option(help=f"One of {', '.join(pins.pins().kubernetes.versions)}.")
    ] = pins.pins().kubernetes.default,
    operator: Annotated[
        str, typer.Option(help="NAME[:VERSION], NAME@image:REF, NAME@src:DIR, or none.")
    ] = "none",
    scheduler: Annotated[str, typer.Option(help="As --operator.")] = "none",
    provider_name: Annotated[
        str, typer.Option("--provider", help="kind or existing:CONTEXT.")
    ] = "kind",
    keep: Annotated[
        bool, typer.Option(help="Keep it when this command is long gone (else: next up removes).")
    ] = True,
) -> None:
    """Create a cluster; with --operator and --scheduler they are installed, too."""
    layout = topology.load(topology_name)
    pins.kubernetes_pin(kubernetes)
    doctor.preflight()
    sweep()
    run = f"up-{time.strftime('%Y%m%d-%H%M%S')}"
    spec = ClusterSpec(name, layout, kubernetes, run, mounts=addons.mounts())
    cluster = provider(provider_name).create(spec)
    if provider_name == "kind":
        ledger.update(name, keep=keep)
    addons.install(cluster, operator=operator, scheduler=scheduler)
    _show(cluster)


@app.command()
def down(
    names: Annotated[list[str] | None, typer.Argument(help="Clusters to remove.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that this tool made.")] = False,
) -> None:
    """Remove clusters, half-made and left-over ones included."""
    kind = provider("kind")
    known = kind.names()
    chosen = known if everything else (names or [])
    if not chosen and not everything:
        raise UsageError("which cluster?", hint=f"a name or --all; there: {', '.join(known)}")
    for name in chosen:
        if name not in known:
            raise UsageError(f"no cluster {name!r}", hint=f"there: {', '.join(known) or 'none'}")
    for name in chosen:
        kind.delete(name)
        say(f"removed cluster {name}")
    if everything:
        say("nothing is left" if not kind.names() else "some clusters would not go")


@app.command("list")
def list_() -> None:
    """Clusters that are up, half-made, or left over."""
    table = Table("name", "kubernetes", "topology", "state", "run", "kubeconfig", box=None)
    for name in provider("kind").names():
        entry = ledger.read(name)
        if entry is None:
            table.add_row(name, "?", "?", "left over (no ledger)", "?", "")
            continue
        state = "up" if entry.ready else "being made"
        if entry.left_over:
            state = "left over"
        kubeconfig = str(ledger.folder(name) / "kubeconfig")
        table.add_row(name, entry.kubernetes, entry.topology, state, entry.run, kubeconfig)
    out.print(table if table.row_count else "no clusters")


@app.command()
def load(
    name: Name, images: Annotated[list[str], typer.Argument(help="Images of the engine.")]
) -> None:
    """Make images of the Docker engine available in every node of a cluster."""
    kind = provider("kind")
    kind.load_image(kind.get(name), images)
    say(f"loaded {', '.join(images)}")


@app.command("doctor")
def doctor_() -> None:
    """What this host has, lacks, and how to get it."""
    checks = doctor.report(leftovers=left_over)
    doctor.render(checks)
    raise typer.Exit(3 if any(check.failed for check in checks) else 0)


@app.command()
def prepare(
    kubernetes: Annotated[list[str] | None, typer.Option(help="Versions to prepare.")] = None,
) -> None:
    """Obtain every part ahead of time, so that later commands start at once."""
    doctor.preflight()
    parts.host_binary("kind")
    parts.host_binary("kubectl")
    for version in kubernetes or [pins.pins().kubernetes.default]:
        parts.node_image(version)
    parts.base_image()
    for program, pin in pins.pins().programs.items():
        for image in pin.images:
            parts.image(program, None, image)


@app.command()
def clean() -> None:
    """Remove all clusters and stop the Docker engine, if it is ours. The cache stays."""
    alive = [e for e in ledger.entries() if e.owner_alive and e.pid != os.getpid()]
    if alive:
        raise HarnessError(
            f"a run is alive: {alive[0].run} (pid {alive[0].pid}) owns cluster {alive[0].name}",
            hint="wait for it, or end that process first",
        )
    down(None, everything=True)
    if engine.stop():
        say("stopped the Docker engine")


def sweep() -> None:
    """Remove what crashed runs left over."""
    for name in left_over():
        say(f"removing {name}: its run is gone")
        provider("kind").delete(name)


def left_over() -> list[str]:
    """Clusters that nobody alive wants."""
    found = []
    for name in provider("kind").names():
        entry = ledger.read(name)
        if entry is None or entry.left_over:
            found.append(name)
    return found


def _show(cluster: Cluster) -> None:
    out.print(f"cluster [bold]{cluster.name}[/bold]: Kubernetes {cluster.kubernetes}, "
              f"topology {cluster.topology.name}, {cluster.topology.gpus} GPUs")  # fmt: skip
    out.print(f"  export KUBECONFIG={cluster.kubeconfig}", soft_wrap=True)
    out.print(f"  {parts.host_binary('kubectl')} get nodes", soft_wrap=True)
    out.print(f"  remove it: python -m clusters down {cluster.name}")


def main() -> None:
    """Run the command; errors of ours end in a few lines and the settled exit code."""
    try:
        app(standalone_mode=True)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(3)
