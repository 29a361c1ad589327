"""The containers that kind's nodes are: whose they are, what they hold, how to remove them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clusters import ledger
from clusters.engine import Engine
from clusters.errors import ClusterError, CommandError
from clusters.kube import epoch, until_true

#: kind's own label on its containers; the value is the cluster's name there
LABEL = "io.x-k8s.kind.cluster"
#: what tells our clusters from other kind clusters of the host
PREFIX = "muster-"
#: kind's Docker network
NETWORK = "kind"


@dataclass(frozen=True)
class Found:
    """The containers of one cluster.

    Attributes:
        mine: made with this cache folder.
        running: for each container, whether it runs.
    """

    mine: bool
    running: tuple[bool, ...]


def clusters(docker: Engine) -> dict[str, Found]:
    """Every cluster of this tool that has containers, by name.

    An engine may be shared by several users or checkouts, each with a cache of its own. Every node
    has its cluster's shared folder mounted: that tells whose it is, also when the ledger is lost.
    """
    text = docker.docker(
        "ps", "-a", "--no-trunc", "--filter", f"label={LABEL}",
        "--format", f'{{{{.Label "{LABEL}"}}}}\t{{{{.State}}}}\t{{{{.Mounts}}}}',
    )  # fmt: skip
    found: dict[str, Found] = {}
    for line in text.splitlines():
        label, state, mounts = line.split("\t")
        if label.startswith(PREFIX):
            name = label.removeprefix(PREFIX)
            before = found.get(name, Found(False, ()))
            mine = str(ledger.folder(name) / "shared") in mounts.split(",")
            found[name] = Found(before.mine or mine, (*before.running, state == "running"))
    return found


def remove(docker: Engine, name: str) -> None:
    """Remove the containers of a cluster and their volumes; no error when there are none.

    Raises:
        ClusterError: they do not go.
    """
    # a kind that was killed leaves `docker run` at work: what that makes is to be removed, too
    until_true(
        lambda: not _creating(name), deadline=90, why=f"the killed creation of {name} at rest"
    )
    trouble = ""
    for _ in range(3):
        ids = docker.docker("ps", "-aq", "--filter", f"label={LABEL}={PREFIX}{name}").split()
        if not ids:
            return
        try:
            # not `kind delete`: it asks the nodes first, and they may be broken
            docker.docker("rm", "-f", "-v", *ids, timeout=180)
        except CommandError as error:  # another process may be removing them as well: look again
            trouble = error.output.strip()
    raise ClusterError(f"the containers of cluster {name} do not go: {trouble}")


def _creating(name: str, proc: Path = Path("/proc")) -> bool:
    label = f"{LABEL}={PREFIX}{name}".encode()
    for path in proc.glob("[0-9]*/cmdline"):
        try:
            args = path.read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if b"run" in args and label in args:
            return True
    return False


def addresses(docker: Engine, containers: Iterable[str]) -> dict[str, str]:
    """Container name -> its address in the clusters' network."""
    found = json.loads(docker.docker("inspect", *containers))
    return {
        item["Name"].lstrip("/"): item["NetworkSettings"]["Networks"][NETWORK]["IPAddress"]
        for item in found
    }


def started(docker: Engine, containers: Iterable[str]) -> dict[str, float | None]:
    """Container name -> since when it runs, in seconds since 1970; None for one that does not."""
    found = json.loads(docker.docker("inspect", *containers))
    return {
        item["Name"].lstrip("/"): _epoch(item["State"]["StartedAt"])
        if item["State"]["Running"]
        else None
        for item in found
    }


def _epoch(timestamp: str) -> float:
    whole, _, rest = timestamp.removesuffix("Z").partition(".")
    return epoch(f"{whole}.{(rest or '0')[:6]}Z")  # Docker writes nanoseconds, Python takes six


def full_reference(reference: str) -> str:
    """An image reference as containerd has it: with registry and tag.

    >>> full_reference("muster/base:1"), full_reference("tiny")
    ('docker.io/muster/base:1', 'docker.io/library/tiny:latest')
    """
    first, slash, _ = reference.partition("/")
    if not slash:
        reference = f"docker.io/library/{reference}"
    elif not ("." in first or ":" in first or first == "localhost"):
        reference = f"docker.io/{reference}"
    tagged = ":" in reference.rpartition("/")[2] or "@" in reference
    return reference if tagged else f"{reference}:latest"


def images_of(docker: Engine, container: str, references: Iterable[str]) -> dict[str, str]:
    """Reference -> id (as Docker has it) of those images that a node has.

    An image's id is the digest of its configuration, which its manifest names.
    """
    listed = docker.docker("exec", container, "ctr", "-n", "k8s.io", "images", "ls")
    digests = {line.split()[0]: line.split()[2] for line in listed.splitlines()[1:]}
    known = {r: digests[full_reference(r)] for r in references if full_reference(r) in digests}
    if not known:
        return {}
    script = 'for digest; do ctr -n k8s.io content get "$digest" | tr -d "\\n"; echo; done'
    text = docker.docker("exec", container, "sh", "-c", script, "sh", *known.values())
    manifests = (json.loads(line) if line else {} for line in text.splitlines())
    ids = (manifest.get("config", {}).get("digest", "") for manifest in manifests)
    return dict(zip(known, ids, strict=True))


def ids_of(docker: Engine, references: Iterable[str]) -> dict[str, str]:
    """Reference -> id, of images in the engine. Raises CommandError when one is not there."""
    wanted = list(references)
    text = docker.docker("image", "inspect", "--format", "{{.Id}}", *wanted)
    return dict(zip(wanted, text.split(), strict=True))
