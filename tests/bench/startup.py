"""How long until a cluster is useful, against kind alone with the same node image.

Both are measured in turns in one run, so that they share whatever else the machine does.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from clusters import addons, engine, parts
from clusters.cluster import ClusterSpec
from clusters.command import run
from clusters.parts import pins
from clusters.providers import kindconfig, provider
from clusters.topology import load
from tests.bench.figures import Figure

TOPOLOGY = "gpu-2x4"
NAME = "bench"


def measure(rounds: int) -> list[Figure]:
    """*rounds* starts of each kind, one after the other."""
    spec = ClusterSpec(NAME, load(TOPOLOGY), pins.pins().kubernetes.default, "bench", ())
    parts.node_image(spec.kubernetes)
    bare, ours = [], []
    for _ in range(rounds):
        bare.append(_bare(spec))
        ours.append(_ours(spec))
    ratios = tuple(o / b for o, b in zip(ours, bare, strict=True))
    return [
        Figure("bare kind create", "s", tuple(bare)),
        Figure(
            "clusters up, operator and scheduler Ready", "s", tuple(ours),
            note="nodes Ready, DNS answering on each, GPUs, training-operator, coscheduling",
        ),
        Figure("clusters up / bare kind create", "x", ratios, bound=2.5),
    ]  # fmt: skip


def _bare(spec: ClusterSpec) -> float:
    docker = engine.ensure()
    kind = str(parts.host_binary("kind"))
    image = parts.node_image(spec.kubernetes)
    with TemporaryDirectory() as folder:
        shared = Path(folder, "shared")
        shared.mkdir()
        config = Path(folder, "kind.yaml")
        config.write_text(yaml.safe_dump(kindconfig.render(spec, image, shared)))
        name = ["--name", "muster-bench-bare"]
        kubeconfig = ["--kubeconfig", str(Path(folder, "kubeconfig"))]
        start = time.monotonic()
        try:
            run(
                [kind, "create", "cluster", *name, *kubeconfig, "--config", str(config)],
                timeout=300, env=docker.env(),
            )  # fmt: skip
            return time.monotonic() - start
        finally:
            run([kind, "delete", "cluster", *name, *kubeconfig], timeout=120, env=docker.env())


def _ours(spec: ClusterSpec) -> float:
    kind = provider("kind")
    start = time.monotonic()
    try:
        cluster = kind.create(spec)
        addons.install(cluster, operator="training-operator", scheduler="coscheduling")
        return time.monotonic() - start
    finally:
        kind.delete(spec.name)
