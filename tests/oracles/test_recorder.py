"""The recorder against a server that does everything that goes wrong."""

from __future__ import annotations

import json
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from oracles.errors import HarnessError
from oracles.history import Event, Header
from oracles.pruning import Pruner
from oracles.reading import History
from oracles.recorder import Kind, Recorder, filling, following
from oracles.recorder.writer import HistoryFile, Record
from tests.oracles.apiserver import ApiServer, wait_until

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "oracles" / "schemas" / "history.v1.json").read_text()
)
GROUPS = Kind("scheduling.x-k8s.io/v1alpha1", "PodGroup")


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "REST", 0.001)
    monkeypatch.setattr(following, "RECONNECT", (0.02, 0.1))


@pytest.fixture
def record(api: ApiServer, tmp_path: Path) -> Iterator[Callable[..., Recorder]]:
    made: list[Recorder] = []

    def start(**more: Any) -> Recorder:
        path = tmp_path / "history.jsonl"
        recorder = Recorder(api.kube(tmp_path), path, run="r", cluster="c", **more)
        made.append(recorder)
        return recorder.start(deadline=10)

    yield start
    for recorder in made:
        recorder.stop(settle=0)


def events(recorder: Recorder) -> list[Event]:
    """In the order of the file; every line is what the schema says."""
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for line in recorder.path.read_text().splitlines():
        validator.validate(json.loads(line))
    history = History(recorder.path)
    found = list(history.arrived())
    assert history.damage == []
    return found


def of(recorder: Recorder, kind: str = "Pod", source: str = "watch") -> list[Event]:
    return [e for e in events(recorder) if e.kind == kind and e.source == source]


def counts(recorder: Recorder) -> list[int]:
    return [int(e.object["metadata"]["annotations"]["n"]) for e in of(recorder)]


def put(api: ApiServer, n: int, name: str = "p") -> int:
    return api.put("Pod", name, metadata={"annotations": {"n": str(n)}})


