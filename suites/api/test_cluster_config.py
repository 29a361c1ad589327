"""What each replica is told of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.kube import PODS, SERVICES, Kube, Object
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.given import Expecting
from oracles.errors import NotApplicable
from suites import tables
from suites.cast import ANSWER, Cast

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
    from fixtures.workloads import Program, tfjob

    cast.create(tfjob("whole", program=Program(beat_ms=1000), **more))
    pods = cast.run()
    cluster = {
        role: [address.replace("{ns}", ns) for address in addresses]
        for role, addresses in expected["cluster"].items()
    }
    with tables.judged() as table:
        for role, addresses in cluster.items():
            for index in range(len(addresses)):
                name = f"whole-{role}-{index}"
                found = json.loads(_environment(pods[name]).get("TF_CONFIG", "{}"))
                wanted = {**expected["more"], "cluster": cluster,
                          "task": {"type": role, "index": index}}  # fmt: skip
                table.hold(name, found == wanted, f"found {found}, documented {wanted}")
        _services(cast.kube, ns, pods, table)


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
