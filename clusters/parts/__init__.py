"""Parts: what a cluster and the systems on it are made of.

Each part is asked for by name and obtained by a *source*, chosen by the environment variable
``PARTS``:

* ``auto`` (default): the image we built before, else the published one if the engine has it or
  can pull it, else built;
* ``pull``: the published one only;
* ``build``: built only, from the pinned Go modules and Debian packages.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from clusters import cache, engine
from clusters.engine import Engine, probe
from clusters.errors import CommandError, PartError, UnknownVersion
from clusters.parts import gobuild, images, nodeimage, pins, rootfs
from clusters.parts.gobuild import GoProgram
from clusters.progress import say, step

#: seconds that a pull may take; a registry that cannot be reached refuses at once or never answers
PULL_TIMEOUT = 300.0


#: names an image for pods of ours: any with a shell, GNU coreutils and a CPython's libraries
BASE_VARIABLE = "MUSTER_BASE_IMAGE"


class Source(StrEnum):
    """Where parts come from."""

    AUTO = "auto"
    PULL = "pull"
    BUILD = "build"


def source() -> Source:
    """The source that ``PARTS`` asks for. Raises UnknownVersion for any other word."""
    word = os.environ.get("PARTS", "").lower() or "auto"
    try:
        return Source(word)
    except ValueError:
        raise UnknownVersion(
            f"PARTS={word!r} is not a source", hint="one of auto, pull, build"
        ) from None


def node_image(kubernetes: str) -> str:
    """Reference of the node image of a Kubernetes version, in the engine."""
    pull = pins.node_pin(kubernetes).pull
    return _obtain(
        f"node image {kubernetes}",
        nodeimage.reference(kubernetes),
        pull,
        lambda: nodeimage.prepare(kubernetes),
        lambda e, detail: nodeimage.build(e, kubernetes, detail),
    )


def use_published_base() -> None:
    """Run pods of ours in a published image: somebody's nodes cannot be given one of ours.

    Through the environment, so that processes started from here do the same; an image that the
    user named there already is left.
    """
    os.environ.setdefault(BASE_VARIABLE, pins.pins().base.pull)


def base_image() -> str:
    """Reference of the image that pods of ours run in; in the engine, unless one was named."""
    if named := os.environ.get(BASE_VARIABLE):
        return named
    return _obtain(
        "image base",
        images.base_reference(),
        pins.pins().base.pull,
        lambda: rootfs.tree("base"),
        lambda e, _: images.build_base(e),
    )


def image(name: str, version: str | None = None, image: str | None = None) -> str:
    """Reference of the image of a program, in the engine.

    Args:
        name: a program of ``pins.yaml``, e.g. ``training-operator``.
        version: without ``v``; None for the default.
        image: which of the program's images; None when it has one.
    """
    program, chosen, at = pins.program_pin(name, version)
    which = image or next(iter(program.images))
    return _obtain(
        f"image {name} {chosen} {which}",
        images.program_reference(name, which, chosen),
        at.pull.get(which),
        lambda: gobuild.build(pins.program(name, chosen)),
        lambda e, _: images.build_program(e, name, which, chosen),
    )


def control_plane(kubernetes: str) -> Path:
    """The folder with the programs of an embedded control plane, built when it is not there.

    Those that were built for a node image serve as well.

    Raises:
        PartError: they cannot be built.
    """
    return gobuild.build(_control_plane(kubernetes))


def _control_plane(kubernetes: str) -> GoProgram:
    whole = pins.kubernetes_program(kubernetes)
    return whole if gobuild.folder(whole).exists() else pins.control_plane_program(kubernetes)


def program(name: str, version: str | None = None) -> Path:
    """The folder with the binaries of a program, built when it is not there. Raises PartError."""
    return gobuild.build(pins.program(name, version))


def host_binary(name: str) -> Path:
    """Path of a program that runs on the host: ``kind`` or ``kubectl``.

    The one that was built before; else, with ``PARTS=pull`` or where there is no Go, that on PATH;
    else it is built.

    Raises:
        PartError: there is none and it cannot be built.
    """
    found = found_binary(name)
    if found is not None:
        return found
    program = _host_program(name)
    if source() is Source.PULL:
        raise PartError(
            f"{name} is not on PATH, and PARTS=pull builds nothing",
            hint=f"install {name} {program.version}, or use PARTS=auto",
        )
    return gobuild.build(program) / name


def found_binary(name: str) -> Path | None:
    """As :func:`host_binary`, but None where it would have to be built."""
    built = gobuild.folder(_host_program(name)) / name
    if built.exists():
        return built
    if source() is not Source.PULL and gobuild.has_go():
        return None
    found = shutil.which(name)
    return Path(found) if found else None


def _host_program(name: str) -> GoProgram:
    if name == "kubectl":
        return _control_plane(pins.pins().kubernetes.default)
    return pins.program(name)


def manifests(name: str, version: str | None = None) -> Path:
    """The source folder of a program's module, where its manifests lie."""
    program, chosen, at = pins.program_pin(name, version)
    return gobuild.module_dir(program.module, chosen, at.sum)


def _obtain(
    what: str,
    built: str,
    published: str | None,
    prepare: Callable[[], object],
    build: Callable[[Engine, Callable[[str], None]], str],
) -> str:
    docker = engine.ensure()
    wanted = source()
    if wanted is not Source.PULL and docker.has_image(built):
        return built
    if wanted is not Source.BUILD and published is not None:
        if docker.has_image(published) or _pull(docker, published):
            return published
        if wanted is Source.PULL:
            raise PartError(
                f"{what}: {published} is not in the Docker engine and cannot be pulled",
                hint="load it with `docker load`, or use PARTS=build",
            )
    if wanted is Source.PULL:
        raise PartError(f"{what} is published nowhere", hint="use PARTS=auto or PARTS=build")
    with cache.lock(built.replace("/", "-").replace(":", "-")):
        if not docker.has_image(built):
            prepare()
            with step(f"build {what}") as detail:
                build(docker, detail)
    return built


def _pull(docker: Engine, reference: str) -> bool:
    try:
        docker.docker("pull", "-q", reference, timeout=PULL_TIMEOUT)
    except CommandError as error:
        if source() is Source.PULL:
            reason = (error.output.strip() or str(error)).splitlines()[-1]
            say(f"{reference} cannot be pulled: {reason}")
        return False
    return True


def prune(keep: Iterable[str] = ()) -> list[str]:
    """Remove images of ours that no pin asks for any more; the references removed."""
    docker = engine.ensure()
    program_images = [
        images.program_reference(name, which, version)
        for name, program in pins.pins().programs.items()
        for version in program.versions
        for which in program.images
    ]
    wanted = {
        probe.IMAGE,
        images.base_reference(),
        *(nodeimage.reference(v) for v, pin in pins.pins().kubernetes.versions.items() if pin.tags),
        *program_images,
        *keep,
    }
    listed = docker.docker("images", "--format", "{{.Repository}}:{{.Tag}}", "muster/*")
    gone = [ref for ref in listed.split() if ref not in wanted]
    for reference in gone:
        with suppress(CommandError):  # in use by a cluster that is up
            docker.docker("rmi", reference)
    return gone
