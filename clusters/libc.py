"""Whether a Python of the host can run in the pods' base image.

A program that was linked against a newer C library than it finds does not even start. Which
version it needs is written in it: each symbol that it takes from glibc names the version that
brought it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusters.pythons import Interpreter  # which asks this module

#: glibc of Debian bookworm, which the pods' base image is made of
POD_GLIBC = (2, 36)

_VERSION = re.compile(rb"\0GLIBC_(\d+)\.(\d+)(?=[\0.])")


class OtherLibc(Exception):
    """It is linked against another C library (musl), which the pods' image does not have."""


def needed(path: Path) -> tuple[int, int]:
    """The newest glibc version that an ELF file names; (0, 0) for one that names none.

    Raises:
        OtherLibc: linked against musl.
        OSError: cannot be read.
    """
    data = path.read_bytes()
    if b"/lib/ld-musl" in data or b"\0libc.musl" in data:
        raise OtherLibc(f"{path} is linked against musl")
    found = {(int(m[1]), int(m[2])) for m in _VERSION.finditer(data)}
    return max(found, default=(0, 0))


def interpreter_needs(python: Interpreter) -> tuple[int, int]:
    """The newest glibc that an interpreter, its library or a module of its own needs.

    Raises:
        OtherLibc: linked against musl.
        OSError: cannot be read.
    """
    return max(needed(path) for path in _files(python))


def runs_in_pods(python: Interpreter) -> bool:
    """Whether the pods' base image can run it, as far as the C library goes."""
    try:
        return interpreter_needs(python) <= POD_GLIBC
    except (OtherLibc, OSError):
        return False


def _files(python: Interpreter) -> Iterator[Path]:
    yield python.executable
    lib = python.prefix / "lib"
    yield from sorted({p.resolve() for p in lib.glob(f"libpython{python.minor}*.so*")})
    yield from sorted((lib / f"python{python.minor}" / "lib-dynload").glob("*.so"))
