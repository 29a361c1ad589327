"""One line of the doctor's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console
from rich.table import Table
from rich.text import Text


class State(StrEnum):
    """How bad it is: WARN costs a feature or a test, FAIL means that no cluster can be made."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """Something that was looked at.

    Attributes:
        found: what there is.
        needed: what for, and how much of it.
        hint: how to get it; "" when nothing is to be done.
    """

    name: str
    state: State
    found: str
    needed: str
    hint: str = ""

    @property
    def failed(self) -> bool:
        """Whether no cluster can be made because of it."""
        return self.state is State.FAIL


_LOG_WIDTH = 140
_STYLE = {State.OK: "green", State.WARN: "yellow", State.FAIL: "bold red"}


def render(checks: Sequence[Check], console: Console | None = None) -> None:
    """Print the report: a table, then what to do about each check that is not well."""
    console = console or Console()
    if not console.is_terminal:
        console.width = max(console.width, _LOG_WIDTH)  # a log has no edge to fold at
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("check", no_wrap=True)
    table.add_column("found", overflow="fold", ratio=3)
    table.add_column("needed", overflow="fold", ratio=2, style="dim")
    for check in checks:
        state = Text(check.state, style=_STYLE[check.state])
        table.add_row(state, check.name, Text(check.found), Text(check.needed))
    console.print(table)
    bad = [check for check in checks if check.state is not State.OK]
    if any(check.hint for check in bad):
        console.print()
    for check in sorted(bad, key=lambda check: not check.failed):
        if check.hint:
            line = Text.assemble((check.name, _STYLE[check.state]), f": {check.hint}")
            console.print(line, soft_wrap=True)
    fails = sum(check.failed for check in checks)
    console.print(
        f"\n{len(checks)} checks: {len(checks) - len(bad)} ok, {len(bad) - fails} warnings,"
        f" {fails} failures"
    )


def exit_code(checks: Sequence[Check]) -> int:
    """0 when nothing failed, else 3 (infrastructure)."""
    return 3 if any(check.failed for check in checks) else 0
