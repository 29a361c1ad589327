"""Putting the capability shim where an engine can run it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from clusters import cache
from clusters.command import run
from clusters.engine import shim
from clusters.errors import CommandError, EngineError


def install_shim(runc: str) -> Path:
    """The shim in the cache, ready to run in front of *runc* (an absolute path)."""
    python = interpreter()
    source = Path(shim.__file__).read_text().replace("@RUNC@", runc)
    # isolated and without site: no start-up file of anybody's, and half the start-up time
    script = f"#!{python} -IS\n{source}"
    folder = cache.root() / "runtime" / cache.key(script)

    def make(partial: Path) -> None:
        path = partial / "runc-shim"
        path.write_text(script)
        path.chmod(0o755)

    return cache.published(folder, make) / "runc-shim"


def interpreter() -> Path:
    """An absolute Python for the shim: the system's, which does not move, else this one.

    Raises:
        EngineError: none of them runs the shim.
    """
    for path in (Path("/usr/bin/python3"), Path(os.path.realpath(sys.executable))):
        try:
            run([str(path), "-IS", "-c", "import sys, json; assert sys.version_info >= (3, 8)"])
        except CommandError:
            continue
        return path.resolve()
    raise EngineError("no Python 3.8 or newer that the capability shim could run with")
