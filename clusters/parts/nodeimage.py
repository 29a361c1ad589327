"""The image that kind's nodes run: built here where ``kindest/node`` cannot be pulled.

Same layout as kind's own: a Debian with systemd and containerd, the files of the kind module's
``images/base/files``, Kubernetes' binaries, and the images of the static pods already in
containerd's store. What differs, because it must run on more hosts:

* Debian bookworm's systemd 252 and containerd 1.6: later ones refuse cgroup v1.
* Nothing asks for an OOM score below what the host allows (``restrict_oom_score_adj``, no
  ``OOMScoreAdjust`` in containerd's unit): without ``CAP_SYS_RESOURCE`` that is refused.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from clusters import cache
from clusters.command import run
from clusters.engine import Engine
from clusters.errors import CommandError, PartError
from clusters.parts import archive, gobuild, images, pins, proxyfs, rootfs

#: raise it when what this module does to the tree changes
RECIPE = 3

#: systemd must be told that it runs in a container (env), and ends on a signal of its own
ENTRYPOINT = ("/usr/local/bin/entrypoint", "/sbin/init")

CNI_BINARIES = ("host-local", "loopback", "portmap", "ptp")

_WANTS = (
    "lib/systemd/system/multi-user.target.wants", "etc/systemd/system/*.wants",
    "lib/systemd/system/local-fs.target.wants", "lib/systemd/system/basic.target.wants",
)  # fmt: skip
_ENABLED = ("kubelet.service", "containerd.service", "undo-mount-hacks.service")


def reference(kubernetes: str) -> str:
    """The name of the built node image of a Kubernetes version; carries the content key."""
    pin = pins.node_pin(kubernetes)
    key = cache.key(
        RECIPE, proxyfs.FILES, pins.kubernetes_program(kubernetes).key, pin.tags.model_dump(),
        [pins.program(name).key for name in ("etcd", "coredns", "cni-plugins", "kind")],
        rootfs.inputs("node"), rootfs.inputs("base"),
    )  # fmt: skip
    return f"muster/node:v{kubernetes}-{key}"


def prepare(kubernetes: str) -> None:
    """Build what the node image of a Kubernetes version is made of, as far as it is not cached.

    Raises:
        PartError: a part could not be built.
    """
    for program in _programs(kubernetes):
        gobuild.build(program)
    gobuild.build_file("pause", _pause())
    rootfs.tree("base")
    rootfs.tree("node")


def _programs(kubernetes: str) -> list[gobuild.GoProgram]:
    others = [pins.program(name) for name in ("etcd", "coredns", "cni-plugins")]
    return [pins.kubernetes_program(kubernetes), *others]


def _pause() -> str:
    return (pins.FOLDER / "pause.go").read_text()


def build(engine: Engine, kubernetes: str, detail: Callable[[str], None]) -> str:
    """Build the node image and return its reference.

    Raises:
        PartError: a part could not be built, or containerd in the image did not take the images.
    """
    target = reference(kubernetes)
    with cache.workspace("node") as work:
        preload = _preload_archive(kubernetes, work, detail)
        detail("assembling the root file system")
        tree = work / "root"
        tree.mkdir()
        _assemble(kubernetes, tree)
        detail("importing it")
        bare = f"{target}-bare"
        layer = work / "root.layer"
        run(
            ["tar", "--numeric-owner", "--sort=name", "-C", str(tree), "-cf", str(layer), "."],
            timeout=600,
        )
        shutil.rmtree(tree)
        node = archive.Image(
            [bare], [layer], ENTRYPOINT, {"container": "docker"}, stop_signal="SIGRTMIN+3"
        )
        images.load(engine, node)
        layer.unlink()
        detail("loading the static pods' images into it")
        try:
            _preload(engine, bare, preload, target)
        finally:
            with suppress(CommandError):
                engine.docker("rmi", "--no-prune", bare)
    return target


def _preload_archive(kubernetes: str, work: Path, detail: Callable[[str], None]) -> Path:
    """One archive with all images that a node needs before it has a network."""
    pin = pins.node_pin(kubernetes)
    binaries = gobuild.build(pins.kubernetes_program(kubernetes))
    etcd = gobuild.build(pins.program("etcd"))
    coredns = gobuild.build(pins.program("coredns"))
    pause = gobuild.build_file("pause", _pause())
    base = rootfs.tree("base")
    detail("packing the static pods' images")
    iptables = proxyfs.layer(base, work / "iptables.layer", work)
    registry = "registry.k8s.io"

    def layer(name: str, path: str, source: Path) -> Path:
        return archive.binary_layer(work / f"{name}.layer", {path: source})

    found = [
        archive.Image(
            [f"{registry}/{name}:v{kubernetes}"],
            [*([iptables] if name == "kube-proxy" else []),
             layer(name, f"/usr/local/bin/{name}", binaries / name)],
        )
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
    ]  # fmt: skip
    found += [
        archive.Image(
            [f"{registry}/etcd:{pin.tags.etcd}"],
            [layer("etcd", "/usr/local/bin/etcd", etcd / "etcd")],
        ),
        archive.Image(
            [f"{registry}/coredns/coredns:{pin.tags.coredns}"],
            [layer("coredns", "/coredns", coredns / "coredns")],
            entrypoint=["/coredns"],
        ),
        archive.Image(
            [f"{registry}/pause:{pin.tags.pause}"],
            [layer("pause", "/pause", pause / "pause")],
            entrypoint=["/pause"],
        ),
        # every pod of ours runs in it: loading it now saves seconds at each cluster's start
        archive.Image([images.base_reference()], [base]),
    ]
    return archive.write(work / "preload.tar", found)


def _assemble(kubernetes: str, tree: Path) -> None:
    """Lay out the node's root file system below *tree*."""
    pin = pins.node_pin(kubernetes)
    run(["tar", "-xf", str(rootfs.tree("node")), "-C", str(tree)])
    kind = pins.program("kind")
    source = gobuild.module_dir(kind.module, kind.version, kind.sum) / "images/base/files"
    for file in (path for path in source.rglob("*") if path.is_file()):
        target = tree / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        runs = "bin" in file.relative_to(source).parts
        target.chmod(0o755 if runs else 0o644)

    for pattern in _WANTS:
        for folder in tree.glob(pattern):
            for link in folder.iterdir():
                link.unlink()
    wants = tree / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    for unit in _ENABLED:
        (wants / unit).symlink_to(f"/etc/systemd/system/{unit}")
    (tree / "etc/systemd/system/systemd-binfmt.service").symlink_to("/dev/null")
    _append(tree / "etc/systemd/journald.conf", "ReadKMsg=no\n")

    _edit(tree / "etc/systemd/system/containerd.service", {
        "OOMScoreAdjust=-999\n": "",
        "/usr/local/bin/containerd": "/usr/bin/containerd",
    })  # fmt: skip
    _edit(tree / "etc/containerd/config.toml", {
        "restrict_oom_score_adj = false": "restrict_oom_score_adj = true",
        "registry.k8s.io/pause:3.10": f"registry.k8s.io/pause:{pin.tags.pause}",
    })  # fmt: skip
    _oci_spec(tree)

    binaries = gobuild.build(pins.kubernetes_program(kubernetes))
    for name in ("kubelet", "kubeadm", "kubectl"):
        shutil.copy(binaries / name, tree / "usr/bin" / name)
    cni = gobuild.build(pins.program("cni-plugins"))
    (tree / "opt/cni/bin").mkdir(parents=True)
    for name in CNI_BINARIES:
        shutil.copy(cni / name, tree / "opt/cni/bin" / name)
    (tree / "kind/version").write_text(f"v{kubernetes}")
    (tree / "kind/manifests").mkdir()
    (tree / "kind/manifests/default-cni.yaml").write_text("")
    (tree / "etc/kubernetes/manifests").mkdir(parents=True)


