"""What a timeline says of a history: lanes, their states, what happened."""

from __future__ import annotations

from itertools import pairwise

import pytest
from history_samples import NS, STARTED, Story, calm, elastic, ready, running, scheduled
from timeline_parts import group, lane, page, said, states

from oracles.history import WATCH, Event
from reports.timeline.build import build
from reports.timeline.model import Timeline

JOB = f"PyTorchJob {NS}/elastic"


@pytest.fixture(scope="module")
def whole() -> Timeline:
    return page(elastic(8))


# order and groups ------------------------------------------------------------------------------


def test_groups_and_lanes_are_in_the_order_of_reading(whole):
    assert [each.title for each in whole.groups] == ["Test", "PyTorchJob elastic", "Nodes"]
    assert [each.name for each in group(whole, "PyTorchJob elastic").lanes] == [
        "conditions",
        "PodGroup elastic",
        "pods by state",
        "training",
        *(f"worker-{index}" for index in range(8)),
        "Services",
    ]


def test_the_axis_begins_with_the_test_and_not_with_what_was_there_before(whole):
    assert whole.zero == pytest.approx(0.8)
    assert whole.epoch == pytest.approx(STARTED + 0.8)
    assert whole.end > whole.start == whole.zero


def test_pods_are_sorted_by_role_then_number():
    story = Story()
    story.put("TFJob", "tf")
    for role, index in (("worker", 10), ("worker", 9), ("ps", 0), ("chief", 0)):
        story.pod("tf", role, index, kind="TFJob")
    names = [each.name for each in group(page(story), "TFJob tf").lanes if each.kind == "Pod"]
    assert names == ["chief-0", "ps-0", "worker-9", "worker-10"]


def test_what_belongs_to_no_job_is_shown_by_namespace_and_closed():
    story = calm()
    story.put("Deployment", "op", ns="kubeflow", spec={"replicas": 1}, status={"readyReplicas": 1})
    story.put("CustomResourceDefinition", "tfjobs", ns="")
    found = page(story)
    assert [each.title for each in found.groups[-2:]] == ["cluster", "kubeflow"]
    assert not group(found, "kubeflow").open
    assert lane(found, "Deployment kubeflow/op").rows[0].segments[0].label == "1 of 1 ready"


def test_a_job_made_by_a_job_is_a_lane_of_the_outer_one():
    story = Story()
    story.put("TrainJob", "t", status={"conditions": []})
    owner = {"kind": "TrainJob", "name": "t", "controller": True}
    story.put("JobSet", "t", metadata={"ownerReferences": [owner]})
    jobset = {"kind": "JobSet", "name": "t", "controller": True}
    story.put("Pod", "t-0", metadata={"ownerReferences": [jobset]}, status={"phase": "Pending"})
    found = group(page(story), "TrainJob t")
    assert [each.name for each in found.lanes] == ["conditions", "JobSet t", "0"]


# pods ------------------------------------------------------------------------------------------


def test_a_pod_waits_is_bound_runs_is_ready_and_ends(whole):
    found = lane(whole, f"Pod {NS}/elastic-worker-0")
    assert states(found) == ["waiting", "waiting", "bound", "running", "ready", "succeeded"]
    labels = [segment.label for segment in found.rows[0].segments]
    assert labels[:3] == ["", "Unschedulable", "worker"]
    assert found.note == "rank 0 of 7 · worker"


def test_segments_cite_the_events_that_began_and_ended_them(whole):
    segments = lane(whole, f"Pod {NS}/elastic-worker-0").rows[0].segments
    for before, after in pairwise(segments):
        assert before.ended == after.began
        assert before.end == after.start
    assert whole.notes[segments[2].began].words.startswith("bound to worker")
    assert segments[-1].ended == 0


def test_a_deleted_pod_ends_and_the_one_that_replaces_it_goes_on_in_its_lane():
    story = Story()
    story.put("PyTorchJob", "j")
    name = story.pod("j", "worker", 0)
    story.wait(1)
    story.put("Pod", name, metadata={"deletionTimestamp": "now"}, spec={"nodeName": "n"})
    story.wait(1)
    story.drop("Pod", name)
    story.wait(1)
    story.pod("j", "worker", 0)
    story.wait(1)
    story.bind(name, "n")
    found = lane(page(story), f"Pod {NS}/{name}")
    spans = [(each.state, each.start, each.end) for each in found.rows[0].segments]
    assert spans == [
        ("waiting", 0, 1),
        ("leaving", 1, 2),
        ("waiting", 3, 4),
        ("bound", 4, 4),
    ]
    assert [tick.kind for tick in found.ticks] == ["replaced"]


