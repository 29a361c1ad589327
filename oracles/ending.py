"""How a command ends: each error in a few lines, and a settled exit code (``ExitCode``)."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer

from oracles.errors import HarnessError
from oracles.outcome import ExitCode

#: what typer makes of Ctrl-C
_INTERRUPTED = 130


def ended(
    app: typer.Typer, program: str, arguments: Sequence[str] | None = None, *, printed: bool = False
) -> int:
    """Run a command; its exit code.

    Args:
        program: what stands after ``python -m``.
        arguments: None: the command line's.
        printed: it does nothing but print, so that it may end when nobody reads on (``| head``).
    """
    try:
        code = app(arguments, standalone_mode=False)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except typer.TyperException as error:
        if error.format_message():  # there is none after the help that comes without a command
            print(f"error: {error.format_message()}", file=sys.stderr)
            print(f"  next: python -m {program} --help", file=sys.stderr)
        return ExitCode.USAGE
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except SystemExit:  # what typer makes of a pipe that nobody reads from
        return ExitCode.OK if printed else ExitCode.INFRASTRUCTURE
    except Exception:
        traceback.print_exc()
        print("error: this should not happen; please report the lines above", file=sys.stderr)
        return ExitCode.INFRASTRUCTURE
    if code == _INTERRUPTED:
        print("interrupted", file=sys.stderr)
        return ExitCode.INFRASTRUCTURE
    return int(code or 0)


def signals_interrupt() -> None:
    """Let SIGTERM and SIGHUP, CI's ways to cancel, do what Ctrl-C does: it cleans up."""
    for sign in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, _interrupt)


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt
