"""The table of ``python -m clusters list``."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from clusters import ledger, providers
from clusters.local import LocalProcesses
from clusters.providers.kind import KindProvider

COLUMNS = ("name", "kubernetes", "topology", "state", "run", "provider", "kubeconfig")


def rows() -> list[tuple[str, ...]]:
    """One row per cluster, as :data:`COLUMNS` names them."""
    found: list[tuple[str, ...]] = []
    nodes = KindProvider().nodes()
    for name in providers.names():
        entry = ledger.read(name)
        if entry is None:
            found.append((name, "?", "?", "left over (no ledger)", "?", "kind", "-"))
            continue
        state = _state(entry, nodes.get(name, ()))
        kubeconfig = str(ledger.folder(name) / "kubeconfig") if entry.ready else "-"
        found.append(
            (name, entry.kubernetes, entry.topology, state, entry.run, entry.provider, kubeconfig)
        )
    return found


def _state(entry: ledger.Entry, running: tuple[bool, ...]) -> str:
    if entry.left_over:
        return "left over"
    if not entry.ready:
        return "failed, kept" if entry.keep else f"being made (pid {entry.pid})"
    if entry.provider == "embedded":
        ended = LocalProcesses(ledger.folder(entry.name)).ended()
        return f"ended: {', '.join(ended)}" if ended else "up"
    if not running:
        return "gone"
    if not all(running):
        return f"{running.count(False)} of {len(running)} nodes stopped"
    return "up"


def show(table: list[tuple[str, ...]], console: Console) -> None:
    """Print it: for eyes on a terminal; whole, with tabs between, where a program reads it."""
    if not console.is_terminal:
        for row in (COLUMNS, *table):
            print("\t".join(row))
        return
    view = Table(*COLUMNS[:-1], box=None)
    view.add_column(COLUMNS[-1], overflow="fold")
    for row in table:
        view.add_row(*row)
    console.print(view)
