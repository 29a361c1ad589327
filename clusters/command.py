"""Running other programs: output kept, deadline held, errors that say what to look at."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from clusters.errors import CommandError

#: seconds between two looks at a command that has a log
LOOK = 1.0
#: seconds given to the pipes of a command that was killed
REST = 2.0


def run(
    args: Sequence[str],
    *,
    timeout: float = 120.0,
    stdin: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = True,
) -> str:
    """Run *args* and return its standard output.

    Args:
        timeout: seconds until the whole process group is killed.
        env: variables on top of this process's own.
        check: raise on an exit code other than 0.

    Raises:
        CommandError: not found, too slow, or (with *check*) a bad exit code; holds the end of
            what it printed.
    """
    data = stdin.encode() if isinstance(stdin, str) else stdin
    shown = " ".join(args[:6]) + (" ..." if len(args) > 6 else "")
    try:
        process = subprocess.Popen(
            list(args),
            stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"cannot run {args[0]}: {error.strerror}") from error
    try:
        out, err = process.communicate(data, timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill_group(process)
        out, err = _rest(process)
        raise CommandError(
            f"{shown}: no end after {timeout:.0f} s", output=(err or out).decode(errors="replace")
        ) from None
    except BaseException:
        _kill_group(process)
        raise
    if check and process.returncode != 0:
        raise CommandError(
            f"{shown}: exit code {process.returncode}",
            output=(err or out).decode(errors="replace"),
            code=process.returncode,
        )
    return out.decode(errors="replace")


def run_logged(
    args: Sequence[str],
    log: Path,
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    detail: Callable[[str], None] | None = None,
    group: bool = True,
) -> None:
    """Run a long command with all output in *log*; *detail* gets its newest line every second.

    It does not outlive this process, not even when this one is killed: the next run must not
    meet a build of the last one at work.

    Args:
        timeout: seconds until it is killed.
        group: kill its children with it; else they come to their own end.

    Raises:
        CommandError: with the end of the log and where to find the rest.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as handle:
        try:
            process = subprocess.Popen(
                [*_mortal(args[0]), *args],
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise CommandError(f"cannot run {args[0]}: {error.strerror}") from error
        deadline = time.monotonic() + timeout
        try:
            while True:
                try:
                    code = process.wait(timeout=LOOK)
                    break
                except subprocess.TimeoutExpired:
                    if detail is not None:
                        detail(_last_line(log))
                    if time.monotonic() > deadline:
                        raise CommandError(
                            f"{args[0]}: no end after {timeout:.0f} s; log: {log}",
                            output=_tail(log),
                        ) from None
        except BaseException:
            if group:
                _kill_group(process)
            else:
                process.kill()
                process.wait()
            raise
    if code != 0:
        raise CommandError(
            f"{' '.join(args[:4])}: exit code {code}; whole log: {log}",
            output=_tail(log),
            code=code,
        )


def _mortal(program: str) -> list[str]:
    """What makes a command die with us, where util-linux is there (Debian cannot be without)."""
    # a program that is not there is left to Popen, which names it
    setpriv = shutil.which("setpriv") if shutil.which(program) else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def _rest(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """What a killed command had printed; a child that left its group may hold the pipes open."""
    try:
        return process.communicate(timeout=REST)
    except subprocess.TimeoutExpired as late:
        return late.stdout or b"", late.stderr or b""


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(log: Path, size: int = 4000) -> str:
    data = log.read_bytes()
    return data[-size:].decode(errors="replace")


def _last_line(log: Path) -> str:
    lines = _tail(log, 400).strip().splitlines()
    return lines[-1][-70:] if lines else ""
