"""Systems that are processes of this host: killed, frozen, away, and back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import Place

from chaos.errors import FaultError, NotProven
from chaos.faults.systems import FreezeSystem, KillSystem, RollSystem, TakeSystemAway
from chaos.injecting import Injector
from chaos.site import Site
from chaos.target import Target
from chaos.undo.steps import Reinstall
from clusters import ledger, local
from clusters.cluster import Capability
from clusters.local import LocalProcess
from clusters.processes import start_of

EMBEDDED = frozenset({Capability.OWN_CLUSTER, Capability.LOCAL_PROCESSES})
TARGET = Target("scheduler", "coscheduling", "scheduler-plugins", "scheduler")


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Place]:
    """A cluster with a scheduler and its controller."""
    place = Place(tmp_path, capabilities=EMBEDDED, provider="embedded")
    ledger.folder("mine").mkdir(parents=True)
    processes = local.of(place.site.cluster)
    for name in ("scheduler-plugins-scheduler", "scheduler-plugins-controller"):
        processes.start(LocalProcess(name, ("sleep", "600"), system="coscheduling"))
    yield place
    processes.stop_all()


def pid(place: Place, name: str = "scheduler-plugins-scheduler") -> int | None:
    state = local.of(place.site.cluster).state(name)
    return state.pid if state is not None else None


def test_it_is_killed_and_started_again(there: Place) -> None:
    before, other = pid(there), pid(there, "scheduler-plugins-controller")
    injector = Injector(there.site)
    fault = KillSystem(there.site, TARGET)
    assert list(injector(fault).evidence) == [f"process {before} (scheduler-plugins-scheduler)"]
    injector.recover(fault)
    assert pid(there) not in (None, before)
    assert pid(there, "scheduler-plugins-controller") == other, "the controller was not meant"


def test_it_is_frozen_and_goes_on(there: Place) -> None:
    injector = Injector(there.site)
    fault = FreezeSystem(there.site, TARGET)
    injector(fault)
    number = pid(there)
    assert number is not None
    assert state(number) == "T"
    injector.recover(fault)
    assert state(number) in "RS"  # it runs for a moment, to see that it sleeps on


def test_it_is_away_and_comes_back(there: Place) -> None:
    injector = Injector(there.site)
    fault = TakeSystemAway(there.site, TARGET)
    injector(fault)
    assert pid(there) is None
    with pytest.raises(FaultError, match="does not run"):
        injector(KillSystem(there.site, TARGET))
    injector.recover(fault)
    assert pid(there) is not None


def test_it_is_rolled_to_another_version(there: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program takes its place, and is the proof; in the end the former one is back."""
    runs = {"old": "sleep", "new": "tail"}

    def reinstall(step: Reinstall, site: Site) -> None:
        program = shutil.which(runs[step.scheduler])
        assert program is not None
        argv = (program, "600") if step.scheduler == "old" else (program, "-f", "/dev/null")
        name = "scheduler-plugins-scheduler"
        local.of(site.cluster).start(LocalProcess(name, argv, system="coscheduling"))

    monkeypatch.setattr(Reinstall, "run", reinstall)
    reinstall(Reinstall(scheduler="old", which="scheduler"), there.site)
    injector = Injector(there.site)
    fault = RollSystem(there.site, TARGET, operator="o", scheduler="old", to="new")
    evidence = injector(fault).evidence
    assert evidence["before"].endswith("/sleep")
    assert evidence["now"].endswith("/tail")
    injector.recover(fault)
    same = RollSystem(there.site, TARGET, operator="o", scheduler="old", to="old")
    with pytest.raises(NotProven, match="but the same runs"):
        injector(same)


def state(number: int) -> str:
    assert start_of(number) is not None
    return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