def _oci_spec(tree: Path) -> None:
    """containerd's base OCI spec with the hook that shows pods a product name of the node."""
    text = run(["chroot", str(tree), "ctr", "oci", "spec"])
    edit = (
        '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}]'
        " | del(.process.rlimits)"
    )
    text = run(["chroot", str(tree), "jq", edit], stdin=text)
    (tree / "etc/containerd/cri-base.json").write_text(text)


#: kind makes /var of each node a volume, into which Docker copies what the image has there: half a
#: gigabyte per node, whose flushing to disk holds up everything after it. So the layers stay in the
#: image, outside of /var, and containerd's store has links to them.
_IMPORT = """
set -e
containerd >/tmp/containerd.log 2>&1 &
for i in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.1; done
ctr -n k8s.io images import --label=io.cri-containerd.pinned=pinned --no-unpack /preload.tar
kill %1
wait || true
rm -rf /tmp/containerd.log /run/containerd
mkdir /kind/blobs
cd /var/lib/containerd/io.containerd.content.v1.content/blobs/sha256
for blob in *; do
  mv "$blob" /kind/blobs/
  ln -s "/kind/blobs/$blob" "$blob"
done
"""


def _preload(engine: Engine, bare: str, preload: Path, target: str) -> None:
    """Import *preload* into containerd's store of a container of *bare*; commit as *target*."""
    # one name per image, whose lock we hold: what a killed build left is in the way, and goes
    container = "muster-preload-" + target.rpartition("-")[2]
    with suppress(CommandError):
        engine.docker("rm", "-f", "-v", container)
    engine.docker(
        "run", "-d", "--privileged", "--network", "none", "--name", container,
        "--entrypoint", "sleep", "-v", f"{preload}:/preload.tar:ro", bare, "infinity",
    )  # fmt: skip
    try:
        engine.docker("exec", container, "bash", "-c", _IMPORT, timeout=600)
        engine.docker(
            "commit", "--change", f"ENTRYPOINT {json.dumps(ENTRYPOINT)}", "--change", "CMD []",
            container, target, timeout=600,
        )  # fmt: skip
    except CommandError as error:
        raise PartError(f"the node image did not take its images: {error}") from error
    finally:
        with suppress(CommandError):
            engine.docker("rm", "-f", "-v", container)


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def _edit(path: Path, changes: dict[str, str]) -> None:
    """Replace each text once; a text that is not there means that the source has changed."""
    text = path.read_text()
    for old, new in changes.items():
        if old not in text:
            raise PartError(f"{path.name} of kind's base image no longer has {old!r}")
        text = text.replace(old, new, 1)
    path.write_text(text)
