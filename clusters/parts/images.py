"""Images of operators and schedulers, and the one that pods run in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusters import cache
from clusters.engine import Engine
from clusters.parts import archive, gobuild, pins, rootfs


def base_reference() -> str:
    """The name of the built image that pods of ours run in."""
    return f"muster/base:{cache.key(rootfs.inputs('base'))}"


def program_reference(name: str, image: str, version: str) -> str:
    """The name of the built image of one binary of a program."""
    program = pins.program(name, version)
    return f"muster/{name}-{image}:{version}-{cache.key(program.key, 1)}"


def build_base(engine: Engine) -> str:
    """Build the base image; its reference."""
    base = rootfs.tree("base")
    return load(engine, archive.Image([base_reference()], [base]))


def build_program(engine: Engine, name: str, image: str, version: str) -> str:
    """Build a program and the image of one of its binaries; its reference."""
    program, chosen, _ = pins.program_pin(name, version)
    binaries = gobuild.build(pins.program(name, chosen))
    reference = program_reference(name, image, chosen)
    return load_binaries(engine, reference, {program.images[image]: binaries / image})


def load_binaries(engine: Engine, reference: str, files: Mapping[str, Path]) -> str:
    """Make an image of nothing but *files* (path in the image -> file); the first is its entry.

    Used for pinned programs and for somebody's own checkout alike.
    """
    with cache.workspace("image") as work:
        layer = archive.binary_layer(work / "binaries.layer", files)
        return load(engine, archive.Image([reference], [layer], entrypoint=[next(iter(files))]))


def load(engine: Engine, image: archive.Image) -> str:
    """Write *image* and load it into the engine; its first reference."""
    with cache.workspace("load") as work:
        path = archive.write(work / "image.tar", [image])
        engine.docker("load", "-q", "-i", str(path), timeout=300)
    return image.references[0]
