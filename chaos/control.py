"""The control of every experiment: opens the session that its activities work on.

In a process that was started by the harness the session is handed over (``MUSTER_SESSION``). Under
the stock ``chaos run FILE`` there is none: then the environment says which cluster is meant
(``MUSTER_CLUSTER``, needed only where several are up; ``MUSTER_OPERATOR``, ``MUSTER_SCHEDULER``,
``MUSTER_TORCH`` where they are not the defaults), a namespace is made and recorded, and what it all
means is judged at the end, and written into the journal as ``muster``.
"""

from __future__ import annotations

import os
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

_held: ExitStack | None = None


def before_experiment_control(context: Mapping[str, Any], **more: Any) -> None:
    """Open the session. Raises InterruptExecution, which ends the experiment."""
    global _held
    try:
        if path := os.environ.get(VARIABLE):
            session.use(session.open_session(Handover.read(Path(path))))
        else:
            from chaos import standing

            _held = ExitStack()
            session.use(_held.enter_context(standing.from_environment(str(context["title"]))))
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
    global _held
    held, _held = _held, None
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
    from chaos.experiments import verdicts

    folder = it.folder
    held.close()
    verdict = verdicts.of_run(state, folder, history=folder / "history.jsonl")
    state["muster"] = verdict.as_json()
    say(verdict.text())
