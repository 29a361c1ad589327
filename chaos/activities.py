"""What every activity of an experiment has in common: what it means is written down.

chaostoolkit keeps of a failed activity only a text, and goes on with the next one. So each activity
writes a line to ``activities.jsonl`` in the session's folder: its name, times, outcome and reason;
and after the first one that failed the others of the method end at once. An exception that is none
of the ordinary ones (``pytest.fail``, ``SystemExit``) would make chaostoolkit hang or end without
rollbacks: it is made an ordinary one.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from contextlib import suppress

from chaoslib.exceptions import InterruptExecution

from chaos import session
from chaos.errors import FaultError
from clusters.errors import WaitTimeout
from clusters.resources import touched
from oracles.errors import HarnessError, NotApplicable
from oracles.outcome import Outcome

FILE = "activities.jsonl"
#: how often a job is written to, and for how many seconds it is then looked at
TOUCHES, TOUCHED_FOR = 10, 5.0
SKIPPED = "skipped"


class ActivityTrouble(Exception):
    """What an activity raised, as an ordinary exception."""


def activity[**P, R](function: Callable[P, R], *, always: bool = False) -> Callable[P, R]:
    """An activity of ours. *always*: it is done also after another one has failed."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        it = session.current()
        if it.failed and not always:
            _write(it, function.__name__, time.time(), SKIPPED, it.failed)
            raise ActivityTrouble(f"skipped: {it.failed}")
        started = time.time()
        try:
            result = function(*args, **kwargs)
        except (InterruptExecution, KeyboardInterrupt):
            raise
        except BaseException as error:
            outcome = meaning(error)
            reason = f"{function.__name__}: {error or type(error).__name__}"
            _write(it, function.__name__, started, outcome, reason)
            if not always:
                it.failed = reason.partition("\n")[0]
            if isinstance(error, Exception):
                raise
            raise ActivityTrouble(f"{type(error).__name__}: {error}") from error
        _write(it, function.__name__, started, Outcome.PASS, "")
        return result

    return run


def refuse(it: session.Session, reason: str) -> None:
    """Let no activity but mending be done, because the cluster is not what is needed."""
    it.failed = reason
    _write(it, "session", time.time(), Outcome.NOT_APPLICABLE, reason)


def mending[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """An activity that is done in any case: a rollback."""
    return activity(function, always=True)


def meaning(error: BaseException) -> Outcome:
    """What an exception out of an activity says of the experiment."""
    if isinstance(error, NotApplicable):
        return Outcome.NOT_APPLICABLE
    if isinstance(error, AssertionError):
        return Outcome.FAIL
    return Outcome.INCONCLUSIVE


def promised[R](what: str, wait: Callable[[], R]) -> R:
    """Wait for what the system under test promises; AssertionError when it does not come.

    Raises:
        HarnessError: the API server does not answer, so nobody can say.
    """
    try:
        return wait()
    except WaitTimeout as error:
        if not session.current().kube.ready():
            raise HarnessError(f"{what}: not seen; the API server is not ready: {error}") from error
        raise AssertionError(f"{what}: {error}") from None


def promised_of[R](
    job: str, what: str, wait: Callable[[float], R], within: float, *, kind: str = "PyTorchJob"
) -> R:
    """As :func:`promised`; of a job that its operator may have forgotten.

    What does not come within so many seconds may come when somebody writes to the job, so that the
    operator looks at it: the error says whether it does.
    """
    try:
        return promised(what, lambda: wait(within))
    except AssertionError as error:
        helps = "also when somebody writes to it"
        it = session.current()
        for _ in range(TOUCHES):  # what follows that write may be refused, too
            it.kube.patch(it.operator.jobs[kind], job, touched(), it.namespace)
            with suppress(WaitTimeout):
                wait(TOUCHED_FOR)
                helps = "until somebody writes to it"
                break
        raise AssertionError(f"{error}, {helps}") from None


def node_named(words: str) -> str:
    """A node by its name, as ``worker:N`` (from 0), ``control-plane``, or ``of:POD``.

    Raises:
        FaultError: there is none.
    """
    it = session.current()
    kind, colon, rest = words.partition(":")
    if kind == "of" and colon:
        node = it.site.pod(it.namespace, rest)["spec"].get("nodeName")
        if not node:
            raise FaultError(f"pod {rest} is on no node yet")
        return str(node)
    if words == "control-plane":
        return it.site.control_plane()
    if kind == "worker" and colon:
        workers = workers_of(it)
        if not rest.isdigit() or int(rest) >= len(workers):
            raise FaultError(f"no node {words}: there are {len(workers)} workers")
        return workers[int(rest)]
    return words


def workers_of(it: session.Session) -> list[str]:
    """The nodes that are not of the control plane, by name."""
    from chaos.site import CONTROL_PLANE
    from clusters.kube import NODES

    return sorted(
        node["metadata"]["name"]
        for node in it.kube.find(NODES)
        if not set(CONTROL_PLANE) & (node["metadata"].get("labels") or {}).keys()
    )


def _write(it: session.Session, name: str, started: float, outcome: str, reason: str) -> None:
    line = {
        "t": round(started, 3),
        "seconds": round(time.time() - started, 3),
        "activity": name,
        "outcome": str(outcome),
        "reason": reason,
    }
    with it.lock, (it.folder / FILE).open("a") as file:
        file.write(json.dumps(line) + "\n")
