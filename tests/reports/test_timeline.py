"""What a timeline says of a history: lanes, their states, what happened."""

from __future__ import annotations

import itertools

import pytest
from history_samples import NS, STARTED, Story, calm, elastic, ready, running, scheduled

from oracles.history import WATCH, Event
from oracles.invariants.base import Violation
from reports.timeline.build import build
from reports.timeline.model import Group, Lane, Timeline

JOB = f"PyTorchJob {NS}/elastic"


def page(story: Story) -> Timeline:
    return build(
        story.events,
        title="t",
        outcome="FAIL",
        violations=story.violations,
        header=story.header,
    )


@pytest.fixture(scope="module")
def whole() -> Timeline:
    return page(elastic(8))


def group(timeline: Timeline, title: str) -> Group:
    return next(each for each in timeline.groups if each.title == title)


def lane(timeline: Timeline, id: str) -> Lane:
    return next(each for g in timeline.groups for each in g.lanes if each.id == id)


def states(found: Lane, row: int = 0) -> list[str]:
    return [segment.state for segment in found.rows[row].segments]


def said(timeline: Timeline) -> list[str]:
    return [moment.text for moment in timeline.moments]


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
    for before, after in itertools.pairwise(segments):
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


# training --------------------------------------------------------------------------------------


def test_a_program_starts_trains_stands_still_and_goes_on(whole):
    found = lane(whole, f"Pod {NS}/elastic-worker-2")
    assert states(found, 1) == [
        "starting", "training", "ending",
        "starting", "training", "stalled", "training", "ending",
    ]  # fmt: skip
    ranks = [each.label for each in found.rows[1].segments if each.state == "training"]
    assert ranks == ["rank 2 of 8", "rank 2 of 8", "rank 2 of 7"]


def test_a_program_that_died_without_a_word_is_silent_until_the_next_starts(whole):
    segments = lane(whole, f"Pod {NS}/elastic-worker-1").rows[1].segments
    silent = next(each for each in segments if each.state == "silent")
    after = segments[segments.index(silent) + 1]
    assert (silent.end, after.state) == (after.start, "starting")
    assert silent.end - silent.start > 5


def test_a_program_ends_with_its_pod(whole):
    found = lane(whole, f"Pod {NS}/elastic-worker-7")
    assert found.rows[1].segments[-1].end == found.rows[0].segments[-1].end < whole.end


def test_restarts_of_workers_and_agents_are_told_apart(whole):
    def kinds(name: str) -> list[str]:
        found = lane(whole, f"Pod {NS}/{name}").ticks
        return [tick.kind for tick in found if tick.kind in ("agent", "worker")]

    assert kinds("elastic-worker-1") == ["agent"]
    assert kinds("elastic-worker-2") == ["worker"]


def test_a_new_agent_in_the_same_pod_without_a_new_container():
    story = Story()
    story.put("Pod", "p", status={"phase": "Running"})
    story.line("p", "start", pid=10, agent_pid=7)
    story.wait(1)
    story.line("p", "start", pid=20, agent_pid=8)
    assert [t.kind for t in lane(page(story), f"Pod {NS}/p").ticks] == ["agent"]


def test_steps_of_a_job_are_a_curve_with_a_band_for_each_world(whole):
    found = lane(whole, f"training {JOB}")
    assert found.curve is not None
    assert [band.label for band in found.curve.bands] == ["world 8", "world 8", "world 7"]
    assert found.note == "60 steps"
    assert {tick.kind for tick in found.ticks} == {"checkpoint"}
    assert "training again after 8.6 s: world 8, step 28 (3 steps done again)" in said(whole)


