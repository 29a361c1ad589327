"""Running an experiment in a process of its own.

chaostoolkit works in a main thread only, changes the experiment that it is given, and hangs for
ever when an activity does. So it gets a process; when the experiment's deadline is over, that is
told to end (it does its rollbacks then), then killed, and what it broke is mended from the journal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos import undo
from chaos.experiments import Experiment
from chaos.experiments.verdicts import Verdict, notes_of, of_journal
from chaos.session import VARIABLE, Handover
from clusters.progress import say
from clusters.providers import provider
from oracles.errors import HarnessError
from oracles.outcome import Outcome

#: seconds that an experiment which was told to end gets for its rollbacks
GRACE = 120.0
JOURNAL, LOG = "journal.json", "chaostoolkit.log"
#: what Python runs; see :mod:`chaos.experiments.child`
CHILD = ["-m", "chaos.experiments.child"]


def run(
    experiment: Experiment, handover: Handover, *, deadline: float | None = None,
    grace: float = GRACE, environment: Mapping[str, str] | None = None,
) -> Verdict:  # fmt: skip
    """Run it; what it means. Everything is in the handover's folder afterwards.

    Args:
        deadline: seconds; the experiment's own by default.
        grace: seconds that it gets for its rollbacks when its deadline is over.
        environment: variables on top of this process's own.
    """
    folder = Path(handover.folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.json").write_text(json.dumps(experiment.data, indent=1))
    (folder / "session.json").write_text(handover.model_dump_json(indent=1))
    for name in (JOURNAL, LOG):
        (folder / name).unlink(missing_ok=True)
    within = deadline if deadline is not None else experiment.about.deadline_s
    ended = _spawn(folder, within, grace, environment or {})
    trouble = _mended(handover)
    verdict = _read(folder, ended, within)
    return verdict if trouble is None else verdict.and_also(trouble)


def _spawn(folder: Path, within: float, grace: float, more: Mapping[str, str]) -> str:
    """Run chaostoolkit in *folder*; "" when it came to its end, else what was done to it."""
    words = [sys.executable, *CHILD, str(folder)]
    environment = {**os.environ, **more, VARIABLE: str(folder / "session.json")}
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(timeout=within)
            return ""
        except subprocess.TimeoutExpired:
            say(f"the experiment is over its deadline of {within:.0f} s: ending it")
        except BaseException:  # Ctrl-C: it gets time to mend what it broke
            _end(process, grace)
            raise
        return _end(process, grace)


def _end(process: subprocess.Popen[bytes], grace: float) -> str:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=grace)
        return "it was told to end"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"it was told to end and did not within {grace:.0f} s, so it was killed"


def _mended(handover: Handover) -> Verdict | None:
    """Mend what the process left broken; what there is to say of that."""
    try:
        lines = undo.mend_named(provider(handover.provider), handover.cluster)
    except HarnessError as error:
        return Verdict(Outcome.INCONCLUSIVE, (str(error),))
    if lines:
        return Verdict(Outcome.INCONCLUSIVE, tuple(f"it left broken, {line}" for line in lines))
    return None


def _read(folder: Path, ended: str, within: float) -> Verdict:
    notes = notes_of(folder)
    try:
        journal: Mapping[str, Any] = json.loads((folder / JOURNAL).read_text())
    except (OSError, ValueError):
        last = notes[-1]["activity"] if notes else "none"
        why = ended or "it ended without a journal"
        over = f" after its deadline of {within:.0f} s" if ended else ""
        text = f"{why}{over}; the last activity that ended: {last}\n{tail(folder / LOG)}"
        return Verdict(Outcome.INCONCLUSIVE, (text.rstrip(),))
    verdict = of_journal(journal, notes)
    if ended:
        text = f"{ended} after its deadline of {within:.0f} s"
        return Verdict(Outcome.INCONCLUSIVE, (text,)).and_also(verdict)
    return verdict


def tail(path: Path, lines: int = 12) -> str:
    """The end of a log, indented."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(f"  | {line}" for line in text.splitlines()[-lines:])
