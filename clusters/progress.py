"""Progress of long steps: what, how long so far, how long it took last time.

Lines go to stderr (stdout belongs to results) and say nothing twice: on a terminal one line is
rewritten every second; elsewhere (CI logs) a line appears when a step starts, every 30 s, and
when it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_started = time.monotonic()
#: steps that run now; only the innermost one shows its time
_open: list[object] = []
#: steps may end in several threads at once
_memory_lock = threading.Lock()
#: seconds between two signs of life, on a terminal and in a log
TERMINAL_TICK = 1.0
LOG_TICK = 30.0
_WIPE = "\r\x1b[2K"


def say(message: str) -> None:
    """One line of progress, with the time since this process started."""
    wipe = _WIPE if _open and sys.stderr.isatty() else ""
    clock = _clock(time.monotonic() - _started)
    print(f"{wipe}[{clock}] {message}", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def _memory() -> Path:
    from clusters import cache  # cache says what it waits for through this module

    return cache.root() / "durations.json"


def last_time(step: str) -> float | None:
    """Seconds that *step* took when it last ended well on this machine."""
    try:
        value = json.loads(_memory().read_text()).get(step)
    except (OSError, ValueError):
        return None
    return float(value) if value is not None else None


def _remember(step: str, seconds: float) -> None:
    path = _memory()
    with _memory_lock:
        try:
            known = json.loads(path.read_text())
        except (OSError, ValueError):
            known = {}
        known[step] = round(seconds, 1)
        partial = path.with_name(f".durations.{os.getpid()}")
        partial.write_text(json.dumps(known, indent=1, sort_keys=True))
        partial.replace(path)


@contextmanager
def step(name: str) -> Iterator[Callable[[str], None]]:
    """Show *name* as running until the block ends; yields ``detail(text)`` for what it does now."""
    before = last_time(name)
    expected = f", took {before:.0f} s last time" if before is not None else ""
    say(f"{name} ...{expected}")
    start = time.monotonic()
    state = {"detail": ""}
    done = threading.Event()
    terminal = sys.stderr.isatty()

    def tick() -> None:
        while not done.wait(TERMINAL_TICK if terminal else LOG_TICK):
            if _open[-1:] != [done]:
                continue
            line = f"  {name}: {time.monotonic() - start:.0f} s so far{expected} {state['detail']}"
            if terminal:
                width = shutil.get_terminal_size().columns - 1
                sys.stderr.write(f"{_WIPE}{line[:width]}")
                sys.stderr.flush()
            else:
                say(line.strip())

    def detail(text: str) -> None:
        state["detail"] = f"({text})" if text else ""

    ticker = threading.Thread(target=tick, name=f"progress {name}", daemon=True)
    _open.append(done)
    ticker.start()
    ended = "failed"
    try:
        yield detail
        ended = "done"
        _remember(name, time.monotonic() - start)
    finally:
        done.set()
        ticker.join()
        say(f"{name}: {ended} in {time.monotonic() - start:.1f} s")
        _open.remove(done)
