"""The order of events: by version, else by time, never by arrival."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from oracles.history import Event
from oracles.ordering import ordered


def watch(seq: int, mono: float, rv: int, kind: str = "Pod", type: str = "MODIFIED") -> Event:
    return Event(seq, 1000 + mono, mono, "watch", type, kind, rv=rv)


def other(seq: int, mono: float, source: str = "fault", type: str = "inject", **more: Any) -> Event:
    return Event(seq, 1000 + mono, mono, source, type, **more)


def seqs(events: Iterable[Event]) -> list[int]:
    return [event.seq for event in events]


def test_versions_order_events_of_different_kinds() -> None:
    # the status of a job was written before the pod changed, and arrived after it
    events = [watch(1, 1.0, 10), watch(2, 2.0, 12), watch(3, 2.5, 11, "PyTorchJob")]
    assert seqs(ordered(events)) == [1, 3, 2]


def test_a_late_event_gets_the_time_at_which_it_had_happened_at_the_latest() -> None:
    events = [watch(1, 1.0, 10), watch(2, 2.0, 12), watch(3, 7.5, 11, "PyTorchJob")]
    one, three, two = ordered(events)
    assert (one.mono, three.mono, two.mono) == (1.0, 2.0, 2.0)
    assert three.t == 1002.0
    assert three.seq == 3


def test_what_has_no_version_comes_after_what_had_certainly_happened() -> None:
    events = [watch(1, 1.0, 10), other(2, 2.0), watch(3, 2.0001, 12), watch(4, 2.1, 11, "Node")]
    # 11 arrived after the fault; it may have happened before it, but that is not certain
    assert seqs(ordered(events)) == [1, 2, 4, 3]
    # here it is: what came after it arrived before the fault
    events = [watch(1, 1.0, 10), watch(2, 1.9, 12), other(3, 2.0), watch(4, 2.1, 11, "Node")]
    assert seqs(ordered(events)) == [1, 4, 2, 3]


def test_times_alone_order_what_has_no_versions() -> None:
    events = [other(1, 3.0), other(2, 1.0, "progress", "step"), other(3, 2.0, "progress", "step")]
    assert seqs(ordered(events)) == [2, 3, 1]


def test_equal_versions_and_times_keep_the_order_of_arrival() -> None:
    events = [watch(1, 1.0, 5), watch(2, 1.0, 5), other(3, 1.0), other(4, 1.0)]
    assert seqs(ordered(events)) == [1, 2, 3, 4]


def test_what_comes_after_the_window_is_given_at_once_and_reported() -> None:
    # more than a block, so that something was given before the late one comes
    many = [watch(n, n / 100, 10 * n) for n in range(1, 4001)]
    late = watch(4001, 40.02, 15, "Node")
    reported: list[Event] = []
    found = list(ordered([*many, late], window=10, late=reported.append))
    assert reported == [late]
    assert sorted(seqs(found)) == list(range(1, 4002))
    times = [event.mono for event in found]
    assert times == sorted(times)
    # within the window it would have been nothing to report
    reported.clear()
    in_time = watch(4001, 40.02, 39_995, "Node")
    assert seqs(ordered([*many, in_time], window=10, late=reported.append))[-2:] == [4001, 4000]
    assert reported == []


def test_what_a_list_finds_after_a_gap_is_not_late() -> None:
    many = [watch(n, n / 100, 10 * n) for n in range(1, 4001)]
    gap = [
        other(4001, 41, "gap", "begin", kind="Node"),
        watch(4002, 41, 15, "Node", "ADDED"),
        other(4003, 41, "gap", "end", kind="Node"),
        watch(4004, 41, 16, "Node"),
    ]
    reported: list[Event] = []
    assert len(list(ordered([*many, *gap], window=10, late=reported.append))) == 4004
    assert seqs(reported) == [4004]


def test_a_state_may_be_in_any_order() -> None:
    state = [watch(n, n / 10, 5000 - n, type="ADDED") for n in range(1, 4001)]
    reported: list[Event] = []
    assert len(list(ordered(state, window=1, state_until=4000, late=reported.append))) == 4000
    assert reported == []
    assert list(ordered(state, window=1, late=reported.append))
    assert reported


def test_what_waits_is_bounded() -> None:
    # all at one moment: no window would ever be over
    events = (watch(n, 1.0, n) for n in range(1, 20_001))
    taken = 0

    def count() -> Iterable[Event]:
        nonlocal taken
        for event in events:
            taken += 1
            yield event

    stream = iter(ordered(count(), limit=5_000))
    next(stream)
    assert taken < 10_000
    assert seqs(stream) == list(range(2, 20_001))


KINDS = ("Pod", "Node", "PyTorchJob")


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[Event], list[int]]:
    """What happened, as it arrived on three connections, each with delays of its own."""
    count = draw(st.integers(1, 60))
    at = 0.0
    happened = []
    busy = dict.fromkeys(KINDS, 0.0)  # a connection delivers in order
    for version in range(1, count + 1):
        at += draw(st.floats(0, 0.5))
        kind = draw(st.sampled_from((*KINDS, "")))
        if not kind:  # a fault: no version, and no delay
            happened.append((at, at, "", 0))
            continue
        busy[kind] = max(busy[kind], at + draw(st.floats(0, 4.9)))
        happened.append((busy[kind], at, kind, version))
    by_arrival = sorted(happened, key=lambda item: item[0])
    events = []
    for seq, (arrival, _, kind, version) in enumerate(by_arrival, 1):
        if kind:
            events.append(watch(seq, arrival, version, kind))
        else:
            events.append(other(seq, arrival))
    return events, [version for _, _, kind, version in happened if kind]


@given(arrivals(), st.integers(1, 7))
def test_whatever_the_delays_the_order_is_the_one_that_was(
    made: tuple[list[Event], list[int]], block: int
) -> None:
    import oracles.ordering as module

    events, versions = made
    usual, module._BLOCK = module._BLOCK, block
    try:
        reported: list[Event] = []
        found = list(ordered(events, window=5.0, late=reported.append))
    finally:
        module._BLOCK = usual
    assert reported == []
    assert sorted(seqs(found)) == seqs(events)
    assert [event.rv for event in found if event.rv] == versions
    times = [event.mono for event in found]
    assert times == sorted(times)
    arrival = {event.seq: event.mono for event in events}
    for event in found:
        # never later than it arrived; what has no version exactly when it says
        assert event.mono <= arrival[event.seq]
        assert event.rv or event.mono == arrival[event.seq]
    position = {event.seq: index for index, event in enumerate(found)}
    for fault in (event for event in events if not event.rv):
        for earlier in events:
            if earlier.mono < fault.mono:
                assert position[earlier.seq] < position[fault.seq]