def test_restarts_of_containers_are_marked_but_not_those_from_before():
    story = Story()
    story.put("Pod", "p", spec={"nodeName": "n"}, status={"phase": "Running", **running(3)})
    story.wait(1)
    story.put("Pod", "p", status=running(4))
    found = lane(page(story), f"Pod {NS}/p")
    assert [(tick.kind, tick.x) for tick in found.ticks] == [("agent", 1)]
    assert "restart 4) after exit 137 (Error)" in found.ticks[0].text


def test_a_failed_pod_says_why():
    story = Story()
    story.put("PyTorchJob", "j")
    name = story.pod("j", "worker", 0)
    story.wait(1)
    story.finish(name, code=3)
    found = page(story)
    assert lane(found, f"Pod {NS}/{name}").rows[0].segments[-1].label == "exit 3 (Error)"
    assert "failed: exit 3 (Error)" in said(found)


def test_events_of_the_cluster_are_marks_on_the_lane_they_are_about(whole):
    ticks = lane(whole, f"Pod {NS}/elastic-worker-3").ticks
    assert [tick.text for tick in ticks if tick.kind == "warning"] == [
        "FailedScheduling: 0/3 nodes are available: 2 Insufficient nvidia.com/gpu."
    ]


def test_the_chart_counts_pods_by_state_and_has_the_minimum(whole):
    chart = lane(whole, f"pods {JOB}").chart
    assert chart is not None
    assert [value for _, value in chart.limits] == [4]
    at = {round(x, 2): numbers for x, *numbers in chart.points}
    partial = next(numbers for numbers in at.values() if sum(numbers[:4]) == 3)
    assert dict(zip(chart.series, partial, strict=True))["waiting"] == 5
    assert max(sum(numbers) for numbers in at.values()) == 8


def test_what_a_gang_did_is_said(whole):
    assert "first pods bound: 3 of 8" in said(whole)
    assert "minimum of 4 bound, 6.400 s after the first pod" in said(whole)
    assert "all 8 pods ready" in said(whole)


# jobs, groups, nodes ---------------------------------------------------------------------------


def test_each_condition_of_a_job_has_a_row(whole):
    found = lane(whole, JOB)
    assert [row.label for row in found.rows] == ["Created", "Running", "Succeeded"]
    created, run, succeeded = (row.segments[0] for row in found.rows)
    assert created.end == succeeded.end == whole.end
    assert run.end == succeeded.start


def test_conditions_that_hold_together_against_the_rules_are_both_seen():
    story = Story()
    story.put("TFJob", "j")
    both = [{"type": each, "status": "True"} for each in ("Running", "Restarting")]
    story.put("TFJob", "j", status={"conditions": both})
    story.wait(2)
    story.put("TFJob", "j", status={"conditions": []})
    story.wait(1)
    story.mark("note")
    rows = lane(page(story), f"TFJob {NS}/j").rows
    assert [(row.label, row.segments[0].end) for row in rows] == [("Running", 2), ("Restarting", 2)]


def test_the_group_line_of_a_job_sums_it_up(whole):
    summary = group(whole, "PyTorchJob elastic").summary
    assert [each.state for each in summary] == ["submitted", "Created", "Running", "Succeeded"]


def test_group_objects_show_phase_minimum_and_scheduled(whole):
    found = lane(whole, f"PodGroup {NS}/elastic")
    assert [each.label for each in found.rows[0].segments] == [
        "Pending · min 4",
        "Scheduling · min 4",
        "Scheduled · min 4 · scheduled 8",
        "Running · min 4 · scheduled 8",
        "Finished · min 4 · scheduled 8",
    ]


def test_a_group_made_again_and_again_is_seen():
    story = Story()
    story.put("PyTorchJob", "j")
    for _ in range(3):
        story.put("PodGroup", "j", spec={"minMember": 2})
        story.wait(1)
        story.drop("PodGroup", "j")
        story.wait(1)
    found = lane(page(story), f"PodGroup {NS}/j")
    assert len(found.rows[0].segments) == 3
    assert [tick.kind for tick in found.ticks] == ["replaced", "replaced"]


def test_group_objects_of_other_products():
    story = Story()
    quota = [{"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": "True"}]
    story.put(
        "Workload", "w", spec={"podSets": [{"count": 1}, {"count": 7}]},
        status={"conditions": quota},
    )  # fmt: skip
    story.put("PodGroup", "native", spec={"schedulingPolicy": {"gang": {"minCount": 5}}})
    found = page(story)
    assert lane(found, f"Workload {NS}/w").rows[0].segments[0].label == "Admitted · min 8"
    assert lane(found, f"PodGroup {NS}/native").rows[0].segments[0].label == "no phase · min 5"


