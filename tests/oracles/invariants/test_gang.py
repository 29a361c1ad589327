"""All or nothing."""

from __future__ import annotations

from tests.oracles.build import SCHEDULER, History, Pod, broken, each, exercised, names

GROUP = 2  # number of the event that showed the group
RULE = "gang-atomicity"
PART = "part of a gang stayed bound"


def _gang(size: int, minimum: int | None = None, **pod: object) -> tuple[History, list[Pod]]:
    h = History()
    h.node("n1", gpus=8)
    h.group("train", minimum or size)
    member = {"scheduling.x-k8s.io/pod-group": "train"}
    spec = {"schedulerName": SCHEDULER, **pod}
    return h, [h.pod(f"w{i}", labels=member, **spec) for i in range(size)]  # type: ignore[arg-type]


def test_part_of_a_gang_bound_for_ever_is_told_with_its_bindings() -> None:
    h, pods = _gang(3)
    h.after(5)
    bound = each(pods[:2], lambda pod: pod.bind("n1"))
    h.after(60)
    h.node("n2")

    [(name, signature, events)] = broken(h)

    assert (name, signature) == (RULE, PART)
    assert events == (GROUP, *bound)
    [violation] = h.judge().violations
    assert violation.subject == "PodGroup t/train"
    assert violation.lasting
    assert "2 of its pods were bound for 60.0 s, and its minimum is 3" in violation.message


def test_part_of_a_gang_that_is_completed_too_late_is_told() -> None:
    h, pods = _gang(3)
    first = pods[0].bind("n1")
    h.after(16)
    second = pods[1].bind("n1")
    last = pods[2].bind("n1")

    assert broken(h) == [(RULE, PART, (GROUP, first, second, last))]
    # of a scheduler that is known to need longer, nothing is told
    assert broken(h, gang_partial=17) == []


def test_one_pod_of_a_waiting_gang_bound_by_hand_is_told() -> None:
    h, pods = _gang(4)
    h.after(30)
    bound = pods[2].bind("n1")
    h.after(16)
    pods[2].deleting()
    gone = pods[2].gone()

    assert broken(h) == [(RULE, PART, (GROUP, bound, gone))]


def test_a_minimum_that_rises_before_it_is_reached_counts_as_it_is() -> None:
    h, pods = _gang(4, minimum=3)
    each(pods[:2], lambda pod: pod.bind("n1"))
    h.after(1)
    uid = h.events[GROUP - 1].uid
    h.add("watch", "MODIFIED", "PodGroup", "t", "train", uid, {"spec": {"minMember": 4}})
    pods[2].bind("n1")
    h.after(30)

    assert names(h) == {RULE}


def test_a_gang_bound_within_the_grace_is_fine() -> None:
    h, pods = _gang(3)
    for pod in pods:
        h.after(4)
        pod.bind("n1")
    h.after(100)

    assert names(h) == set()
    assert exercised(h, RULE) == 1


def test_after_the_admission_fewer_may_be_left() -> None:
    h, pods = _gang(3)
    each(pods, lambda pod: pod.bind("n1"))
    h.after(20)
    pods[1].run()
    pods[1].fail()
    h.after(100)

    assert names(h) == set()


def test_the_surplus_may_come_whenever_there_is_room() -> None:
    h, pods = _gang(4, minimum=2)
    each(pods[:2], lambda pod: pod.bind("n1"))
    h.after(100)
    pods[2].bind("n1")
    h.after(100)

    assert names(h) == set()


def test_a_binding_that_is_given_back_in_time_is_fine() -> None:
    h, pods = _gang(3)
    pods[0].bind("n1")
    h.after(8)
    pods[0].gone()
    h.after(100)

    assert names(h) == set()


def test_each_admission_is_judged_anew() -> None:
    h, pods = _gang(2)
    each(pods, lambda pod: pod.bind("n1"))
    h.after(20)
    each(pods, lambda pod: pod.gone())
    h.after(20)
    again = h.pod("w0", labels=pods[0].meta["labels"], schedulerName=SCHEDULER)
    bound = again.bind("n1")
    h.after(20)

    [(name, _, events)] = broken(h)
    assert name == RULE
    assert bound in events
    assert exercised(h, RULE) == 2


def test_pods_of_the_default_scheduler_have_no_such_promise() -> None:
    """The operator makes groups for them too, which nobody reads: the contrast of S04."""
    h, pods = _gang(8, schedulerName="default-scheduler")
    each(pods[:6], lambda pod: pod.bind("n1"))
    h.after(100)

    assert RULE not in names(h)


def test_volcano_names_the_group_in_an_annotation() -> None:
    h = History()
    h.group("train", 3)
    pod = h.pod("a", annotations={"scheduling.k8s.io/group-name": "train"}, schedulerName="volcano")
    pod.bind("n1")
    h.after(100)

    assert names(h) == {RULE}


def test_the_native_scheduler_names_it_in_the_spec() -> None:
    h = History()
    group = h.group("train", 0)
    group.change(spec={"minMember": None, "schedulingPolicy": {"gang": {"minCount": 2}}})
    h.pod("a", schedulingGroup={"podGroupName": "train"}).bind("n1")
    h.after(100)

    assert names(h) == {RULE}


def test_pods_that_were_bound_before_we_looked_are_not_blamed() -> None:
    h = History()
    h.group("train", 3)
    h.pod(
        "a",
        labels={"scheduling.x-k8s.io/pod-group": "train"},
        schedulerName=SCHEDULER,
        nodeName="n1",
    )
    h.after(100)

    assert names(h) == set()


def test_while_the_scheduler_is_away_the_clock_stands_still() -> None:
    h, pods = _gang(3)
    h.pod("kube-scheduler", "system", labels={"component": "kube-scheduler"}).run()
    scheduler = h.pod("scheduler", "system", labels={"component": "scheduler"})
    scheduler.run()
    pods[0].bind("n1")
    scheduler.gone()
    h.after(60)
    new = h.pod("scheduler-2", "system", labels={"component": "scheduler"})
    new.run()
    h.after(5)
    each(pods[1:], lambda pod: pod.bind("n1"))
    h.after(100)

    assert names(h) == set()


def test_the_absence_of_another_scheduler_is_no_excuse() -> None:
    h, pods = _gang(3)
    h.pod("scheduler", "system", labels={"component": "scheduler"}).run()
    other = h.pod("kube-scheduler", "system", labels={"component": "kube-scheduler"})
    other.run()
    pods[0].bind("n1")
    other.gone()
    h.after(60)

    assert names(h) == {RULE}
