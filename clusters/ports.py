"""Ports of this host for what runs beside an embedded control plane."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from clusters import cache
from clusters.errors import ProcessError

#: below the ports that the kernel gives to outgoing connections
PORTS = range(20000, 32000)
TRIES = 1000


def take(folder: Path) -> int:
    """A port of 127.0.0.1 that no cluster has, kept for the one in *folder* as long as it is there.

    Raises:
        ProcessError: none was found free.
    """
    with cache.lock("ports"):
        taken = {
            int(line) for file in folder.parent.glob("*/ports") for line in file.read_text().split()
        }
        for _ in range(TRIES):
            port = random.SystemRandom().choice(PORTS)
            if port not in taken and _free(port):
                with (folder / "ports").open("a") as file:
                    file.write(f"{port}\n")
                return port
    raise ProcessError(f"no port from {PORTS.start} to {PORTS.stop - 1} was found free")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