def test_state_changes_and_end_of_every_object(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    api.put("Pod", "before", spec={"nodeName": "n1", "volumes": []}, status={"phase": "Running"})
    recorder = record()
    api.put("Pod", "new", metadata={"labels": {"a": "b"}})
    api.put("PyTorchJob", "job", spec={"x": [1, None]}, status={"y": "z"})
    last = api.delete("Pod", "before")
    assert recorder.settle(5) == []

    pods = of(recorder)
    assert [(e.type, e.name) for e in pods] == [
        ("ADDED", "before"),
        ("ADDED", "new"),
        ("DELETED", "before"),
    ]
    assert pods[0].object == {
        "metadata": {
            "name": "before",
            "namespace": "t",
            "uid": "uid-1",
            "resourceVersion": "101",
        },
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running"},
    }
    assert pods[2].rv == last
    assert pods[0].uid == pods[2].uid == "uid-1"
    (job,) = of(recorder, "PyTorchJob")
    assert job.object["spec"] == {"x": [1, None]}
    assert job.object["apiVersion"] == "kubeflow.org/v1"
    assert "managedFields" not in job.object["metadata"]


def test_seq_counts_from_one_and_times_do_not_fall(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record()
    for n in range(50):
        put(api, n)
        api.put("Node", f"n{n % 3}", "")
    recorder.settle(5)
    found = events(recorder)
    assert [e.seq for e in found] == list(range(1, len(found) + 1))
    assert [e.mono for e in found] == sorted(e.mono for e in found)
    assert all(abs(e.t - time.time()) < 60 for e in found)


def test_broken_connections_lose_nothing_and_are_noted(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record()
    for n in range(300):
        put(api, n)
        if n % 30 == 7:
            api.cut("Pod")
    assert recorder.settle(10) == []
    assert counts(recorder) == list(range(300))
    gaps = of(recorder, source="gap")
    assert gaps
    assert {e.type for e in gaps} == {"resumed"}
    assert all(e.object["why"] for e in gaps)
    assert recorder.statistics().gaps == 0
    assert recorder.statistics().resumed == len(gaps)


def test_the_server_away_for_a_while(api: ApiServer, record: Callable[..., Recorder]) -> None:
    recorder = record()
    put(api, 1)
    recorder.settle(5)
    api.down()
    put(api, 2)
    wait_until(lambda: "not connected" in recorder.statistics().states["Pod (v1)"])
    assert [line for line in recorder.settle(0.2) if line.startswith("Pod")] != []
    api.up()
    put(api, 3)
    assert recorder.settle(10) == []
    assert counts(recorder) == [1, 2, 3]
    kinds = [(e.type, e.object["why"][:13]) for e in of(recorder, source="gap")]
    # what could not be confirmed while it was away, and the connection taken up again
    assert kinds[:2] == [("begin", "not confirmed"), ("end", "not confirmed")]
    assert [type for type, _ in kinds[2:]] == ["resumed"]


def test_watches_that_the_server_ends_are_nothing_to_note(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record()
    for n in range(100):
        put(api, n)
        if n % 20 == 3:
            api.end_watches()
    assert recorder.settle(10) == []
    assert counts(recorder) == list(range(100))
    assert [e for e in events(recorder) if e.source == "gap"] == []


def test_an_expired_watch_is_a_gap_with_what_changed_meanwhile(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record()
    put(api, 1, "stays")
    put(api, 1, "changes")
    put(api, 1, "goes")
    last = put(api, 1, "replaced")
    recorder.settle(5)
    api.down()
    api.delete("Pod", "goes")
    api.delete("Pod", "replaced")
    again = put(api, 2, "replaced")
    put(api, 2, "changes")
    api.put("Node", "n", "")
    api.forget()
    now = api.version
    api.up()
    wait_until(lambda: recorder.statistics().gaps > 0)
    assert recorder.settle(10) == []

    found = of(recorder) + of(recorder, source="gap")
    meanwhile = sorted((e for e in found if e.seq > 4), key=lambda e: e.seq)
    assert [(e.type, e.name) for e in meanwhile] == [
        ("begin", ""),
        ("DELETED", "replaced"),
        ("ADDED", "replaced"),
        ("ADDED", "changes"),
        ("DELETED", "goes"),
        ("end", ""),
    ]
    begin, deleted, added, *_, end = meanwhile
    assert begin.rv == last
    assert end.rv == now
    assert "too old" in begin.object["why"]
    assert (end.object["changed"], end.object["gone"]) == (2, 2)
    # the old one went before the new one came, in the order of versions too
    assert deleted.rv == added.rv == again
    assert deleted.uid != added.uid
    assert [e.name for e in History(recorder.path).events() if e.kind == "Pod"][-5:-1] == [
        "replaced",
        "replaced",
        "changes",
        "goes",
    ]


def test_what_a_server_with_a_new_cache_does_not_tell_is_in_its_store(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    """Each change in its order, also of what came and went meanwhile: no gap."""
    recorder = record()
    put(api, 1, "stays")
    put(api, 1, "changes")
    put(api, 1, "goes")
    recorder.settle(5)
    before = len(events(recorder))
    api.down()
    rvs = [put(api, 2, "changes"), api.delete("Pod", "goes"), put(api, 1, "comes")]
    api.put("Node", "n", "")
    rvs += [put(api, 3, "changes"), api.delete("Pod", "comes"), put(api, 9, "comes")]
    api.cache_anew()
    api.up()
    wait_until(lambda: len(of(recorder)) >= 3 + len(rvs))
    assert recorder.settle(10) == []
    meanwhile = [e for e in events(recorder)[before:] if e.kind == "Pod"]
    assert [(e.type, e.name, e.rv) for e in meanwhile[1:]] == list(
        zip(
            ["MODIFIED", "DELETED", "ADDED", "MODIFIED", "DELETED", "ADDED"],
            ["changes", "goes", "comes", "changes", "comes", "comes"],
            rvs,
            strict=True,
        )
    )
    assert (meanwhile[0].source, meanwhile[0].type) == ("gap", "resumed")
    assert "too old" in meanwhile[0].object["why"]
    assert recorder.statistics().gaps == 0
    put(api, 4, "changes")
    assert recorder.settle(5) == []
    assert of(recorder)[-1].rv == api.version, "it is watched on"


def test_too_much_to_be_asked_for_is_a_gap(
    api: ApiServer, record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "MOST", 3)
    recorder = record()
    put(api, 1)
    recorder.settle(5)
    api.down()
    for n in range(4):
        put(api, n)
    api.cache_anew()
    api.up()
    wait_until(lambda: recorder.statistics().gaps > 0)
    assert recorder.settle(10) == []
    assert counts(recorder) == [1, 3]


def test_a_watch_that_ends_with_an_error_is_taken_up_again(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record()
    put(api, 1)
    api.error("Pod", 500)
    put(api, 2)
    assert recorder.settle(10) == []
    assert counts(recorder) == [1, 2]
    assert [e.type for e in of(recorder, source="gap")] == ["resumed"]


def test_nonsense_in_a_watch_is_a_gap(
    api: ApiServer, record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "ABSENT", 0.05)
    recorder = record()
    put(api, 1)
    recorder.settle(5)
    api.nonsense("Pod")
    wait_until(lambda: recorder.statistics().gaps > 0)
    api.forget()  # it would come again
    put(api, 2)
    assert recorder.settle(10) == []
    assert counts(recorder) == [1, 2]
    assert [e.type for e in of(recorder, source="gap")] == ["begin", "end"]


def test_kinds_that_are_served_later(api: ApiServer, record: Callable[..., Recorder]) -> None:
    recorder = record(kinds=[GROUPS])
    assert recorder.statistics().states[str(GROUPS)] == "not served"
    assert recorder.settle(5) == []
    api.served[GROUPS.api_version] = {"podgroups": "PodGroup"}
    api.put("CustomResourceDefinition", "podgroups.scheduling.x-k8s.io", "")
    wait_until(lambda: api.watchers("PodGroup") == 1)
    api.put("PodGroup", "g", spec={"minMember": 3})
    assert recorder.settle(5) == []
    (group,) = of(recorder, "PodGroup")
    assert group.object["spec"] == {"minMember": 3}
    assert of(recorder, "PodGroup", "gap") == []


def test_objects_that_were_there_before_their_kind_was_watched(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record(kinds=[GROUPS])
    api.put("PodGroup", "g")
    api.served[GROUPS.api_version] = {"podgroups": "PodGroup"}
    api.put("CustomResourceDefinition", "podgroups.scheduling.x-k8s.io", "")
    wait_until(lambda: api.watchers("PodGroup") == 1)
    found = [e for e in events(recorder) if e.kind == "PodGroup"]
    assert [e.type for e in found] == ["begin", "ADDED", "end"]


def test_a_kind_that_may_not_be_read_is_a_gap(
    api: ApiServer, record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "ABSENT", 0.05)
    api.refuse["Node"] = 403
    recorder = record()
    assert recorder.statistics().states["Node (v1)"] == "refused"
    assert [e.type for e in of(recorder, "Node", "gap")] == ["begin"]
    del api.refuse["Node"]
    wait_until(lambda: api.watchers("Node") == 1)
    assert [e.type for e in of(recorder, "Node", "gap")] == ["begin", "end"]


def test_bookmarks_move_the_place_from_which_a_watch_is_taken_up(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record()
    put(api, 1)
    recorder.settle(5)
    for _ in range(50):
        api.put("Node", "n", "")
    place = api.bookmark("Pod") - 1
    api.bookmark("Pod")
    wait_until(lambda: _version(recorder) >= place)
    with api.lock:
        api.forgotten = place  # would be too late for a watch from the last pod on
    api.cut("Pod")
    put(api, 2)
    assert recorder.settle(5) == []
    assert counts(recorder) == [1, 2]
    assert recorder.statistics().gaps == 0


def _version(recorder: Recorder) -> int:
    return recorder._followers[Kind("v1", "Pod")]._version


def test_settle_waits_for_what_is_on_its_way(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record()
    put(api, 1, "old")
    recorder.settle(5)
    with api.silence("Pod"):
        put(api, 2, "late")
        api.delete("Pod", "old")
        done: list[list[str]] = []
        waiting = threading.Thread(target=lambda: done.append(recorder.settle(10)))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert [e.name for e in of(recorder)] == ["old"]
    waiting.join(10)
    assert done == [[]]
    assert [(e.type, e.name) for e in of(recorder)][1:] == [("ADDED", "late"), ("DELETED", "old")]


def test_settle_waits_for_the_end_of_what_broke(
    api: ApiServer, record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a kind of which there is nothing, so that no object is waited for."""
    monkeypatch.setattr(following, "RECONNECT", (0.5, 0.5))
    recorder = record()
    assert recorder.settle(10) == []
    api.put("ConfigMap", "after-all-watches", "other")
    api.forget()
    api.cut("Service")
    wait_until(lambda: recorder.statistics().states["Service (v1)"] == "not connected")
    assert recorder.settle(10) == []
    assert [e.type for e in of(recorder, "Service", "gap")] == ["begin", "end"]


@pytest.mark.parametrize("what", ["made", "gone"])
def test_settle_says_what_did_not_come(
    api: ApiServer, record: Callable[..., Recorder], what: str
) -> None:
    recorder = record()
    put(api, 1, "old")
    recorder.settle(5)
    with api.silence("Pod"):
        if what == "made":
            put(api, 2, "late")
        else:
            api.delete("Pod", "old")
        (trouble,) = recorder.settle(0.3)
    assert trouble.startswith("Pod (v1)")
    assert [e.type for e in of(recorder, source="gap")] == ["begin", "end"]


def test_start_says_why_nothing_can_be_recorded(api: ApiServer, tmp_path: Path) -> None:
    kube = api.kube(tmp_path)
    api.down()
    recorder = Recorder(kube, tmp_path / "h.jsonl", run="r", cluster="c")
    with pytest.raises(HarnessError, match=r"nothing can be recorded: .* not listed yet"):
        recorder.start(deadline=0.3)
    assert not [t for t in threading.enumerate() if t.name.startswith("recorder-")]


def test_a_history_is_never_written_over(api: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text("precious")
    with pytest.raises(HarnessError, match="no history can be written: File exists"):
        Recorder(api.kube(tmp_path), path, run="r", cluster="c")
    assert path.read_text() == "precious"


def test_stopping_ends_all_threads_soon(api: ApiServer, record: Callable[..., Recorder]) -> None:
    recorder = record()
    started = time.monotonic()
    statistics = recorder.stop()
    assert time.monotonic() - started < 3
    assert statistics.lost == 0
    assert not [t for t in threading.enumerate() if t.name.startswith("recorder-")]


def test_marks_faults_and_their_place(api: ApiServer, record: Callable[..., Recorder]) -> None:
    recorder = record()
    first = recorder.mark("test-start", "a::b", about={"namespaces": ["t"]})
    put(api, 1)
    recorder.settle(5)
    second = recorder.fault("inject", "agent-kill", "p", "t", {"pid": 7})
    third = recorder.mark("test-end", "a::b")
    told = [e for e in events(recorder) if e.source in ("mark", "fault")]
    assert [e.seq for e in told] == [first, second, third]
    assert told[0].object == {"namespaces": ["t"]}
    assert (told[1].kind, told[1].name, told[1].object) == ("agent-kill", "p", {"pid": 7})
    assert first < of(recorder)[0].seq < second


def progress_line(**more: Any) -> str:
    line = {"t": time.time(), "event": "step", "pod": "p", "pod_uid": "uid-1", "pid": 7}
    return json.dumps({**line, **more}) + "\n"


def test_progress_lines_are_tailed(
    api: ApiServer, record: Callable[..., Recorder], tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    folder = shared / "volume" / "progress"
    folder.mkdir(parents=True)
    (folder / "old.jsonl").write_text(progress_line(step=0))
    put(api, 1)  # pod uid-1, in namespace t
    recorder = record(progress=shared)
    wait_until(lambda: recorder.statistics().seconds > 0.4)
    with (folder / "old.jsonl").open("a") as old, (folder / "new.jsonl").open("w") as new:
        old.write(progress_line(step=1))
        new.write(progress_line(step=2, t=time.time() - 0.3) + progress_line(step=3)[:20])
        old.flush()
        new.flush()
        recorder.settle(5)
        later = shared / "other" / "progress"
        later.mkdir(parents=True)
        (later / "third.jsonl").write_text(progress_line(step=4, pod_uid="unknown"))
        wait_until(lambda: recorder.statistics().events.get("progress") == 3)
    found = [e for e in events(recorder) if e.source == "progress"]
    assert [e.object["step"] for e in sorted(found, key=lambda e: e.seq)] == [2, 1, 4]
    assert [e.namespace for e in found] == ["t", "t", ""]
    assert found[0].type == "step"
    assert (found[0].name, found[0].uid) == ("p", "uid-1")
    # a line is as old as it says
    assert found[0].t == found[0].object["t"]
    assert found[1].mono - found[0].mono == pytest.approx(found[1].t - found[0].t, abs=0.01)


def test_what_is_no_progress_line_is_a_gap(
    api: ApiServer, record: Callable[..., Recorder], tmp_path: Path
) -> None:
    folder = tmp_path / "v" / "progress"
    folder.mkdir(parents=True)
    recorder = record(progress=tmp_path)
    (folder / "a.jsonl").write_text('{"t": 1}\n' + progress_line(step=1))
    recorder.settle(5)
    found = [e for e in events(recorder) if e.source in ("progress", "gap")]
    assert [e.type for e in found] == ["begin", "end", "step"]
    assert "missing required field" in found[0].object["why"]
    assert found[0].kind == "progress"


def test_what_a_killed_recorder_leaves_can_be_read(
    api: ApiServer, record: Callable[..., Recorder]
) -> None:
    recorder = record()
    for n in range(20):
        put(api, n)
    recorder.settle(5)
    # not stopped: what is there now is what a kill would leave
    assert counts(recorder) == list(range(20))


def test_a_full_disk_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    history = HistoryFile(path, Header(run="r", cluster="c", started=1.0), zero=time.monotonic())
    record = {"source": "mark", "type": "m", "object": {"text": "x" * 1000}}
    history.append([Record(**record)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 700, hard))
    try:
        history.append([Record(**record)])
        history.append([Record(**record), Record(**record)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert history.lost == 3
    history.append([Record(**record)])
    history.close()

    found = History(path)
    read = list(found.arrived())
    assert [(e.source, e.type) for e in read] == [
        ("mark", "m"),
        # the reader's, for the torn line; the recorder's own
        ("gap", "begin"),
        ("gap", "end"),
        ("gap", "begin"),
        ("gap", "end"),
        ("mark", "m"),
    ]
    assert "3 events so far could not be written: File too large" in read[3].object["why"]
    assert [d.line for d in found.damage] == [3]


def test_parts_that_are_sent_with_line_breaks_stay_on_one_line(tmp_path: Path) -> None:
    job = {"metadata": {"name": "j", "uid": "u", "resourceVersion": "1"}, "spec": {"a": ["b c"]}}
    item = Pruner("kubeflow.org/v1", "PyTorchJob").prune(json.dumps(job, indent=1).encode())
    path = tmp_path / "h.jsonl"
    history = HistoryFile(path, Header(run="r", cluster="c", started=1.0), zero=time.monotonic())
    history.append([Record(source="watch", type="ADDED", object=item)])
    history.close()
    (event,) = History(path).arrived()
    assert event.object["spec"] == {"a": ["b c"]}
