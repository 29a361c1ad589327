"""Proofs: a real system is broken on purpose, and the harness has to say so.

A proof is a test that breaks something and names what has to be said of it::

    @pytest.mark.proves("G16", by="a pod of a gang was bound by hand", rule="gang-atomicity")

It is judged as any test of the suites is, by its assertions and by its history. Here that judgement
is compared with the one that is expected, before the plugin reports it: only a proof whose system
was *not* condemned, or for another reason, fails.

``outcome`` is FAIL unless given. ``rule`` is the invariant that has to have found it, for the
behaviour that is named; ``shows`` a text that has to stand in what is said.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest

from fixtures.plugin import attempts, context, outcomes, run, soundness
from fixtures.plugin.judging import with_history
from fixtures.plugin.outcomes import RECORD, Broken, Record, Verdict
from oracles import proofs
from oracles.errors import NotApplicable
from oracles.outcome import Outcome
from oracles.proofs import Proof

ROW = "proof"
#: characters of what was said that are kept
SHOWN = 500
_rows = pytest.StashKey[list[Proof]]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Compare what a proof's test means with what it has to mean."""
    mark, record = item.get_closest_marker("proves"), item.stash.get(RECORD, None)
    if mark is None or record is None:
        return (yield)
    # what is broken on purpose stays so for longer than its grace, however busy this host is
    record.strict = True
    began = time.monotonic()
    error: BaseException | None = None
    verdict = Verdict(Outcome.PASS, "", [])
    try:
        yield
    except NotApplicable:
        raise  # nothing could be broken here
    except Exception as raised:
        error = with_history(record, raised)
        verdict = outcomes.judge(error, lambda: soundness.of_test(record))
    wrong = complaint(error, verdict, *mark.args, **mark.kwargs)
    row = _row(item, record, verdict, error, held=not wrong, seconds=time.monotonic() - began)
    item.user_properties.append((ROW, row.model_dump_json()))
    if wrong:
        raise AssertionError(wrong) from error
    return None


def complaint(
    error: BaseException | None,
    verdict: Verdict,
    what: str,
    *,
    by: str,
    outcome: str = "FAIL",
    rule: str = "",
    shows: str = "",
) -> str:
    """Why the harness is wrong about a broken system; "" when it is right."""
    said = f"{verdict.outcome}: {verdict.reason or 'nothing was found'}"
    if verdict.outcome is not Outcome(outcome):
        return f"{by}: that is {outcome}, but the harness says {said}"
    if rule and (what, rule) not in _found(error):
        return f"{by}: {what} {rule} was to say so, but the harness says {said}"
    if shows not in verdict.reason:
        return f"{by}: the harness was to speak of {shows!r}, but says {said}"
    return ""


def _found(error: BaseException | None) -> list[tuple[str, str]]:
    """Behaviour and invariant of all that was found in the history."""
    if isinstance(error, BaseExceptionGroup):
        return [pair for each in error.exceptions for pair in _found(each)]
    return [(v.behaviour, v.invariant) for v in error.found] if isinstance(error, Broken) else []


def _row(
    item: pytest.Item,
    record: Record,
    verdict: Verdict,
    error: BaseException | None,
    *,
    held: bool,
    seconds: float,
) -> Proof:
    mark = item.get_closest_marker("proves")
    assert mark is not None
    what, rule = mark.args[0], mark.kwargs.get("rule", "")
    wanted = f"{what} {rule}: " if rule else mark.kwargs.get("shows", "")
    lines = [line for line in verdict.reason.splitlines() if wanted and wanted in line]
    return Proof(
        proves=what,
        rule=rule,
        by=mark.kwargs["by"],
        expected=Outcome(mark.kwargs.get("outcome", "FAIL")),
        outcome=verdict.outcome,
        shown=(lines[0] if lines else verdict.reason)[:SHOWN],
        held=held,
        test=item.nodeid,
        seconds=round(seconds, 1),
        versions={"muster": run.versions().get("muster", ""), **_versions(item, record)},
        date=proofs.now(),
    )


def _versions(item: pytest.Item, record: Record) -> dict[str, str]:
    """Of the system that was broken, which may be another one than the run's."""
    shared, selected = context.of(item.config), record.selected
    found = attempts.versions(shared, selected, record.kubernetes)
    asked = attempts.combination_of(shared, selected)
    if record.system is None or asked is None or record.system.combination == asked:
        return found
    used = record.system.combination
    for label in (asked.operator_label, asked.scheduler_label):
        found.pop(label.partition(":")[0], None)
    for label in (used.operator_label, used.scheduler_label):
        name, _, version = label.partition(":")
        found[name] = version
    return found


# what comes out ------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Begin to collect rows."""
    config.addinivalue_line(
        "markers", "proves(what, by, ...): see the head of tests/proofs/judging.py"
    )
    config.stash[_rows] = []


class _Collecting:
    """Registered where reports arrive; hooks of a conftest do not know the configuration."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, value in report.user_properties:
                if name == ROW:
                    row = Proof.model_validate(json.loads(str(value)))
                    self._config.stash[_rows].append(row)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Collect."""
    session.config.pluginmanager.register(_Collecting(session.config), "muster-proofs")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Write the file, and say what is proven and what is not."""
    rows, folder = config.stash[_rows], context.of(config).run
    if not rows or folder is None:
        return
    path = folder.path / proofs.FILE
    made = proofs.write(path, rows)
    terminalreporter.section("proofs", sep="=")
    for row in made.proofs:
        name = f"{row.proves} {row.rule}".strip()
        said = f"{row.outcome}" if row.held else f"{row.outcome}, NOT as it has to be"
        terminalreporter.line(f"{name:26} {row.by}: {said} ({row.seconds:.0f} s)", red=not row.held)
    for what, names in made.unproven.model_dump().items():
        if names:
            terminalreporter.line(f"unproven {what}: {', '.join(names)}", yellow=True)
    terminalreporter.line(f"proofs: {path}")
