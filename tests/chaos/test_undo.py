"""What undoes a fault is on disk, and done by whoever is there to do it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from places import Place

from chaos.errors import NotMended
from chaos.undo import Delete, InPod, Journal, OnNode, Patch, PowerOn, StartKubelet, mend, pending
from chaos.undo.mending import everywhere
from clusters.errors import ClusterError, CommandError
from clusters.kube import NODES, PODS, ExecResult

STEPS = [
    PowerOn(node="n1"),
    StartKubelet(node="n1"),
    OnNode(node="n2", script="kill -CONT 7"),
    Patch.of(NODES, "n1", {"spec": {"unschedulable": None}}),
    Delete.of(PODS, "p", "t", grace=0),
]


def orphan(place: Place, journal: Journal, *steps, **changes) -> None:
    """An entry whose process is gone."""
    entry = journal.write("break", list(steps), within=600)
    path = journal.folder / f"{entry.id}.json"
    data = json.loads(path.read_text()) | {"pid": 2**22 + 5, "pid_start": 1} | changes
    path.write_text(json.dumps(data))


def test_what_is_written_is_what_is_done(place: Place) -> None:
    place.kube.put(NODES, {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}})
    place.kube.put(PODS, {"metadata": {"name": "p"}}, "t")
    place.provider.off = {"n1"}
    journal = Journal(place.site)
    entry = journal.write("break it all", STEPS, within=60, about="n1")
    (read,) = journal.entries()
    assert read == entry
    assert read.owned
    assert not read.overdue
    journal.undo(read)
    assert place.provider.calls == ["start n1", "kubelet n1", "n2: kill -CONT 7"]
    assert place.kube.objects[("nodes", "", "n1")]["spec"] == {}
    assert ("pods", "t", "p") not in place.kube.objects
    assert journal.entries() == []


def test_undoing_what_is_gone_is_no_trouble(place: Place) -> None:
    place.provider.off = {"n2"}
    journal = Journal(place.site)
    steps = [*STEPS[2:], InPod(namespace="t", pod="p", uid="u", container="c", command=["rm"])]
    journal.undo(journal.write("break", steps, within=60))
    assert place.kube.commands == []
    assert place.provider.calls == []


def test_another_object_of_that_name_is_left_alone(place: Place) -> None:
    place.kube.put(PODS, {"metadata": {"name": "p", "uid": "new"}, "status": {"phase": "Running"}},
                   "t")  # fmt: skip
    journal = Journal(place.site)
    patch = Patch.of(PODS, "p", {"spec": {}}, "t", uid="old")
    command = InPod(namespace="t", pod="p", uid="old", container="c", command=["rm", "x"])
    journal.undo(journal.write("break", [patch, command], within=60))
    assert place.kube.calls == []
    assert place.kube.commands == []


def test_a_command_in_a_pod_that_fails_is_told(place: Place) -> None:
    place.kube.put(PODS, {"metadata": {"name": "p", "uid": "u"}, "status": {"phase": "Running"}},
                   "t")  # fmt: skip
    place.kube.answers = [ExecResult(1, "", "no such file")]
    step = InPod(namespace="t", pod="p", uid="u", container="c", command=["rm", "x"])
    with pytest.raises(ClusterError, match="no such file"):
        step.run(place.site)


def test_a_step_that_fails_keeps_the_entry_but_not_the_other_steps(place: Place) -> None:
    place.provider.scripts = {"iptables": CommandError("iptables is missing")}
    journal = Journal(place.site)
    entry = journal.write("cut", [OnNode(node="n1", script="iptables"), STEPS[2]], within=60)
    with pytest.raises(NotMended, match="iptables is missing"):
        journal.undo(entry)
    assert place.provider.calls[-1] == "n2: kill -CONT 7"
    assert len(journal.entries()) == 1


def test_only_what_nobody_will_mend_is_mended(place: Place) -> None:
    journal = Journal(place.site)
    mine = journal.write("mine", [PowerOn(node="n1")], within=600)
    assert mend(place.site) == []
    orphan(place, journal, PowerOn(node="n2"))
    assert len(mend(place.site)) == 1
    assert place.provider.calls == ["start n2"]
    assert journal.entries() == [mine]
    assert len(mend(place.site, everything=True)) == 1
    assert place.provider.calls == ["start n2", "start n1"]


def test_what_is_overdue_is_mended_although_its_process_lives(place: Place) -> None:
    Journal(place.site).write("late", [PowerOn(node="n1")], within=-1)
    assert len(mend(place.site)) == 1


def test_the_newest_is_undone_first(place: Place) -> None:
    journal = Journal(place.site)
    for node in ("n1", "n2"):
        orphan(place, journal, PowerOn(node=node))
        time.sleep(0.002)
    mend(place.site)
    assert place.provider.calls == ["start n2", "start n1"]


def test_another_cluster_of_the_same_name_was_never_broken(place: Place) -> None:
    journal = Journal(place.site)
    orphan(place, journal, PowerOn(node="n1"), run="another")
    assert mend(place.site) == []
    assert place.provider.calls == []
    assert journal.entries() == []


def test_a_file_that_cannot_be_read_is_said(place: Place) -> None:
    journal = Journal(place.site)
    journal.folder.mkdir(parents=True)
    (journal.folder / "1.json").write_text("{")
    with pytest.raises(NotMended, match=r"1\.json"):
        mend(place.site)


def test_everywhere(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Place(tmp_path, name="other")
    for it in (place, other):
        orphan(it, Journal(it.site), PowerOn(node="n1"))
    assert [entry.cluster for entry in pending()] == ["mine", "other"]
    monkeypatch.setattr("chaos.undo.mending.provider", lambda name: place.provider)

    def sites(where: str, name: str):
        if name == "other":
            raise ClusterError("no such cluster")
        return place.site

    lines = everywhere(sites=sites)
    assert any("undid break" in line for line in lines)
    assert any("other: it is no more" in line for line in lines)
    assert pending() == []


KILLED = """
    import os, signal, sys
    from pathlib import Path
    sys.path.insert(0, {folder!r})
    from places import Place
    from chaos.injecting import Injector
    from chaos.faults.base import Planned, Proof
    from chaos.undo import PowerOn
    class Off(Planned):
        name = "off"
        def look(self): return [PowerOn(node="n1")]
        def inject(self): pass
        def proof(self, *, deadline=30.0): return Proof("off", {{}}, 0.0)
    injector = Injector(Place(Path({tmp!r})).site)
    injector(Off(injector.site))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_broke_is_mended_by_the_next(place: Place, tmp_path: Path) -> None:
    script = textwrap.dedent(KILLED.format(folder=str(Path(__file__).parent), tmp=str(tmp_path)))
    subprocess.run([sys.executable, "-c", script], env=dict(os.environ), check=False, timeout=60)
    (entry,) = Journal(place.site).entries()
    assert not entry.owned
    assert len(mend(place.site)) == 1
    assert place.provider.calls == ["start n1"]
