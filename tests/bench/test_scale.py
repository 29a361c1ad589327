"""The bench of gangs at scale: what needs no cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from clusters.local import LocalProcess
from oracles.errors import UsageError
from tests.bench.scale import cells, report, settings
from tests.bench.scale.load import GPUS, SIZE, Load
from tests.bench.scale.measures import Change, timeline
from tests.bench.scale.plot import Panel, svg


def bound(gang: str, start: float, count: int = SIZE, every: float = 0.0) -> list[Change]:
    """Pods of a gang, bound one after the other."""
    return [Change(start + every * number, gang) for number in range(count)]


@pytest.mark.parametrize("nodes", [25, 100, 250, 500, 1000])
def test_room_is_whole_and_sixty_percent(nodes: int) -> None:
    load = Load(nodes)
    assert load.room == load.fit * SIZE == (nodes - load.blocked) * GPUS
    assert load.fit == 0.6 * load.gangs
    assert load.gangs * SIZE * 5 == nodes * SIZE
    assert sorted(load.names) == load.names


@pytest.mark.parametrize("nodes", [0, 24, 110])
def test_other_sizes_are_refused(nodes: int) -> None:
    with pytest.raises(UsageError, match="multiple of 25"):
        Load(nodes)


def test_admissions_and_how_long_they_took() -> None:
    seen = timeline(
        [*bound("a", 1.0, every=0.1), *bound("b", 10.0)], gangs=3, room=2 * SIZE, until=30.0
    )
    assert seen.whole == pytest.approx((7.3, 10.0))
    assert seen.longest == pytest.approx(6.3)
    assert seen.partial == ()
    assert seen.bound == 2 * SIZE


def test_idle_is_room_for_whole_gangs_until_the_last_admission() -> None:
    """Two gangs fit for 1 s, one for 9 s more; what a begun gang still needs is not idle."""
    seen = timeline(
        [*bound("a", 1.0, every=0.1), *bound("b", 10.0)], gangs=3, room=2 * SIZE + 5, until=30.0
    )
    assert seen.idle == pytest.approx(2 * SIZE * 1 + SIZE * 9)


def test_no_gang_waits_no_room_is_idle() -> None:
    seen = timeline(bound("a", 4.0), gangs=1, room=3 * SIZE, until=30.0)
    assert seen.idle == pytest.approx(SIZE * 4)


def test_room_that_is_never_given_is_idle_to_the_end() -> None:
    assert timeline([], gangs=2, room=SIZE, until=30.0).idle == pytest.approx(SIZE * 30)
    seen = timeline(bound("a", 4.0), gangs=2, room=2 * SIZE, until=30.0)
    assert seen.idle == pytest.approx(2 * SIZE * 4 + SIZE * 26)


def test_part_of_a_gang_is_seen() -> None:
    changes = [*bound("a", 1.0), *bound("b", 2.0, count=3), Change(9.0, "a", -1)]
    seen = timeline(changes, gangs=2, room=2 * SIZE, until=20.0)
    assert seen.partial == ("a", "b")
    assert seen.bound == SIZE + 2
    assert seen.whole == (1.0,)


def test_default_is_the_smallest_size_of_every_scheduler() -> None:
    made = cells()
    assert {cell.nodes for cell in made} == {100}
    assert [cell.scheduler for cell in made] == ["coscheduling", "volcano", "kueue", "native"]
    assert {cell.limits.name for cell in made} == {"raised"}
    assert len(cells([100, 1000], ["native"], ["default", "raised"])) == 4


@pytest.mark.parametrize(
    ("name", "limits", "qps", "wait"),
    [
        ("kube-scheduler", "default", 50, 10),
        ("kube-scheduler", "raised", 2000, 10),
        ("kueue-controller-manager", "default", 7, 10),
    ],
)
def test_limits_in_a_configuration_file(
    tmp_path: Path, name: str, limits: str, qps: int, wait: int
) -> None:
    """The last --config wins; what Kueue ships is left as it is."""
    path = tmp_path / "config.yaml"
    plugin = {"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 1}}
    config = {
        "clientConnection": {"qps": 7, "burst": 9, "kubeconfig": "k"},
        "profiles": [{"pluginConfig": [plugin]}],
    }
    path.write_text(yaml.safe_dump(config))
    process = LocalProcess(name, ("program", "--config=/none", f"--config={path}"))
    made, told = settings._limited(process, settings.LIMITS[limits], wait)
    assert made == process
    written = yaml.safe_load(path.read_text())
    assert written["clientConnection"]["qps"] == qps
    assert written["clientConnection"]["kubeconfig"] == "k"
    assert written["profiles"][0]["pluginConfig"][0]["args"] == {"permitWaitingTimeSeconds": wait}
    assert f"qps {qps}" in told
    assert "permit wait 10 s" in told


def test_limits_as_flags() -> None:
    process = LocalProcess("volcano-scheduler", ("program", "--v=3", "--kube-api-qps=5"))
    raised, told = settings._limited(process, settings.LIMITS["raised"], 60)
    assert raised.argv == ("program", "--v=3", "--kube-api-qps=2000", "--kube-api-burst=4000")
    assert told == "qps 2000, burst 4000"
    released, told = settings._limited(process, settings.LIMITS["default"], 60)
    assert released.argv == ("program", "--v=3")
    assert told == "as released"


def test_a_silent_log_is_an_argument() -> None:
    process = LocalProcess("volcano-scheduler", ("program", "-v=3", "--vx=3"))
    assert settings._silenced(process, settings.LIMITS["raised"]) == process
    silent = settings._silenced(process, settings.LIMITS["raised-silent"])
    assert silent.argv == ("program", "-v=0", "--vx=3")


def record(nodes: int, **changes: Any) -> dict[str, Any]:
    """A cell as it is measured."""
    used = {
        "seconds": 20.0, "cpu_s": {"volcano-scheduler": 5.0, "kube-apiserver": 9.0, "bench": 0.1},
        "cpu_s_of_others": 3.0, "requests": {"POST pods/binding": {"count": 768, "ms": 2.0}},
    }  # fmt: skip
    return {
        "scheduler": "volcano", "version": "1.8.0", "nodes": nodes, "limits": "raised",
        "room": 12, "admitted": 12, "gave_up": "", "gangs_per_second": 0.6, "first_s": 1.0,
        "last_s": 20.0, "idle_gpu_s": 9, "idle_share": 0.5, "longest_binding_s": 1.5,
        "partial_at_end": [], "violations_found": 0, "peak_mib": {"volcano-scheduler": 100},
        "usage": used, **changes,
    }  # fmt: skip


def test_cells_are_put_beside_those_that_are_there(tmp_path: Path) -> None:
    report.write(tmp_path, [record(1000), record(100)])
    page = tmp_path / "scale.md"
    page.write_text("# Mine\n\nWhat it means.\n\n" + page.read_text().partition("\n\n")[2])
    found = report.write(tmp_path, [record(100, gangs_per_second=7.25)])
    assert [cell["nodes"] for cell in found] == [100, 1000]
    data = json.loads((tmp_path / "scale.json").read_text())
    assert data["schema"] == report.SCHEMA
    assert [cell["gangs_per_second"] for cell in data["cells"]] == [7.25, 0.6]
    text = page.read_text()
    assert text.startswith("# Mine\n\nWhat it means.\n\n" + report.MARK)
    assert text.count(report.MARK) == 1
    assert "| volcano 1.8.0, raised | 100 | 12 of 12 | 7.25 | 1.0 | 20.0 |" in text


def test_what_went_wrong_is_in_the_table() -> None:
    cell = record(
        100, admitted=0, first_s=None, last_s=None, gave_up="time over", partial_at_end=["g1"],
        violations_found=2,
    )  # fmt: skip
    text = report.markdown([cell])
    assert "0 of 12 (time over)" in text
    assert "| 1, 2 over the grace |" in text
    assert report.picture([cell]).startswith("<svg")


def test_plot_is_well_formed_and_grows_upwards() -> None:
    panel = Panel("t <&>", "nodes", {"a": [(100, 1.0), (1000, 10.0)]}, [100, 1000])
    root = ElementTree.fromstring(svg([panel], ["a"]))
    (line,) = (e for e in root.iter() if e.tag.endswith("polyline"))
    (x1, y1), (x2, y2) = (map(float, pair.split(",")) for pair in line.attrib["points"].split())
    assert x1 < x2
    assert y1 > y2
