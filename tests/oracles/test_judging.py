"""What a history means: gaps, known faults, outcomes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oracles import history as histories
from oracles import invariants, reading
from oracles.catalogue import catalogue
from oracles.errors import UsageError
from oracles.graces import FOLDER, Graces, graces
from oracles.history import Event, Header
from oracles.invariants import ALL
from oracles.invariants.base import Violation
from oracles.invariants.uptime import Uptime
from oracles.invariants.world import World
from oracles.judging import Judgement, judge, judge_history, kinds
from oracles.known import KnownFault, KnownFaults
from oracles.outcome import Outcome
from tests.oracles.build import BEGIN, SCHEDULER, History, names


def _fine() -> History:
    h = History()
    h.node("n1", gpus=2)
    h.pod("a", gpus=1).bind("n1")
    return h


def _bad() -> History:
    h = _fine()
    h.after(5)
    h.pod("b", gpus=2).bind("n1")
    return h


def test_a_good_history_passes_and_says_who_had_nothing_to_judge() -> None:
    judgement = _fine().judge()

    assert judgement.outcome is Outcome.PASS
    assert judgement.reasons() == []
    assert judgement.events == 3
    assert "gang-atomicity" in judgement.not_exercised
    assert "gpu-capacity" not in judgement.not_exercised
    assert {f.invariant for f in judgement.findings} == {rule.name for rule in ALL}


def test_a_history_in_which_nothing_was_judged_is_no_pass() -> None:
    h = History()
    h.node("n1")

    assert h.judge().outcome is Outcome.NOT_APPLICABLE
    assert History().judge().outcome is Outcome.NOT_APPLICABLE


def test_a_violation_is_told_with_wall_time_and_events() -> None:
    judgement = _bad().judge()

    [violation] = judgement.violations
    assert judgement.outcome is Outcome.FAIL
    assert violation.t == BEGIN + 5
    assert judgement.reasons() == [
        "Pod t/b: bound to n1, where 2 pods now ask for 3 GPUs; the node has 2 "
        "[S01 gpu-capacity; events 1, 3, 5]"
    ]


@pytest.mark.parametrize("kind", ["", "Pod"])
def test_a_gap_in_what_a_good_invariant_depends_on_is_inconclusive(kind: str) -> None:
    h = _fine()
    begin, end = h.gap(kind, 7)

    judgement = h.judge()

    assert judgement.outcome is Outcome.INCONCLUSIVE
    by_name = {f.invariant: f.outcome for f in judgement.findings}
    assert by_name["gpu-capacity"] is Outcome.INCONCLUSIVE
    assert by_name["recovery"] is (Outcome.INCONCLUSIVE if not kind else Outcome.NOT_APPLICABLE)
    what = kind or "all kinds"
    assert judgement.reasons() == [
        f"events of {what} were missed for 7.0 s (events {begin} to {end})"
    ]


def test_a_gap_in_what_nobody_depends_on_harms_nobody() -> None:
    h = _fine()
    h.gap("Event", 7)

    assert h.judge().outcome is Outcome.PASS


def test_an_open_gap_reaches_to_the_end() -> None:
    h = _fine()
    begin = h.add("gap", "begin", "Pod")
    h.after(9)

    judgement = h.judge()
    assert judgement.outcome is Outcome.INCONCLUSIVE
    assert f"(events {begin} to the end)" in judgement.reasons()[0]


def test_gaps_within_gaps_are_closed_one_by_one() -> None:
    h = _fine()
    h.add("gap", "begin", "Pod")
    h.add("gap", "begin", "Pod")
    h.add("gap", "end", "Pod")

    assert sum(gap.last == 0 for gap in h.judge().gaps) == 1


def test_a_gap_between_the_events_that_prove_it_makes_a_violation_unsure() -> None:
    h = _fine()
    h.gap("Pod", 5)
    h.pod("b", gpus=2).bind("n1")

    judgement = h.judge()
    assert judgement.violations == []
    assert [v.invariant for v in judgement.unsure] == ["gpu-capacity"]
    assert judgement.outcome is Outcome.INCONCLUSIVE


def test_a_gap_before_or_after_them_does_not() -> None:
    h = History()
    h.gap("Pod", 5)
    node = h.node("n1", gpus=2)
    for name in "abc":
        h.pod(name, gpus=1).bind("n1")
    h.gap("Pod", 5)

    judgement = h.judge()
    assert [v.events[0] for v in judgement.violations] == [node.added]
    assert judgement.outcome is Outcome.FAIL


def test_a_gap_after_them_does_when_the_proof_is_that_nothing_came() -> None:
    h = History()
    job = h.job(Worker=1)
    h.thing("Service", "train", owner=job)
    job.gone()
    assert h.after(60).judge().outcome is Outcome.FAIL
    h.gap("Service", 5)

    assert h.judge().outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("since", "sure"), [(0.0, False), (11.0, True)])
def test_events_that_came_late_make_only_what_they_might_excuse_unsure(
    since: float, sure: bool
) -> None:
    h = _fine()
    h.after(12)
    h.add("gap", "resumed", "Pod", obj={"since": since})
    assert h.judge().outcome is Outcome.PASS

    h.pod("b", gpus=2).bind("n1")
    assert bool(h.judge().violations) is sure
    assert bool(h.judge().unsure) is not sure


# known faults


def _known(**changes: object) -> KnownFaults:
    entry = {
        "id": "too-many",
        "behaviour": "S01",
        "versions": {"coscheduling": "==0.28.9"},
        "signature": "more GPUs bound",
        "link": "https://example.org/1",
        "note": "it cannot count",
    }
    return KnownFaults(entries=[KnownFault.model_validate({**entry, **changes})])


def test_a_published_fault_makes_it_known() -> None:
    judgement = _bad().judge().but_known({"coscheduling": "0.28.9"}, faults=_known())

    assert judgement.outcome is Outcome.KNOWN
    assert judgement.violations == []
    assert judgement.reasons()[0].endswith("(known: too-many, https://example.org/1)")


@pytest.mark.parametrize(
    "changes",
    [
        {"behaviour": "S03"},
        {"versions": {"coscheduling": "==0.28.8"}},
        {"signature": "something else"},
        {"case": "other"},
    ],
)
def test_a_fault_that_does_not_match_in_all_excuses_nothing(changes: dict[str, object]) -> None:
    judgement = _bad().judge().but_known({"coscheduling": "0.28.9"}, faults=_known(**changes))

    assert judgement.outcome is Outcome.FAIL
    assert len(judgement.violations) == 1


def test_a_known_fault_does_not_hide_a_new_one_beside_it() -> None:
    h = _bad()
    h.pod("c", nodeSelector={"a": "b"}).bind("n1")
    judgement = h.judge().but_known({"coscheduling": "0.28.9"}, faults=_known())

    assert judgement.outcome is Outcome.FAIL
    assert [v.invariant for v in judgement.violations] == ["placement"]


def test_a_known_fault_does_not_hide_that_something_was_missed() -> None:
    h = _bad()
    h.gap("Pod", 5)
    judgement = h.judge().but_known({"coscheduling": "0.28.9"}, faults=_known())

    assert judgement.outcome is Outcome.INCONCLUSIVE


# slices, namespaces, foreign invariants


def test_what_other_namespaces_broke_is_not_told() -> None:
    h = _bad()
    h.pod("c", "other", gpus=2).bind("n1")

    def broken(namespaces: set[str] | None) -> list[str]:
        judgement = judge(h.events, figures=graces(), namespaces=namespaces)
        return [v.subject for v in judgement.violations]

    assert broken(None) == ["Pod t/b", "Pod other/c"]
    assert broken({"other"}) == ["Pod other/c"]


def _together(*, first: str = "t", ended: bool = False) -> tuple[History, list[int]]:
    """Two tests at once, each with a pod on a node with one GPU; *first* is bound first."""
    h = History()
    h.node("n1", gpus=1)
    pods = {name: h.pod("p", name, gpus=1) for name in ("t", "other")}
    bound = [pods.pop(first)]
    h.after(1)
    seqs = [bound[0].bind("n1")]
    if ended:
        bound[0].succeed()
    bound += pods.values()
    seqs.append(bound[1].bind("n1"))
    return h, seqs


def _of_test(h: History, *namespaces: str) -> Judgement:
    facts = {"slice": {"namespaces": list(namespaces)}}
    return judge(h.events, figures=graces(), facts=facts, now=h.t)


def test_room_that_another_test_takes_counts() -> None:
    h, (theirs, own) = _together(first="other")
    [violation] = _of_test(h, "t").violations
    assert (violation.invariant, violation.subject) == ("gpu-capacity", "Pod t/p")
    assert violation.events == (1, theirs, own)


def test_room_that_another_test_gave_back_does_not() -> None:
    h, _ = _together(first="other", ended=True)
    judgement = _of_test(h, "t")
    assert judgement.outcome is Outcome.PASS
    assert next(f.judged for f in judgement.findings if f.invariant == "gpu-capacity") == 1


def test_who_overbooked_is_blamed_and_nobody_else() -> None:
    h, _ = _together(first="t")
    assert _of_test(h, "t").violations == []
    assert [v.subject for v in _of_test(h, "other").violations] == ["Pod other/p"]


def test_another_tests_pods_are_judged_by_nobody_else() -> None:
    h = History()
    h.node("n1", gpus=1, taints=["a:NoSchedule"])
    h.pod("p", "other", gpus=1).bind("n1")
    assert _of_test(h, "other").outcome is Outcome.FAIL
    judgement = _of_test(h, "t")
    assert judgement.outcome is Outcome.NOT_APPLICABLE
    assert {f.judged for f in judgement.findings} == {0}


def test_a_file_means_the_same_however_much_of_it_is_read(tmp_path: Path) -> None:
    """A gang is bound in part; the last event, which no invariant reads, ends its grace."""
    h = History()
    h.node("n1", gpus=8)
    h.group("g", 2)
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    pods = [h.pod(f"w{i}", labels=labels, schedulerName=SCHEDULER) for i in range(2)]
    pods[0].bind("n1")
    h.after(60).add("mark", "test-end")
    path = tmp_path / "h.jsonl"
    facts = {"operator": "o:1", "scheduler": "s:1", "versions": {"s": "1"}, "case": ""}
    histories.write(path, Header(run="r", cluster="c", started=BEGIN, facts=facts), h.events)

    history = reading.History(path)
    everything = judge_history(history, list(history.events()))
    assert [v.invariant for v in everything.violations] == ["gang-atomicity"]
    assert everything == judge_history(reading.History(path))


def test_the_state_that_a_slice_begins_with_is_not_timed() -> None:
    h = History()
    job = h.job(Worker=2)
    pods = [job.pod("Worker", i) for i in range(2)]
    pods[0].run()
    job.says("Created", "Running", counts={"Worker": (2, 0, 0)}, start=0)
    h.after(100)
    pods[1].run()
    h.after(1)
    assert names(h) == {"replica-counts"}

    facts = {"slice": {"started": 100.5}}
    assert judge(h.events, figures=graces(), facts=facts).violations == []


def test_an_invariant_from_outside_is_fed_by_kind_and_by_source() -> None:
    class Seen:
        name, promise, source, behaviour = "seen", "p", "s", "G01"
        kinds = frozenset({"Pod", "source:mark"})

        def __init__(self) -> None:
            self.events: list[int] = []

        def feed(self, event: Event) -> None:
            self.events.append(event.seq)

        def finish(self, now: float) -> list[Violation]:
            return []

    h = _fine()
    mark = h.add("mark", "test-start", name="x")
    seen = Seen()
    judgement = judge(h.events, invariants=lambda world, figures: [seen])

    assert seen.events == [2, 3, mark]
    assert judgement.outcome is Outcome.PASS


def test_an_invariant_that_fails_is_inconclusive_and_harms_no_other() -> None:
    class Broken:
        name, promise, source, behaviour = "broken", "p", "s", "G01"
        kinds = frozenset({"Pod", "Node", "source:mark"})
        fed = 0

        def feed(self, event: Event) -> None:
            self.fed += 1
            if event.kind == "Pod":
                raise KeyError("x")

        def finish(self, now: float) -> list[Violation]:
            raise AssertionError("it was asked in spite of that")

    h = _bad()
    h.node("n2")
    rule = Broken()
    judgement = judge(h.events, invariants=lambda w, g: [rule, *invariants.make(w, g)])

    assert rule.fed == 2  # the node, and the pod that it fell over
    assert [v.invariant for v in judgement.violations] == ["gpu-capacity"]
    [failed] = [f for f in judgement.findings if f.invariant == "broken"]
    assert failed.outcome is Outcome.INCONCLUSIVE
    assert "broken could not judge: event 2: KeyError: 'x'" in judgement.reasons()


def test_an_object_of_no_known_form_is_as_if_it_was_not_seen() -> None:
    h = _fine()
    seq = h.add("watch", "ADDED", "Pod", "t", "odd", "odd", {"metadata": "?", "spec": 7})

    judgement = h.judge()

    assert judgement.outcome is Outcome.INCONCLUSIVE
    assert judgement.reasons() == [f"events of Pod were missed for 0.0 s (events {seq} to {seq})"]


def test_every_invariant_names_its_promise_and_a_behaviour_of_the_catalogue() -> None:
    ids = {behaviour.id for behaviour in catalogue().behaviours}
    sources = [path.read_text() for path in Path(invariants.__file__).parent.glob("*.py")]
    named = {name for text in sources for name in re.findall(r'"([A-Z]\d\d)"', text)}

    assert named <= ids
    assert len({rule.name for rule in ALL}) == len(ALL)
    for rule in ALL:
        assert rule.behaviour in ids
        assert len(rule.promise) > 30
        assert len(rule.source) > 10


def test_every_kind_that_an_invariant_reads_is_decoded() -> None:
    assert {"Pod", "Node", "PodGroup", "TFJob", "Service", "source:progress"} <= kinds()


# graces


def test_every_figure_says_where_it_is_from() -> None:
    for path in FOLDER.glob("*.yaml"):
        figures = graces([path.stem])
        for name in figures.names():
            assert len(figures.grace(name).why) > 20


def test_a_system_s_own_figures_replace_the_default_ones() -> None:
    assert graces(["coscheduling:0.28.9"])["gang_partial"] != graces()["gang_partial"]
    assert graces(["coscheduling@src:/x"])["gang_partial"] != graces()["gang_partial"]
    assert graces(["unheard-of:1"])["gang_partial"] == graces()["gang_partial"]


def test_a_figure_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="no grace 'nothing'"):
        graces()["nothing"]
    with pytest.raises(UsageError):
        Graces({}).but(gang_partial=1)


# uptime


def test_the_longest_stretch_of_presence() -> None:
    uptime = Uptime()
    assert uptime.longest(0, 10) == 10
    uptime.set(False, 2)
    assert uptime.longest(0, 10) == 2
    uptime.set(True, 5)
    assert uptime.longest(0, 10) == 5
    assert uptime.longest(3, 4) == 0
    assert uptime.longest(6, 7) == 1
    uptime.set(False, 9)
    assert uptime.longest(0, 10) == 4


def test_the_world_forgets_what_is_gone() -> None:
    h = History()
    world = World()
    h.node("n1", gpus=1)
    job = h.job(Worker=1)
    pod = job.pod("Worker", 0, gpus=1)
    pod.bind("n1")
    pod.gone()
    job.gone()
    for event in h.events:
        world.feed(event)

    assert not (world.pods)
    assert not (world.jobs)
    assert not (world.members)
    assert not (world.called)
    assert not world.nodes["n1"].pods
