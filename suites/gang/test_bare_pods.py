"""Gang admission of bare pods: what the scheduler promises without any operator.

One row a case: who occupies the room, the gangs, and the steps with what has to be so after each.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from suites.gangs import TOO_MANY, Block, Gang, gang
from suites.pods import HOLD
from suites.promises import Promise
from suites.rows import Row, case
from suites.steps import (
    LOSER,
    SHORT,
    WINNER,
    Bound,
    Free,
    Group,
    Held,
    Made,
    Minimum,
    OneRuns,
    Pods,
    Remove,
    Replace,
    Scheduled,
    Submit,
    Succeeded,
    Together,
    Untouched,
)

_TWO = (gang("a", 5), gang("b", 5))
_ONE_AT_A_TIME = (
    OneRuns(("a", "b")),
    Held(SHORT, **{WINNER: 5, LOSER: 0}),
    Remove(WINNER),
    Bound(**{LOSER: 5}),
)

TABLE = [
    case(
        Row((gang("a", 4),), (Submit("a"), Bound(a=4), Scheduled("a"))),
        pytest.mark.behaviour("G01", case="pods"),
        pytest.mark.e2e,
    ),
    case(
        # kubeflow/trainer#922: a job of one pod got no group and waited for ever
        Row((gang("a", 1),), (Submit("a"), Bound(a=1), Scheduled("a"))),
        pytest.mark.behaviour("G01", case="a gang of one"),
    ),
    case(
        Row(
            (gang("a", 4),),
            (Group("a"), Pods("a", 3), Made("a", 3), Held(SHORT, a=0), Pods("a"), Bound(a=4)),
        ),
        pytest.mark.behaviour("G02", case="one pod short"),
    ),
    case(
        Row(
            (gang("a", 4),),
            (Pods("a"), Made("a", 4), Held(SHORT, a=0), Group("a"), Bound(a=4)),
            needs=(Promise.LATE_GROUP,),
        ),
        pytest.mark.behaviour("G03", case="pods first"),
    ),
    case(
        Row(
            (gang("a", 7),),
            (Submit("a"), Made("a", 7), Held(SHORT, a=0), Free(), Bound(a=7)),
            room=6,
        ),
        pytest.mark.behaviour("G04", case="pods, room is freed by deletion"),
    ),
    case(
        # kubernetes-sigs/scheduler-plugins#114: jobs waited on although others had ended
        Row(
            (gang("a", 7),),
            (Submit("a"), Made("a", 7), Bound(a=7)),
            room=7,
            blocks=(Block(seconds=6),),
        ),
        pytest.mark.behaviour("G04", case="pods, room is freed by success"),
    ),
    case(
        Row(
            (Gang("a", (1, 1, 1, TOO_MANY)),),
            (Submit("a"), Made("a", 4), Held(SHORT, a=0)),
        ),
        pytest.mark.behaviour("G05", case="too many GPUs"),
    ),
    case(
        Row(_TWO, (Submit("a", "b"), *_ONE_AT_A_TIME), room=8),
        pytest.mark.behaviour("G06", case="one after the other"),
    ),
    case(
        Row(_TWO, (Submit("b", "a"), *_ONE_AT_A_TIME), room=8),
        pytest.mark.behaviour("G06", case="the other after the one"),
    ),
    case(
        Row(_TWO, (Together("a", "b"), *_ONE_AT_A_TIME), room=8),
        pytest.mark.behaviour("G06", case="at once"),
        pytest.mark.core,
    ),
    case(
        # kubernetes-retired/kube-batch#376, volcano-sh/volcano#377: two jobs that each ask for all
        # there is evicted each other's pods, without end
        Row(
            (gang("a", 8), gang("b", 8)),
            (
                Together("a", "b"), OneRuns(("a", "b")),
                Held(HOLD, **{WINNER: 8, LOSER: 0}), Remove(WINNER), Bound(**{LOSER: 8}),
            ),
            room=8,
        ),
        pytest.mark.behaviour("G06", case="each wants all"),
    ),
    case(
        Row(
            (gang("a", 4, minimum=2),),
            (Submit("a"), Made("a", 4), Bound(a=2), Held(SHORT, a=2), Free(), Bound(a=4)),
            room=2,
            needs=(Promise.SURPLUS,),
        ),
        pytest.mark.behaviour("G07", case="all at once"),
    ),
    case(
        Row(
            (gang("a", 5, minimum=2),),
            (
                Group("a"), Pods("a", 1), Held(2, a=0), Pods("a", 1), Bound(a=2),
                Pods("a", 1), Bound(a=3), Pods("a", 1), Bound(a=4), Pods("a", 1), Bound(a=5),
            ),
            needs=(Promise.SURPLUS,),
        ),
        pytest.mark.behaviour("G07", case="one by one"),
    ),
    case(
        Row(
            (gang("a", 8), gang("b", 3)),
            (Submit("a"), Bound(a=8), Submit("b"), Made("b", 3), Held(SHORT, a=8, b=0)),
            room=8,
        ),
        pytest.mark.behaviour("G08", case="pods"),
    ),
    case(
        Row(
            (gang("a", 3, minimum=5, seconds=1),),
            (Submit("a"), Made("a", 3), Held(SHORT, a=0), Minimum("a", 3), Succeeded("a")),
            needs=(Promise.GROUP_OBJECT, Promise.NEW_MINIMUM),
        ),
        pytest.mark.behaviour("G10", case="pods"),
        pytest.mark.core,
    ),
    case(
        Row(
            (gang("a", 7), gang("b", 2)),
            (
                Submit("a"), Made("a", 7), Held(SHORT, a=0),
                Submit("b"), Bound(b=2), Held(SHORT, a=0),
            ),
            room=6,
        ),
        pytest.mark.behaviour("G11", case="far too little room"),
    ),
    case(
        # kubernetes-sigs/scheduler-plugins#713: a gang that misses a tenth of itself or less keeps
        # what it holds until its permit time is over, takes it again, and starves the others
        Row(
            (Gang("a", (*(1,) * 7, 0, 0, TOO_MANY)), gang("b", 4)),
            (Submit("a"), Made("a", 10), Submit("b"), Bound(b=4), Held(SHORT, a=0, b=4)),
            room=8,
        ),
        pytest.mark.behaviour("G11", case="one pod of ten does not fit"),
    ),
    case(
        Row(
            (gang("a", 3, gpus=2), gang("b", 2)),
            (
                Submit("a"), Made("a", 3), Held(SHORT, a=0),
                Submit("b"), Bound(b=2), Held(SHORT, a=0, b=2),
                Free(), Remove("b"), Bound(a=3),
            ),
            blocks=(Block(node=0), Block(node=1)),
            needs=(Promise.FITS,),
        ),
        pytest.mark.behaviour("G12", case="3 and 3 for 3 of 2"),
        pytest.mark.topology("thread", "gpu-2x4"),
    ),
    case(
        Row(
            (gang("a", 3, gpus=4), gang("b", 1, gpus=4)),
            (
                Submit("a"), Made("a", 3), Held(SHORT, a=0),
                Submit("b"), Bound(b=1), Held(SHORT, a=0, b=1),
            ),
            room=12,
            needs=(Promise.FITS,),
        ),
        pytest.mark.behaviour("G12", case="6, 2, 2 and 2 for 3 of 4"),
        pytest.mark.topology("fragments"),
    ),
    case(
        Row(
            (gang("a", 4),),
            (Submit("a"), Bound(a=4), Replace("a", (1,)), Bound(a=4), Untouched()),
        ),
        pytest.mark.behaviour("G13", case="pods, on an empty cluster"),
    ),
    case(
        # the room that the lost one leaves is too little for the other gang, and enough for it
        Row(
            (gang("a", 6), gang("b", 4)),
            (
                Submit("a"), Bound(a=6), Submit("b"), Made("b", 4),
                Replace("a", (1,)), Bound(a=6), Untouched(), Held(SHORT, a=6, b=0),
            ),
            room=8,
        ),
        pytest.mark.behaviour("G13", case="pods, while another gang waits"),
    ),
    case(
        # fewer run than the minimum, but those that ended well were there: only one is missing
        Row(
            (gang("a", 4, brief={0: 5, 1: 5}),),
            (
                Submit("a"), Bound(a=4), Succeeded("a", 2), Bound(a=2),
                Replace("a", (2,)), Bound(a=2), Untouched(),
            ),
        ),
        pytest.mark.behaviour("G13", case="pods, after others have ended"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE)
def test_a_gang_of_bare_pods(row: Row, playing: Callable[[Row], None]) -> None:
    """See the row."""
    playing(row)
