"""Whether an engine really starts a privileged container, as kind's nodes are."""

from __future__ import annotations

import io
import platform
import struct
import tarfile

from clusters.engine import capabilities
from clusters.engine.client import Engine
from clusters.errors import CommandError, EngineError

#: the probe's image, made of one 130-byte program that does nothing
IMAGE = "muster/probe:1"

#: exit(0) in machine code, and the ELF machine number
_PROGRAMS = {
    "x86_64": (62, bytes.fromhex("31ffb83c0000000f05")),
    "aarch64": (183, bytes.fromhex("000080d2a80b80d2010000d4")),
}


def program(machine: str | None = None) -> bytes:
    """A static ELF program that exits with 0: no compiler, no download, no libc to match.

    Raises:
        EngineError: a processor that this file has no code for.
    """
    machine = machine or platform.machine()
    if machine not in _PROGRAMS:
        raise EngineError(f"no probe program for the processor {machine}")
    number, code = _PROGRAMS[machine]
    base, start = 0x400000, 64 + 56  # ELF header, one program header
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", 2, number, 1, base + start, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    size = start + len(code)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return header + segment + code


def _image() -> bytes:
    data = program()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("probe")
        entry.size, entry.mode = len(data), 0o755
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def check_privileged(engine: Engine) -> None:
    """Start one privileged container and let it end.

    Raises:
        EngineError: it did not start; says what the host lacks and what to do.
    """
    try:
        if not engine.has_image(IMAGE):
            engine.docker(
                "import", "--change", 'ENTRYPOINT ["/probe"]',
                "--change", "LABEL muster=probe", "-", IMAGE, stdin=_image(),
            )  # fmt: skip
        engine.docker("run", "--rm", "--privileged", "--network=none", IMAGE, timeout=60)
    except CommandError as error:
        lacking = capabilities.lacking()
        if lacking and not engine.own:
            raise EngineError(
                f"this host lacks {', '.join(lacking)}, so the Docker engine that answers cannot"
                f" start privileged containers, and kind's nodes are such: {error.output.strip()}",
                hint="stop that engine, so that one of our own is started (it leaves out what the"
                " host lacks), or give the host the capability",
            ) from error
        raise EngineError(f"the engine cannot start a privileged container: {error}") from error