def test_nodes_show_their_state_and_the_gpus_that_are_taken(whole):
    found = lane(whole, "Node worker")
    assert states(found) == ["Ready", "cordoned", "Ready"]
    assert found.chart is not None
    assert found.chart.limits == ((found.chart.limits[0][0], 4),)
    assert max(taken for _, taken in found.chart.points) == 4
    assert states(lane(whole, "Node worker3")) == ["Ready", "Unknown", "Ready"]


def test_gpus_that_vanish_and_come_back():
    story = Story()
    (node,) = story.nodes(1)
    story.wait(1)
    story.put("Node", node, ns="", status={"allocatable": {"nvidia.com/gpu": "0"}})
    story.wait(1)
    story.put("Node", node, ns="", status={"allocatable": {"nvidia.com/gpu": "4"}})
    found = lane(page(story), f"Node {node}")
    assert [(tick.kind, tick.text) for tick in found.ticks] == [
        ("gpus", "GPUs 4 → 0"),
        ("gpus", "GPUs 0 → 4"),
    ]


def test_names_of_nodes_lose_what_they_have_in_common():
    story = Story()
    for name in ("muster-dev-worker", "muster-dev-worker2"):
        story.put("Node", name, ns="", status={"conditions": [ready(True)]})
    story.put("Pod", "p", spec={"nodeName": "muster-dev-worker2"}, status={"phase": "Running"})
    found = page(story)
    assert [each.name for each in group(found, "Nodes").lanes] == ["worker", "worker2"]
    assert lane(found, f"Pod {NS}/p").rows[0].segments[0].label == "worker2"
    assert lane(found, "Node muster-dev-worker").title == "Node muster-dev-worker"


def test_many_objects_of_a_kind_are_counted(whole):
    chart = lane(whole, f"count Service {JOB}").chart
    assert chart is not None
    assert max(count for _, count in chart.points) == 8


# odd histories ---------------------------------------------------------------------------------


def test_an_empty_history_is_a_page_too():
    found = build([], title="t", outcome="INCONCLUSIVE")
    assert found.groups == ()
    assert (found.events, found.start, found.end) == (0, 0.0, 0.0)


@pytest.mark.parametrize("kind", ["Pod", "Node", "TFJob", "PodGroup", "Service", "Event"])
@pytest.mark.parametrize(
    "found",
    [
        {},
        {"metadata": None, "spec": None, "status": None},
        {"status": {"conditions": {"Ready": "yes"}, "containerStatuses": None, "phase": None}},
        {"spec": {"containers": None, "podSets": 3}, "status": {"conditions": ["odd", None]}},
    ],
)
def test_objects_of_an_unexpected_form_break_nothing(kind, found):
    events = [
        Event(seq=1, t=1, mono=1, source=WATCH, type="ADDED", kind=kind, name="x"),
        Event(seq=2, t=2, mono=2, source=WATCH, type="MODIFIED", kind=kind, name="x", object=found),
        Event(seq=3, t=3, mono=3, source=WATCH, type="DELETED", kind=kind, name="x"),
    ]
    assert build(events, title="t", outcome="PASS").events == 3


def test_an_object_deleted_before_it_was_seen():
    event = Event(seq=1, t=1, mono=1, source=WATCH, type="DELETED", kind="Pod", name="x")
    assert lane(build([event], title="t", outcome="PASS"), "Pod x").rows[0].segments == ()


def test_long_histories_lose_small_changes_but_say_so():
    story = Story()
    for number in range(3000):
        story.wait(0.01)
        story.put("Pod", "p", status={"phase": "Pending", "odd": number})
    conditions = [scheduled(True), ready(True)]
    story.put("Pod", "p", spec={"nodeName": "n"}, status={"conditions": conditions})
    found = page(story)
    ticks = lane(found, f"Pod {NS}/p").ticks
    assert found.omitted == 3000 - 1 - len(ticks)
    assert 350 <= len(ticks) <= 400
    assert states(lane(found, f"Pod {NS}/p")) == ["waiting", "ready"]
    assert ticks[-1].x > 29


def test_very_many_jobs_are_closed_but_for_those_with_a_violation():
    story = Story()
    for job in range(10):
        story.put("PyTorchJob", f"j{job}")
        for index in range(40):
            story.pod(f"j{job}", "worker", index)
    story.violate(f"Pod {NS}/j7-worker-3", "bad", 1)
    jobs = [each for each in page(story).groups if each.title.startswith("PyTorchJob")]
    assert [each.title for each in jobs if each.open] == ["PyTorchJob j7"]
