"""What this machine is: capabilities, cgroups, limits, memory, disk. Reads, never changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def is_root() -> bool:
    """Whether this process may install packages and start an engine."""
    return os.geteuid() == 0


def is_debian() -> bool:
    """Whether packages come from apt here."""
    return Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None
