"""Images from files, without a builder: the ``docker save`` format, written directly.

Both ``docker load`` and containerd's ``ctr images import`` read it. A layer is a plain tar; images
in one archive share the layers that they have in common.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: fixed, so that the same files make the same image
EPOCH = "1970-01-01T00:00:00Z"

#: the kernel's names of processors -> those of images; binaries are built for this host
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """An image to write.

    Attributes:
        references: every name it gets.
        layers: tar files, lowest first.
    """

    references: Sequence[str]
    layers: Sequence[Path]
    entrypoint: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: str = ""


def binary_layer(target: Path, files: Mapping[str, Path]) -> Path:
    """Write a layer with executables (path in the image -> file) and an empty ``/tmp``."""
    with tarfile.open(target, "w") as tar:
        made: set[str] = set()
        for name in ("tmp", *(_parents(files))):
            if name not in made:
                made.add(name)
                folder = tarfile.TarInfo(name)
                folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
                tar.addfile(folder)
        for path, source in files.items():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.size, info.mode = source.stat().st_size, 0o755
            with source.open("rb") as handle:
                tar.addfile(info, handle)
    return target


def _parents(files: Iterable[str]) -> list[str]:
    parents = {str(parent) for path in files for parent in Path(path.lstrip("/")).parents}
    return sorted(parents - {".", "tmp"})


def write(target: Path, images: Sequence[Image]) -> Path:
    """Write *images* to the archive *target*."""
    layers = {layer: _sha256(layer) for image in images for layer in image.layers}
    manifest = []
    configs: set[str] = set()
    with tarfile.open(target, "w") as tar:
        for digest, layer in {digest: layer for layer, digest in layers.items()}.items():
            tar.add(layer, arcname=f"{digest}.tar", filter=_plain)
        for image in images:
            config = _config(image, [layers[layer] for layer in image.layers])
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            if name not in configs:
                configs.add(name)
                _add(tar, name, config)
            manifest.append(
                {
                    "Config": name,
                    "RepoTags": list(image.references),
                    "Layers": [f"{layers[layer]}.tar" for layer in image.layers],
                }
            )
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    return target


def _config(image: Image, digests: Sequence[str]) -> bytes:
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    env = {"PATH": path, **image.env}
    stop = {"StopSignal": image.stop_signal} if image.stop_signal else {}
    return json.dumps(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "created": EPOCH,
            "config": {
                "Env": [f"{key}={value}" for key, value in env.items()],
                "Entrypoint": list(image.entrypoint) or None,
                "WorkingDir": "/",
                **stop,
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{d}" for d in digests]},
            "history": [{"created": EPOCH, "created_by": "muster"} for _ in digests],
        },
        sort_keys=True,
    ).encode()


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.mtime = 0
    return info


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
