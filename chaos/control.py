"""The control of every experiment: opens the session that its activities work on.

In a process that was started by the harness the session is handed over (``MUSTER_SESSION``). Under
the stock ``chaos run FILE`` there is none: then the environment says which cluster is meant
(``MUSTER_CLUSTER``, needed only where several are up; ``MUSTER_OPERATOR``, ``MUSTER_SCHEDULER``,
``MUSTER_TORCH`` where they are not the defaults). The file is checked as ``python -m chaos`` does
it, a namespace is made and recorded, and the experiment is ended when it is over its deadline. What
it all means is judged at the end, and written into the journal as ``muster``.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from chaoslib.exceptions import InterruptExecution

from chaos import activities, session
from chaos.session import VARIABLE, Handover
from clusters.progress import say
from clusters.topology import Topology
from oracles.errors import HarnessError
from oracles.outcome import Outcome

_held: ExitStack | None = None
_deadline: Deadline | None = None


class Deadline(threading.Thread):
    """Ends this process's experiment when its time is over, as the harness does from outside.

    Attributes:
        said: what was done to it; "" while nothing was.
    """

    def __init__(self, within: float, grace: float) -> None:
        super().__init__(name="deadline", daemon=True)
        self.said = ""
        self._within, self._grace = within, grace
        self._over = threading.Event()

    def run(self) -> None:
        """Tell it to end, so that it does its rollbacks; kill it if it does not."""
        if self._over.wait(self._within):
            return
        self.said = f"it was told to end after its deadline of {self._within:.0f} s"
        say(self.said)
        os.kill(os.getpid(), signal.SIGTERM)
        if not self._over.wait(self._grace):
            say(f"it did not within {self._grace:.0f} s: killed; `python -m chaos mend` mends")
            os.kill(os.getpid(), signal.SIGKILL)

    def cancel(self) -> None:
        """It has ended."""
        self._over.set()


def before_experiment_control(context: Mapping[str, Any], **more: Any) -> None:
    """Open the session. Raises InterruptExecution, which ends the experiment."""
    global _held, _deadline
    try:
        if path := os.environ.get(VARIABLE):
            session.use(session.open_session(Handover.read(Path(path))))
        else:
            from chaos import experiments, standing
            from chaos.experiments.running import GRACE

            title = str(context["title"])
            about = experiments.checked(dict(context), title)  # nobody else has looked at it
            _held = ExitStack()
            session.use(_held.enter_context(standing.from_environment(title)))
            _deadline = Deadline(about.deadline_s, GRACE)
            _deadline.start()
    except HarnessError as error:
        say(f"error: {error}")
        raise InterruptExecution(str(error)) from error
    if reason := unfit(context, session.current().site.cluster.topology):
        activities.refuse(session.current(), reason)


def unfit(experiment: Mapping[str, Any], topology: Topology) -> str:
    """Why a cluster cannot answer an experiment's question; "" when it can."""
    found = [e for e in experiment.get("extensions") or [] if e.get("name") == "muster"]
    about = found[0] if found else {}
    wanted = about.get("topology") or ()
    if wanted and topology.name not in wanted:
        return f"it needs topology {' or '.join(wanted)}, this is {topology.name}"
    if (gpus := int(about.get("gpus") or 0)) > topology.gpus:
        return f"it needs {gpus} GPUs, the cluster has {topology.gpus}"
    return ""


def after_experiment_control(
    context: Mapping[str, Any], state: dict[str, Any], **more: Any
) -> None:
    """Close it; where nobody else judges, judge."""
    global _held, _deadline
    held, _held = _held, None
    deadline, _deadline = _deadline, None
    if deadline is not None:
        deadline.cancel()
    try:
        it = session.current()
    except HarnessError:
        return
    try:
        it.close()
    except HarnessError as error:
        say(f"error: {error}")
    session.use(None)
    if held is None:
        return
    from chaos import experiments
    from chaos.experiments import verdicts

    folder = it.folder
    held.close()
    verdict = verdicts.of_journal(state, verdicts.notes_of(folder))
    title = str(context["title"])
    about = experiments.checked(dict(context), title)
    history = folder / "history.jsonl"
    verdict = verdicts.of_run(verdict, about, experiments.titled(title), history)
    if deadline is not None and deadline.said:
        verdict = verdicts.Verdict(Outcome.INCONCLUSIVE, (deadline.said,)).and_also(verdict)
    state["muster"] = verdict.as_json()
    say(verdict.text())
