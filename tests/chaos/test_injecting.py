"""A fault is proven, noted, and undone in the end."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from places import THEIRS, Place

from chaos import looking
from chaos.errors import FaultError, NotMended, NotOurs, NotProven
from chaos.faults.base import Planned, Proof, Scope
from chaos.faults.jobs import ScaleJob
from chaos.faults.nodes import Cordon
from chaos.faults.pod import DeletePod
from chaos.injecting import Injector
from chaos.undo import Journal, PowerOn, Step
from clusters.kube import NAMESPACES, NODES, PYTORCHJOBS
from oracles.errors import NotApplicable


class Off(Planned):
    """A node is off."""

    name = "node off"
    pauses = ("operator",)

    def __init__(self, place: Place, node: str = "n1", trouble: Exception | None = None) -> None:
        super().__init__(place.site)
        self.place = place
        self.node = node
        self.trouble = trouble
        self.written: list[str] = []
        self.recovers = threading.Event()

    @property
    def about(self) -> str:
        return self.node

    def look(self) -> list[Step]:
        return [PowerOn(node=self.node)]

    def inject(self) -> None:
        self.written = [entry.fault for entry in Journal(self.site).entries()]
        self.site.provider.stop_node(self.site.cluster, self.node)

    def proof(self, *, deadline: float = 30.0) -> Proof:
        if self.trouble is not None:
            raise self.trouble
        return Proof(f"{self.node} is off", {"node": self.node}, 1.0)

    def healed(self) -> None:
        self.recovers.set()


def test_it_is_written_down_before_and_forgotten_after(place: Place) -> None:
    notes: list[tuple[str, str, dict[str, Any]]] = []
    injector = Injector(place.site, note=lambda *said: notes.append(said))  # type: ignore[arg-type]
    fault = Off(place)
    proof = injector(fault, recovers={"kind": "TFJob"})
    assert fault.written == ["node off"]
    assert proof.what == "n1 is off"
    assert injector.open == [fault]
    injector.recover(fault)
    injector.recover(fault)
    assert place.provider.calls == ["stop n1", "start n1"]
    assert injector.open == []
    assert Journal(place.site).entries() == []
    assert [said[0] for said in notes] == ["inject", "proven", "recover"]
    ids = {said[2]["id"] for said in notes}
    assert len(ids) == 1
    assert all(said[2]["pauses"] == ["operator"] for said in notes)
    assert notes[1][2]["recovers"] == {"kind": "TFJob"}
    assert notes[1][2]["evidence"] == {"node": "n1"}


def test_the_last_is_mended_first(place: Place) -> None:
    injector = Injector(place.site)
    injector(Off(place, "n1"))
    injector(Off(place, "n2"))
    injector.close()
    assert place.provider.calls == ["stop n1", "stop n2", "start n2", "start n1"]


@pytest.mark.parametrize("trouble", [NotProven("it is still on"), KeyboardInterrupt()])
def test_what_is_not_proven_is_undone(place: Place, trouble: Exception) -> None:
    notes: list[str] = []
    injector = Injector(place.site, note=lambda *said: notes.append(said[0]))
    with pytest.raises(type(trouble)):
        injector(Off(place, trouble=trouble))
    assert place.provider.calls == ["stop n1", "start n1"]
    assert notes == ["inject", "unproven", "recover"]
    assert Journal(place.site).entries() == []


def test_nothing_to_break_is_an_error_and_leaves_nothing(place: Place) -> None:
    injector = Injector(place.site)
    with pytest.raises(FaultError, match="no pod t/p"):
        injector(DeletePod(place.site.cluster, "t", "p"))
    assert Journal(place.site).entries() == []


def test_at_its_deadline_it_is_undone_and_that_is_told(place: Place) -> None:
    injector = Injector(place.site)
    fault = Off(place)
    injector(fault, within=0.05)
    assert fault.recovers.wait(5)
    for _ in range(100):
        if not injector.open:
            break
        time.sleep(0.01)
    assert place.provider.calls == ["stop n1", "start n1"]
    with pytest.raises(NotMended, match="its time was over"):
        injector.close()
    injector.close()


def test_what_does_not_mend_stays_written_down(place: Place) -> None:
    injector = Injector(place.site)

    class Stuck(Off):
        def healed(self) -> None:
            raise FaultError("it does not start")

    injector(Stuck(place))
    with pytest.raises(NotMended, match="does not start"):
        injector.close()
    assert len(Journal(place.site).entries()) == 1


class Elsewhere(Off):
    scope = Scope.NAMESPACE
    namespace = "t"


def test_somebodys_cluster_is_not_touched(tmp_path: Path) -> None:
    place = Place(tmp_path, name="theirs", capabilities=THEIRS, provider="existing:theirs")
    injector = Injector(place.site)
    with pytest.raises(NotOurs, match="--i-own-this-cluster theirs"):
        injector(Off(place))
    place.kube.put(NAMESPACES, {"metadata": {"name": "t"}})
    with pytest.raises(NotOurs, match="not of this harness"):
        injector(Elsewhere(place))
    assert place.provider.calls == []
    assert issubclass(NotOurs, NotApplicable)


def test_a_namespace_of_ours_may_be_broken_anywhere(tmp_path: Path) -> None:
    place = Place(tmp_path, name="theirs", capabilities=THEIRS, provider="existing:theirs")
    place.kube.put(NAMESPACES, {"metadata": {"name": "t", "labels": {"muster.dev/run": "r"}}})
    injector = Injector(place.site)
    injector(Elsewhere(place))
    injector.close()
    assert place.provider.calls == ["stop n1", "start n1"]


def test_an_owner_may_allow_it(tmp_path: Path) -> None:
    place = Place(tmp_path, name="theirs", capabilities=THEIRS, provider="existing:theirs")
    with pytest.raises(NotOurs):
        Injector(place.site, owned=["another"])(Off(place))
    injector = Injector(place.site, owned=["theirs"])
    assert injector(Off(place)).what == "n1 is off"
    injector.close()


def test_a_fault_that_says_not_what_it_touches_is_taken_to_touch_all(tmp_path: Path) -> None:
    place = Place(tmp_path, name="theirs", capabilities=THEIRS, provider="existing:theirs")

    class Plain:
        name = "plain"

        def inject(self) -> None: ...
        def proof(self, *, deadline: float = 30.0) -> Proof: ...
        def recover(self) -> None: ...

    with pytest.raises(NotOurs):
        Injector(place.site)(Plain())


def test_a_job_that_was_scaled_is_no_trouble_of_the_cluster(place: Place) -> None:
    """A node that is cordoned is; both are different from before."""
    place.provider.scripts = {"routes": "kubelet: active\nproxy: inactive\n"}
    ready = [{"type": "Ready", "status": "True"}]
    place.kube.put(NODES, {"metadata": {"name": "n1"}, "status": {"conditions": ready}})
    workers = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}
    place.kube.put(PYTORCHJOBS, {"metadata": {"name": "work"}, "spec": workers}, "t")
    before = looking.look(place.site)
    assert looking.troubles(place.site) == []
    injector = Injector(place.site)
    fault = ScaleJob(place.site, PYTORCHJOBS, "t", "work", 0)
    injector(fault)
    assert looking.troubles(place.site) == []
    assert looking.differences(before, looking.look(place.site)) == [
        "faults within namespaces: '' became 't: scale job'"
    ]
    injector(Cordon(place.site, "n1"))
    assert looking.troubles(place.site) == ["faults in force: cordon node", "n1 is cordoned"]
    injector.close()
    assert looking.differences(before, looking.look(place.site)) == []
