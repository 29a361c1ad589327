"""What kube-proxy's image takes out of the base image's file system."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from clusters.errors import CommandError, PartError
from clusters.parts import proxyfs

TREE = {
    "./usr/sbin/xtables-nft-multi": b"binary", "./usr/sbin/conntrack": b"binary",
    "./usr/lib/x86_64-linux-gnu/libc.so.6": b"libc",
    "./usr/lib/x86_64-linux-gnu/libcurl.so.4": b"no need",
    "./usr/lib/x86_64-linux-gnu/xtables/libxt_tcp.so": b"match",
    "./usr/share/doc/iptables": b"no need", "./etc/passwd": b"root", "./etc/shadow": b"no need",
}  # fmt: skip
LINKS = {
    "./bin": "usr/bin", "./usr/sbin/iptables": "/etc/alternatives/iptables",
    "./etc/alternatives/iptables": "/usr/sbin/iptables-nft",
    "./usr/sbin/iptables-nft": "xtables-nft-multi", "./etc/alternatives/awk": "/usr/bin/mawk",
}  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A root file system as tar writes it."""
    path = tmp_path / "base.tar"
    folders = {str(parent) for name in [*TREE, *LINKS] for parent in Path(name).parents} - {"."}
    with tarfile.open(path, "w") as tar:
        for folder in sorted(folders):
            info = tarfile.TarInfo(f"./{folder}")
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for name, data in TREE.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755
            tar.addfile(info, io.BytesIO(data))
        for name, target in LINKS.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return path


def test_only_what_is_needed(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[str]] = []
    run = proxyfs.run

    def running(args: list[str]) -> str:
        if args[0] == "chroot":
            tried.append(args[2:])
            return ""
        return run(args)

    monkeypatch.setattr(proxyfs, "run", running)
    path = proxyfs.layer(base, tmp_path / "layer", tmp_path)
    with tarfile.open(path) as tar:
        found = {member.name: member for member in tar}
        assert tar.extractfile("./usr/lib/x86_64-linux-gnu/libc.so.6").read() == b"libc"  # type: ignore[union-attr]
    unwanted = {"./usr/lib/x86_64-linux-gnu/libcurl.so.4", "./usr/share/doc/iptables",
                "./etc/shadow", "./etc/alternatives/awk"}  # fmt: skip
    assert {name for name in [*TREE, *LINKS] if name not in unwanted} <= set(found)
    assert not unwanted & set(found)
    assert not {"./usr/share", "./usr/share/doc"} & set(found)
    assert found["./usr/sbin/iptables"].linkname == "/etc/alternatives/iptables"
    assert ["iptables", "--version"] in tried


def test_what_does_not_start_is_told(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = proxyfs.run

    def running(args: list[str]) -> str:
        if "conntrack" in args:
            raise CommandError("exit code 127", output="libmnl.so.0: cannot open")
        return run(args) if args[0] == "tar" else ""

    monkeypatch.setattr(proxyfs, "run", running)
    with pytest.raises(PartError, match=r"(?s)lacks what conntrack needs.*libmnl"):
        proxyfs.layer(base, tmp_path / "layer", tmp_path)


def test_a_library_that_a_match_needs_is_missed(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = proxyfs.run

    def running(args: list[str]) -> str:
        if args[0] == "tar":
            return run(args)
        return "libxt_statistic.so: libm.so.6 => not found\n" if proxyfs._UNRESOLVED in args else ""

    monkeypatch.setattr(proxyfs, "run", running)
    with pytest.raises(PartError, match=r"lacks libraries: libxt_statistic\.so: libm\.so\.6"):
        proxyfs.layer(base, tmp_path / "layer", tmp_path)
