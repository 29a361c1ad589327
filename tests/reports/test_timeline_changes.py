"""Changes of objects in words."""

from __future__ import annotations

import pytest

from reports.timeline.changes import exit_words, says, words


def test_new_and_gone():
    assert words(None, {"status": {"phase": "Pending"}}) == "made; phase Pending"
    assert words({"status": {}}, None) == "deleted"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({"spec": {}}, {"spec": {"nodeName": "n1"}}, "bound to n1"),
        (
            {"status": {"phase": "Pending"}},
            {"status": {"phase": "Running"}},
            "phase Pending → Running",
        ),
        ({"metadata": {}}, {"metadata": {"deletionTimestamp": "x"}}, "deletion asked"),
        ({"spec": {}}, {"spec": {"unschedulable": True}}, "cordoned"),
        ({"spec": {"unschedulable": True}}, {"spec": {}}, "uncordoned"),
        (
            {"status": {"allocatable": {"nvidia.com/gpu": "4"}}},
            {"status": {"allocatable": {"nvidia.com/gpu": "3"}}},
            "allocatable nvidia.com/gpu 4 → 3",
        ),
        (
            {"status": {"replicaStatuses": {"Worker": {"active": 2}}}},
            {"status": {"replicaStatuses": {"Worker": {}}}},
            "Worker active 2 → none",
        ),
        (
            {"spec": {"taints": []}},
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            "taints a key none → a; taints a effect none → NoSchedule",
        ),
        ({"spec": {"args": [1, 2]}}, {"spec": {"args": [1]}}, "args 1, 2 → 1"),
    ],
)
def test_what_changed(old, new, said):
    assert words(old, new) == said


def test_conditions_say_their_reason():
    old = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    turned = {"type": "Ready", "status": "False", "reason": "Down", "message": "no answer"}
    new = {"status": {"conditions": [turned, {"type": "Odd", "status": "True"}]}}
    assert words(old, new) == "Ready True → False (Down: no answer); Odd True"
    later = {"status": {"conditions": [{**turned, "message": "still none"}]}}
    assert words(new, later) == "Ready still False, now Down: still none; Odd gone"


def test_containers_say_how_they_ended_and_how_often():
    def pod(state: dict, restarts: int, last: dict | None = None) -> dict:
        status = {"name": "c", "state": state, "restartCount": restarts, "ready": False}
        return {"status": {"containerStatuses": [status | ({"lastState": last} if last else {})]}}

    dead = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    assert words(pod({"running": {}}, 0), pod(dead, 0)) == (
        "container c terminated, exit 137 (OOMKilled)"
    )
    assert words(pod(dead, 0), pod({"running": {}}, 1, dead)) == (
        "container c running; restart 1 after exit 137 (OOMKilled)"
    )
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    assert words(pod(dead, 1), pod(waiting, 1)) == "container c waiting (CrashLoopBackOff)"


def test_bookkeeping_is_no_change():
    old = {
        "metadata": {"resourceVersion": "1", "generation": 1},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "1"}]},
    }
    new = {
        "metadata": {"resourceVersion": "2", "generation": 2},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2"}]},
    }
    assert words(old, new) == ""


def test_many_and_long_changes_are_cut():
    said = words({"spec": {}}, {"spec": {f"f{i}": i for i in range(20)}})
    assert said.endswith("; and 12 more")
    assert len(words({"spec": {"a": ""}}, {"spec": {"a": "x" * 9999}})) < 400


def test_free_form_objects():
    assert says({"text": "as it says"}) == "as it says"
    assert (
        says({"signal": "SIGKILL", "agent_pid": 7, "none": None}) == "signal SIGKILL, agent pid 7"
    )
    assert says({}) == ""
    assert exit_words(None) == "exit ?"
