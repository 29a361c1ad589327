"""What a timeline says of programs, faults, gaps and violations."""

from __future__ import annotations

import pytest
from history_samples import NS, STARTED, Story, calm, elastic
from timeline_parts import lane, page, said, states

from oracles.history import Event
from oracles.invariants.base import Violation
from oracles.known import KnownFault
from reports.timeline.build import build
from reports.timeline.model import Timeline

JOB = f"PyTorchJob {NS}/elastic"


@pytest.fixture(scope="module")
def whole() -> Timeline:
    return page(elastic(8))


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


def test_what_a_published_fault_explains_is_known():
    story = elastic(4, steps=30)
    fault = KnownFault(
        id="half-bound",
        behaviour="G16",
        versions={"coscheduling": "==0.28.9"},
        signature="half of it",
        link="https://example.org/1",
        note="It binds half of it.",
    )
    found = build(
        story.events,
        title="t",
        outcome="KNOWN",
        violations=story.violations[1:],
        excused=[(story.violations[0], fault)],
    )
    assert [flag.known for flag in found.flags] == [fault, None]
    tones = [(moment.tone, moment.flag) for moment in found.moments if moment.flag]
    assert tones == [("known", 1), ("bad", 2)]
    assert any(text.endswith("(known: half-bound)") for text in said(found))


def test_another_tests_pods_show_by_the_gpus_that_they_take():
    story = Story()
    (node,) = story.nodes(1)
    gpus = {"limits": {"nvidia.com/gpu": "3"}}
    spec = {"nodeName": node, "containers": [{"name": "c", "resources": gpus}]}
    story.put("Pod", "own", spec=spec, status={"phase": "Running"})
    story.wait(1)
    story.put("Pod", "theirs", "other", spec=spec, status={"phase": "Running"})
    cited = story.events[-1].seq
    story.wait(1)
    story.drop("Pod", "theirs", "other")
    story.mark("note")
    story.violate(f"Pod {NS}/own", "too many GPUs", cited)
    story.header.facts["slice"] = {"test": "t", "namespaces": [NS]}
    found = page(story)
    lanes = [each.id for g in found.groups for each in g.lanes if each.kind == "Pod"]
    assert lanes == [f"Pod {NS}/own"]
    chart = lane(found, f"Node {node}").chart
    assert chart.points == ((0.0, 3), (1.0, 6), (2.0, 0))
    note = found.notes[cited]
    assert (note.subject, note.words) == (
        f"Node {node}",
        f"Pod other/theirs, which is another test's; it is on {node}",
    )


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
