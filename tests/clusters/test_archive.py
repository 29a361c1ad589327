"""Images written without a builder."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from clusters.parts import archive
from clusters.parts.archive import Image


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "tool"
    path.write_bytes(b"\x7fELF and more")
    return path


def read(path: Path) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """The manifest of an archive, and all its files."""
    with tarfile.open(path) as tar:
        members = [m for m in tar.getmembers() if m.isfile()]
        files = {m.name: tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]
    assert len(files) == len(members), "a file is in the archive twice"
    return json.loads(files["manifest.json"]), files


def test_a_layer_of_binaries(tmp_path: Path, binary: Path) -> None:
    layer = archive.binary_layer(tmp_path / "layer", {"/usr/bin/tool": binary, "/top": binary})
    with tarfile.open(layer) as tar:
        modes = {m.name: (m.mode, m.isdir(), m.uid, m.mtime) for m in tar.getmembers()}
        data = tar.extractfile("usr/bin/tool")
        assert data is not None
        assert data.read() == binary.read_bytes()
    assert modes == {
        "tmp": (0o1777, True, 0, 0),  # programs expect one
        "usr": (0o755, True, 0, 0),
        "usr/bin": (0o755, True, 0, 0),
        "usr/bin/tool": (0o755, False, 0, 0),
        "top": (0o755, False, 0, 0),
    }


def test_an_image_is_read_back(tmp_path: Path, binary: Path) -> None:
    layer = archive.binary_layer(tmp_path / "layer", {"/tool": binary})
    image = Image(["a/b:1", "a/b:2"], [layer], ["/tool"], {"PATH": "/x", "A": "b"}, "SIGRTMIN+3")
    (entry,), files = read(archive.write(tmp_path / "image.tar", [image]))
    assert entry["RepoTags"] == ["a/b:1", "a/b:2"]
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    assert entry["Layers"] == [f"{digest}.tar"]
    assert files[f"{digest}.tar"] == layer.read_bytes()
    config = json.loads(files[entry["Config"]])
    # Docker and containerd name an image by the digest of its configuration
    assert entry["Config"] == hashlib.sha256(files[entry["Config"]]).hexdigest() + ".json"
    assert config["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{digest}"]}
    assert len(config["history"]) == 1
    assert config["config"] == {
        "Env": ["PATH=/x", "A=b"], "Entrypoint": ["/tool"], "WorkingDir": "/",
        "StopSignal": "SIGRTMIN+3",
    }  # fmt: skip
    assert (config["architecture"], config["os"]) == (
        {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()], "linux",
    )  # fmt: skip


def test_layers_in_common_are_there_once(tmp_path: Path, binary: Path) -> None:
    base = archive.binary_layer(tmp_path / "base", {"/base": binary})
    own = archive.binary_layer(tmp_path / "own", {"/own": binary})
    images = [Image(["x:1"], [base]), Image(["y:1"], [base, own])]
    entries, files = read(archive.write(tmp_path / "image.tar", images))
    assert len([name for name in files if name.endswith(".tar")]) == 2
    assert entries[1]["Layers"] == [*entries[0]["Layers"], entries[1]["Layers"][1]]


def test_equal_layers_from_two_files_are_there_once(tmp_path: Path, binary: Path) -> None:
    layers = [archive.binary_layer(tmp_path / n, {"/base": binary}) for n in ("one", "two")]
    images = [Image([f"x:{number}"], [layer]) for number, layer in enumerate(layers)]
    _, files = read(archive.write(tmp_path / "image.tar", images))
    assert len([name for name in files if name.endswith(".tar")]) == 1


def test_the_same_files_make_the_same_bytes(tmp_path: Path, binary: Path) -> None:
    written = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        os.utime(binary, (time.time() + len(written) * 100,) * 2)
        layer = archive.binary_layer(folder / "layer", {"/a/tool": binary, "/b": binary})
        image = Image(["x:1"], [layer], ["/b"], {"A": "b"})
        written.append(archive.write(folder / "image.tar", [image]).read_bytes())
    assert written[0] == written[1]


def test_another_reference_is_the_same_image(tmp_path: Path, binary: Path) -> None:
    layer = archive.binary_layer(tmp_path / "layer", {"/tool": binary})
    entries, _ = read(
        archive.write(tmp_path / "i.tar", [Image(["x:1"], [layer]), Image(["y:1"], [layer])])
    )
    assert entries[0]["Config"] == entries[1]["Config"]


def test_no_entry_point(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    with tarfile.open(layer, "w") as tar:
        tar.addfile(tarfile.TarInfo("x"), io.BytesIO())
    (entry,), files = read(archive.write(tmp_path / "i.tar", [Image(["x:1"], [layer])]))
    assert json.loads(files[entry["Config"]])["config"]["Entrypoint"] is None
