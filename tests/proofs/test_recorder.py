"""A recorder that did not see everything: then nobody can say PASS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from clusters.kube import PODS, Kube
from fixtures.plugin import recording
from fixtures.plugin.clusters import SystemUnderTest
from fixtures.plugin.outcomes import RECORD
from fixtures.plugin.recording import Book
from fixtures.workloads import gang_pods
from oracles.reading import History
from oracles.recorder import Desk, Recorder
from suites import pods
from tests.wire import Aged, Wire

pytestmark = pytest.mark.proof

#: seconds in which everything that happened has to be in the history
SEEN = 30.0


@dataclass
class Watched:
    """A recorder of the test's own, at the end of a wire; and a pod that things happen to."""

    wire: Wire
    api: Aged
    recorder: Recorder
    kube: Kube
    namespace: str

    def happen(self) -> None:
        """Let something happen to the pod."""
        patch = {"metadata": {"annotations": {"seen": self.wire.kubeconfig.name}}}
        self.kube.patch(PODS, "pod-0", patch, self.namespace)


@pytest.fixture
def watched(
    request: pytest.FixtureRequest, system: SystemUnderTest, ns: str, tmp_path: Path
) -> Iterator[Watched]:
    """The test is judged by what its own recorder saw."""
    assert system.book is not None
    record = request.node.stash[RECORD]
    wire = Wire(system.cluster.kubeconfig, tmp_path)
    api = Aged(Kube(wire.kubeconfig))
    facts = History(system.book.history).header.facts
    name = system.cluster.name
    path = tmp_path / "history.jsonl"
    recorder = Recorder(api, path, run="proof", cluster=name, facts=facts).start()
    desk = Desk(recorder, tmp_path / "desk")
    record.system = replace(system, book=Book(recorder.path, desk.path))
    recording.begin(record)
    kube = system.cluster.kube
    kube.create(gang_pods("pod", 1)[0], namespace=ns)
    pods.wait_bound(kube, ns, 1, deadline=pods.ADMISSION)
    assert recorder.settle(SEEN) == []
    yield Watched(wire, api, recorder, kube, ns)
    record.system = system
    desk.close()
    wire.close()
    recorder.stop(settle=0)


@pytest.mark.proves("recorder", by="its connections were cut, and taken up again", outcome="PASS")
def test_cut_and_taken_up_again(watched: Watched) -> None:
    for _ in range(3):
        assert watched.wire.cut() > 0
        watched.happen()
        # taken up by now, so that there is something to cut again
        assert watched.recorder.settle(SEEN) == []
    assert watched.recorder.statistics().resumed > 0


@pytest.mark.proves(
    "recorder",
    by="its watch was cut, and the server had no more what came then",
    outcome="INCONCLUSIVE",
    shows="gap: Pod",
)
def test_an_expired_watch(watched: Watched) -> None:
    watched.api.meanwhile = watched.happen
    watched.api.armed = True
    assert watched.wire.cut() > 0


@pytest.mark.proves(
    "recorder",
    by="its connections were cut, and stayed so to the test's end",
    outcome="INCONCLUSIVE",
    shows="gap: Pod",
)
def test_cut_for_good(watched: Watched) -> None:
    watched.wire.close()
    watched.happen()