def test_lines_that_arrive_after_those_of_the_next_process_stay_with_theirs():
    story = Story()
    story.put("Pod", "p", status={"phase": "Running"})
    story.now = 20.0
    rank = {"rank": 0, "world": 1, "generation": "a"}
    story.line("p", "start", at=1, pid=10)
    story.line("p", "start", at=10, pid=20)
    story.line("p", "step", at=11, pid=20, step=3, **rank)
    story.line("p", "step", at=2, pid=10, step=1, **rank)
    story.line("p", "step", at=3, pid=10, step=2, **rank)
    segments = lane(page(story), f"Pod {NS}/p").rows[1].segments
    assert [(each.state, each.start, each.end) for each in segments[:3]] == [
        ("starting", 1, 2),
        ("training", 2, 3),
        ("silent", 3, 10),
    ]


def test_every_process_of_a_pod_has_a_strip():
    story = Story()
    story.put("Pod", "p", status={"phase": "Running"})
    for local in range(2):
        story.line("p", "start", pid=10 + local, local_rank=local)
    assert [row.look for row in lane(page(story), f"Pod {NS}/p").rows] == ["bar", "strip", "strip"]


# faults, gaps, marks, violations ---------------------------------------------------------------


def test_faults_last_from_injection_to_recovery(whole):
    (fault,) = whole.faults
    assert fault.end is not None
    assert fault.end - fault.start == pytest.approx(8.2)
    ticks = lane(whole, "faults").ticks
    assert [tick.kind for tick in ticks] == ["inject", "proven", "recover"]


def test_a_fault_that_is_never_recovered_lasts_to_the_end():
    story = calm()
    story.fault("inject", "node-stop", "worker")
    story.wait(3)
    story.mark("note")
    (fault,) = page(story).faults
    assert fault.end is None
    assert lane(page(story), "faults").rows[0].segments[0].end == page(story).end


def test_gaps_say_what_is_missing(whole):
    (gap,) = whole.gaps
    assert (gap.kind, round((gap.end or 0) - gap.start, 1)) == ("Pod", 2.2)
    assert gap.text == "events of Pod are missing: why watch expired: 410 Gone"


def test_a_watch_that_was_taken_up_again_is_no_gap():
    story = calm()
    story.gap("resumed", "Pod", since=1.0)
    found = page(story)
    assert found.gaps == ()
    assert "watch of Pod taken up again, nothing missed" in [
        tick.text for tick in lane(found, "marks").ticks
    ]


def test_violations_stand_where_they_happened_on_the_lane_of_their_subject(whole):
    first, second = whole.flags
    assert (first.lane, second.lane) == (f"PodGroup {NS}/elastic", JOB)
    assert first.x < second.x
    assert [moment.flag for moment in whole.moments if moment.flag] == [1, 2]


def test_violations_about_what_is_only_counted_or_unknown_have_a_lane_too():
    story = elastic(4, steps=30)
    story.violations = [
        Violation("churn", "G15", f"Service {NS}/elastic-worker-1", "m", "s", (), STARTED + 9),
        Violation("odd", "X01", "Widget x", "m", "s", (story.events[5].seq,)),
    ]
    by_name = {flag.violation.invariant: flag for flag in page(story).flags}
    assert by_name["churn"].lane == f"count Service {JOB}"
    assert by_name["churn"].x == pytest.approx(9)
    assert by_name["odd"].lane == "violations"
    assert by_name["odd"].x == story.events[5].mono


def test_cited_events_are_in_words_even_when_they_are_steps():
    story = elastic(2, steps=20)
    step = next(each for each in story.events if each.type == "step")
    story.violate("Pod x", "bad", step.seq)
    assert page(story).notes[step.seq].words == (
        "step: rank 0, world 2, step 1, epoch 0, loss 2.19, pid 20"
    )


def test_a_wall_clock_that_jumps_does_not_move_violations():
    story = calm()
    before = len(story.events)
    jumped = [
        Event(seq=before + i + 1, t=STARTED + 500 + at, mono=at, source="mark", type="note")
        for i, at in enumerate((20.0, 30.0))
    ]
    story.events += jumped
    story.violations = [Violation("i", "B", "Pod x", "m", "s", (), STARTED + 530)]
    (flag,) = page(story).flags
    assert flag.x == pytest.approx(30)


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
