"""Python interpreters of the host, for PyTorch and TensorFlow versions that need a certain one.

An interpreter's own folder is mounted into pods at the same path, so one that lives in ``/usr``
cannot be used (it would hide the pod's own files), nor one linked against a newer libc than the
pods' base image has.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from clusters import libc
from clusters.command import run
from clusters.errors import CommandError


@dataclass(frozen=True)
class Interpreter:
    """A Python of the host.

    Attributes:
        version: ``X.Y.Z``.
        prefix: its base folder, the one to mount.
    """

    version: str
    executable: Path
    prefix: Path

    @property
    def minor(self) -> str:
        """``X.Y``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def mountable(self) -> bool:
        """Whether its folder can be mounted over a pod's base image."""
        return self.prefix not in (Path("/usr"), Path("/usr/local"), Path("/"))


def candidates() -> list[Path]:
    """Where interpreters may be: pyenv, uv's own, and ``python3.N`` on PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    share = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    found = sorted(pyenv.glob("*/bin/python3"))
    found += sorted((Path(share) / "uv" / "python").glob("*/bin/python3"))
    for minor in range(8, 20):
        path = shutil.which(f"python3.{minor}")
        if path is not None and "shims" not in Path(path).parts:
            found.append(Path(path))
    return found


def interpreters() -> list[Interpreter]:
    """Every interpreter that runs, newest patch of each minor version first, each once."""
    seen: dict[Path, Interpreter] = {}
    for path in candidates():
        try:
            text = run(
                [str(path), "-c", "import sys;print(*sys.version_info[:3], sys.base_prefix)"],
                timeout=20,
            )
        except CommandError:
            continue
        major, minor, micro, prefix = text.strip().split(" ", 3)
        real = path.resolve()
        seen.setdefault(real, Interpreter(f"{major}.{minor}.{micro}", real, Path(prefix)))
    return sorted(seen.values(), key=lambda i: [-int(part) for part in i.version.split(".")])


def find(minor: str) -> Interpreter | None:
    """The newest interpreter of a minor version (``"3.10"``) that can run in pods, or None."""
    fitting = (i for i in interpreters() if i.minor == minor and i.mountable)
    return next((i for i in fitting if libc.runs_in_pods(i)), None)
