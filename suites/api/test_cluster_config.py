"""What each replica is told of the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.kube import PODS, SERVICES, Kube, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from fixtures.runtimes import Runtime
from fixtures.workloads import Program, tfjob
from oracles.errors import NotApplicable
from oracles.progress import ProgressLine
from suites import parameter_servers, tables
from suites.cast import ANSWER, Cast
from suites.elastic import environment
from suites.parameter_servers import STARTED
from suites.pods import wait_running

EXPECTED = yaml.safe_load(Path(__file__).with_name("expected_config.yaml").read_text())


@pytest.mark.behaviour("V02", case="PyTorchJob")
def test_the_environment_of_master_and_workers(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """Addresses, ranks and sizes, and nothing else that torchrun would read."""
    expected = _expected(system, "PyTorchJob")
    cast = Cast(system, ns, expect)
    cast.add("PyTorchJob", "config", others=2)
    pods = cast.run()
    with tables.judged() as table:
        for name, wanted in expected.items():
            found = {
                key: value
                for key, value in _environment(pods[f"config-{name}"]).items()
                if key.startswith(("PET_", "MASTER_", "RANK", "WORLD_SIZE"))
            }
            table.hold(name, found == wanted, f"found {found}, documented {wanted}")
        _services(cast.kube, ns, pods, table)


@pytest.mark.behaviour("V02", case="TFJob")
def test_tf_config_of_every_role(system: SystemUnderTest, ns: str, expect: Expecting) -> None:
    """The whole cluster, and which task of it the replica is."""
    expected = _expected(system, "TFJob")
    cast = Cast(system, ns, expect)
    cast.add("TFJob", "config", role="ps", others=1)
    more: dict[str, Any] = {"chief": 1, "ps": 2, "workers": 2, "gpus": 0}
    cast.create(tfjob("whole", program=Program(beat_ms=1000), **more))
    pods = cast.run()
    with tables.judged() as table:
        for name, wanted in _replicas("whole", expected, ns).items():
            found = json.loads(_environment(pods[name]).get("TF_CONFIG", "{}"))
            table.hold(name, found == wanted, f"found {found}, documented {wanted}")
        _services(cast.kube, ns, pods, table)


@pytest.mark.behaviour("V02", case="evaluator")
def test_an_evaluator_is_no_part_of_the_training_cluster(
    system: SystemUnderTest, ns: str, expect: Expecting
) -> None:
    """It serves nobody, so whoever connects to all of the cluster would wait for it for ever.

    tensorflow.org, Parameter server training, Cluster setup; kubeflow/trainer#1213.
    """
    expected = _expected(system, "TFJob with an evaluator")
    cast = Cast(system, ns, expect)
    more: dict[str, Any] = {"chief": 1, "ps": 1, "workers": 1, "evaluator": 1, "gpus": 0}
    cast.create(tfjob("judged", program=Program(beat_ms=1000), **more))
    pods = cast.run()
    replicas = _replicas("judged", expected, ns)
    task = {"type": "evaluator", "index": 0}
    replicas["judged-evaluator-0"] = {**replicas["judged-chief-0"], "task": task}
    with tables.judged() as table:
        for name, wanted in replicas.items():
            found = json.loads(_environment(pods[name]).get("TF_CONFIG", "{}"))
            listed = found.get("cluster", {}).pop("evaluator", None)
            table.hold(name, found == wanted, f"found {found}, documented {wanted}")
            table.hold(name, listed is None, f"its cluster lists the evaluator: {listed}")
        _services(cast.kube, ns, pods, table)


@pytest.mark.behaviour("V02", case="TensorFlow")
def test_tensorflow_finds_its_cluster_by_tf_config(
    system: SystemUnderTest, tensorflow: Runtime, ns: str, expect: Expecting
) -> None:
    """Read from the running replicas; and each is what it is told to be when they train."""
    expected = _expected(system, "TFJob")
    kube = system.cluster.kube
    servers, workers = expected["cluster"]["ps"], expected["cluster"]["worker"]
    training = parameter_servers.start(
        system.cluster, tensorflow, ns, "whole", ps=len(servers), workers=len(workers), gpus=0
    )
    with expect("all replicas run"):
        running = wait_running(kube, ns, 1 + len(servers) + len(workers), deadline=STARTED)
    with tables.judged() as table:
        for name, wanted in _replicas("whole", expected, ns).items():
            process = environment.of_process(kube, ns, name, container=parameter_servers.CONTAINER)
            found = json.loads(process.get("TF_CONFIG", "{}"))
            table.hold(name, found == wanted, f"found {found}, documented {wanted}")
        _services(kube, ns, {pod["metadata"]["name"]: pod for pod in running}, table)
    with expect("every worker trains, and a checkpoint is written"):
        lines = training.wait(_trained_by(len(workers)), deadline=STARTED, why="steps of all")
    wrong = parameter_servers.step_faults(lines, [f"whole-worker-{n}" for n in range(len(workers))])
    assert not wrong, "; ".join(wrong)
    files = (training.folder.parent / "checkpoints").glob("*.data-*")
    shares = {path.name.partition("-of-")[2] for path in files}
    # one of each parameter server, and one of the chief, which holds the place in the epoch
    assert shares == {f"{len(servers) + 1:05d}"}, f"a checkpoint has shares {sorted(shares)}"


def _trained_by(workers: int) -> Callable[[list[ProgressLine]], list[ProgressLine] | None]:
    """The lines up to the last checkpoint, once so many workers have a share in it."""

    def found(lines: list[ProgressLine]) -> list[ProgressLine] | None:
        told = parameter_servers.settled(lines)
        return told if parameter_servers.all_work(told, workers) else None

    return found


def _replicas(job: str, expected: Any, ns: str) -> dict[str, Any]:
    """Pod -> its ``TF_CONFIG``, as it is documented."""
    cluster = {
        role: [address.replace("{ns}", ns) for address in addresses]
        for role, addresses in expected["cluster"].items()
    }
    return {
        f"{job}-{role}-{index}": {
            **expected["more"], "cluster": cluster, "task": {"type": role, "index": index}
        }
        for role, addresses in cluster.items()
        for index in range(len(addresses))
    }  # fmt: skip


def _services(kube: Kube, ns: str, pods: dict[str, Object], table: tables.Cells) -> None:
    """Each pod's address is a service that selects this pod and no other."""
    late = tables.reach(
        kube, SERVICES, ns, {name: lambda item: item is not None for name in pods},
        deadline=ANSWER,
    )  # fmt: skip
    for name in late:
        table.broke(name, "it has no service, so its address leads nowhere")
    for service in kube.find(SERVICES, ns):
        name = service["metadata"]["name"]
        labels = ",".join(f"{k}={v}" for k, v in service["spec"].get("selector", {}).items())
        chosen = sorted(p["metadata"]["name"] for p in kube.find(PODS, ns, labels=labels))
        table.hold(name, chosen == [name], f"its service leads to {chosen}")


def _environment(pod: Object) -> dict[str, str]:
    (container,) = pod["spec"]["containers"]
    return {item["name"]: item["value"] for item in container["env"] if "value" in item}


def _expected(system: SystemUnderTest, kind: str) -> Any:
    operator = system.operator
    tables_of = EXPECTED.get(operator.name) or {}
    minor = ".".join(operator.version.split(".")[:2])
    # a build of one's own is held to the newest version there is a table for
    newest = [*tables_of.values()][-1] if tables_of and ":" in operator.version else None
    found = tables_of.get(minor) or newest
    if not found:
        raise NotApplicable(
            f"no expected configuration is written down for {operator.name} {operator.version}"
        )
    return found[kind]
