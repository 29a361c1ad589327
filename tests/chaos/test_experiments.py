"""What an experiment means; files that prove nothing are refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from chaoslib.exceptions import InterruptExecution
from places import Place

from chaos import activities, control, experiments, session
from chaos.activities import ActivityTrouble, activity, mending
from chaos.errors import FaultError
from chaos.experiments import verdicts
from chaos.probes import training
from chaos.session import Handover
from clusters.errors import WaitTimeout
from clusters.kube import PYTORCHJOBS
from oracles import progress
from oracles.catalogue import catalogue
from oracles.errors import NotApplicable, UsageError
from oracles.history import Header, write
from oracles.outcome import Outcome

ALL = experiments.names()
GOOD: dict[str, Any] = yaml.safe_load((experiments.FOLDER / f"{ALL[0]}.yaml").read_text())


# files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_each_is_sound(name: str) -> None:
    it = experiments.read(experiments.find(name))
    assert it.about.question.count("?") == 1
    assert it.about.deadline_s <= 900
    assert catalogue().get(it.about.behaviour)
    functions = [str(step["provider"]["func"]) for step in it.data["method"]]
    touches = {
        "stop_node", "stop_kubelet", "cordon", "drain", "taint", "take_gpus", "sicken_gpus",
        "cut_nodes", "kill_system", "freeze_system", "take_system_away", "roll_system",
        "fail_over", "api_server_away", "freeze_component", "kill_component", "through_proxy",
    }  # fmt: skip
    assert it.about.exclusive == bool(touches & set(functions)), "who breaks what others use"
    assert it.about.torch == ("submit_training" in functions)
    submits = {name for name in functions if name.startswith("submit_") and "pod" not in name}
    assert bool(it.jobs) == bool(submits), "which jobs an operator has to run"
    assert ("TFJob" in it.jobs) == ("submit_tfjob" in functions)
    proxied = functions.count("through_proxy")
    assert proxied <= functions.count("recover"), "the hypothesis holds only without the proxy"


def test_there_are_enough_and_each_asks_something_else() -> None:
    questions = {experiments.read(experiments.find(name)).about.question for name in ALL}
    assert len(questions) == len(ALL) >= 15


def saved(folder: Path, data: Any) -> Path:
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(data) if not isinstance(data, str) else data)
    return path


def changed(change: Any) -> dict[str, Any]:
    data = copy.deepcopy(GOOD)
    change(data)
    return data


def drop(*keys: str) -> Any:
    def change(data: dict[str, Any]) -> None:
        for key in keys[:-1]:
            data = data[key]
        del data[keys[-1]]

    return change


def provider(**more: Any) -> Any:
    return lambda data: data["method"][0]["provider"].update(more)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (provider(func="explode"), "method: .*: there is no action 'explode' in chaos.actions"),
        (provider(func="target"), "there is no action 'target'"),
        (provider(func="Cut"), "there is no action 'Cut'"),
        (provider(module="os", func="system"), "its provider is not python with one of"),
        (
            provider(arguments={"name": "x", "colour": "red"}),
            "unexpected keyword argument 'colour'",
        ),
        (provider(arguments={}), "missing a required argument"),
        (drop("rollbacks"), "rollbacks: recover_all is needed"),
        (lambda d: d["rollbacks"].pop(0), "rollbacks: recover_all is needed"),
        (drop("runtime"), "runtime.rollbacks.strategy: has to be always"),
        (drop("steady-state-hypothesis"), "without a probe nobody knows"),
        (drop("controls"), "controls: chaos.control is needed"),
        (drop("method"), "method: it does nothing"),
        (drop("title"), "title: is needed"),
        (drop("extensions"), "one named muster is needed"),
        (lambda d: d["extensions"][0].update(question="It goes on."), "question: "),
        (lambda d: d["extensions"][0].update(behaviour="Z99"), "no behaviour 'Z99'"),
        (lambda d: d["extensions"][0].update(deadline_s=0), "deadline_s: "),
        (lambda d: d["extensions"][0].update(colour="red"), "colour: "),
        (lambda d: d["method"].append("x"), "is no activity"),
        (provider(func="recover", arguments={"label": False}), "label: False is no text"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(tmp_path: Path, change: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        experiments.read(saved(tmp_path, changed(change)))


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: [", "just words"])
def test_what_is_no_experiment(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError):
        experiments.read(saved(tmp_path, text))


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    data = changed(lambda d: (d.pop("controls"), d.pop("rollbacks")))
    with pytest.raises(UsageError) as error:
        experiments.read(saved(tmp_path, data))
    assert "controls" in str(error.value)
    assert "rollbacks" in str(error.value)


def test_no_such_experiment() -> None:
    with pytest.raises(UsageError, match="agent-frozen"):
        experiments.find("nothing")


# activities --------------------------------------------------------------------------------


@pytest.fixture
def at_work(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> session.Session:
    words = Handover(
        cluster="mine", provider="kind", operator="training-operator", scheduler="coscheduling",
        namespace="t", folder=str(tmp_path),
    )  # fmt: skip
    monkeypatch.setattr("chaos.session.provider", lambda name: place.provider)
    place.provider.get = lambda name: place.site.cluster  # type: ignore[attr-defined]
    it = session.open_session(words)
    session.use(it)
    yield it  # type: ignore[misc]
    session.use(None)
    it.close()


def raising(error: BaseException) -> Any:
    @activity
    def breaks() -> None:
        raise error

    return breaks


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (FaultError("no pod"), "INCONCLUSIVE"),
        (AssertionError("not bound"), "FAIL"),
        (NotApplicable("no netem"), "NOT_APPLICABLE"),
        (KeyError("x"), "INCONCLUSIVE"),
    ],
)
def test_what_an_activity_raises_is_written_down(
    at_work: session.Session, error: Exception, outcome: str
) -> None:
    with pytest.raises(type(error)):
        raising(error)()
    (note,) = verdicts.notes_of(at_work.folder)
    assert note["outcome"] == outcome
    assert str(error) in note["reason"]


@pytest.mark.parametrize("error", [SystemExit(1), pytest.fail.Exception("x"), GeneratorExit()])
def test_nothing_but_ordinary_exceptions_comes_out(
    at_work: session.Session, error: BaseException
) -> None:
    with pytest.raises(ActivityTrouble):
        raising(error)()


@pytest.mark.parametrize("error", [InterruptExecution("x"), KeyboardInterrupt()])
def test_an_interruption_stays_one(at_work: session.Session, error: BaseException) -> None:
    with pytest.raises(type(error)):
        raising(error)()
    assert at_work.failed == ""


def test_after_the_first_that_failed_only_mending_is_done(at_work: session.Session) -> None:
    done = []
    with pytest.raises(FaultError):
        raising(FaultError("no pod"))()
    with pytest.raises(ActivityTrouble, match="skipped: breaks: no pod"):
        activity(lambda: done.append("next"))()
    mending(lambda: done.append("mend"))()
    assert done == ["mend"]


@pytest.mark.parametrize(
    ("after", "said"),
    [(2, "3 pods run: not yet, until somebody writes to it"), (99, "also when somebody writes")],
)
def test_what_does_not_come_may_come_when_somebody_writes_to_the_job(
    at_work: session.Session, place: Place, after: int, said: str
) -> None:
    place.kube.put(PYTORCHJOBS, {"metadata": {"name": "work"}}, "t")

    def wait(deadline: float) -> int:
        touches = sum("pytorchjobs/work" in call for call in place.kube.calls)
        if touches < after:
            raise WaitTimeout("not yet")
        return 3

    with pytest.raises(AssertionError, match=said):
        activities.promised_of("work", "3 pods run", wait, 150)


def test_without_a_session_nothing_is_done() -> None:
    with pytest.raises(FaultError, match="no cluster is at hand"):
        activity(lambda: None)()


def test_a_cluster_that_cannot_answer_the_question(at_work: session.Session) -> None:
    def unfit(**about: Any) -> str:
        experiment = {"extensions": [{"name": "muster", **about}]}
        return control.unfit(experiment, at_work.site.cluster.topology)

    assert unfit() == unfit(gpus=2, topology=["small"]) == ""
    assert unfit(gpus=4) == "it needs 4 GPUs, the cluster has 2"
    assert unfit(topology=["gpu-2x4"]) == "it needs topology gpu-2x4, this is small"
    activities.refuse(at_work, unfit(gpus=4))
    with pytest.raises(ActivityTrouble, match="skipped: it needs 4 GPUs"):
        activity(lambda: None)()
    it = journal(run=[item("a", "failed")], steady_states=states(after=BAD))
    verdict = verdicts.of_journal(it, verdicts.notes_of(at_work.folder))
    assert verdict.outcome is Outcome.NOT_APPLICABLE


def test_nodes_by_their_place(at_work: session.Session, place: Place) -> None:
    from clusters.kube import NODES, PODS

    for name, labels in (
        ("n2", {}),
        ("cp", {"node-role.kubernetes.io/control-plane": ""}),
        ("n1", {}),
    ):
        place.kube.put(NODES, {"metadata": {"name": name, "labels": labels}})
    place.kube.put(PODS, {"metadata": {"name": "p"}, "spec": {"nodeName": "n2"}}, "t")
    place.kube.put(PODS, {"metadata": {"name": "waits"}}, "t")
    assert activities.node_named("worker:0") == "n1"
    assert activities.node_named("control-plane") == "cp"
    assert activities.node_named("of:p") == "n2"
    assert activities.node_named("n7") == "n7"
    for words in ("worker:2", "worker:x", "of:waits", "of:nobody"):
        with pytest.raises(FaultError):
            activities.node_named(words)


# verdicts ----------------------------------------------------------------------------------


def journal(**changes: Any) -> dict[str, Any]:
    """A journal in which all went well."""
    return {
        "status": "completed",
        "deviated": False,
        "steady_states": {
            "before": {"steady_state_met": True},
            "after": {"steady_state_met": True},
            "during": [],
        },
        "run": [item("submit")],
        "rollbacks": [item("mend")],
        **changes,
    }


def item(name: str, status: str = "succeeded", output: Any = None, **more: Any) -> dict[str, Any]:
    return {"activity": {"name": name}, "status": status, "output": output, **more}


def states(**changes: Any) -> dict[str, Any]:
    return {**journal()["steady_states"], **changes}


def note(outcome: str, reason: str = "why") -> dict[str, Any]:
    return {"activity": "a", "outcome": outcome, "reason": reason}


BAD = {
    "steady_state_met": False,
    "probes": [
        {
            "activity": {"name": "in order"},
            "status": "succeeded",
            "tolerance_met": False,
            "output": 0,
        }
    ],
}

MEANINGS: list[tuple[str, dict[str, Any], list[dict[str, Any]], str, str]] = [
    ("all well", journal(), [note("PASS")], "PASS", ""),
    ("an action failed, chaostoolkit says completed",
     journal(run=[item("kill", "failed", exception=["x", "NotProven: it lives\n"])]), [],
     "INCONCLUSIVE", "kill failed: NotProven: it lives"),
    ("a promise was not kept", journal(run=[item("p", "failed")]), [note("FAIL", "not bound")],
     "FAIL", "not bound"),
    ("a fault did not take", journal(run=[item("p", "failed")]), [note("INCONCLUSIVE")],
     "INCONCLUSIVE", "why"),
    ("it cannot be had here", journal(run=[item("p", "failed")]), [note("NOT_APPLICABLE", "netem")],
     "NOT_APPLICABLE", "netem"),
    ("what was skipped says nothing", journal(run=[item("a", "failed"), item("b", "failed")]),
     [note("FAIL"), note("skipped", "no")], "FAIL", "why"),
    ("the hypothesis never held", journal(steady_states=states(before=BAD, after=None), run=[]), [],
     "INCONCLUSIVE", "before it, 'in order'"),
    ("a promise of its hypothesis was not kept before anything was done",
     journal(steady_states=states(before=BAD, after=None), run=[]), [note("FAIL", "no pods")],
     "INCONCLUSIVE", "no pods"),
    ("an activity did not come to its end", journal(run=[item("wait", "")]), [],
     "INCONCLUSIVE", "'wait' did not come to its end"),
    ("it does not hold afterwards", journal(steady_states=states(after=BAD), deviated=True), [],
     "FAIL", "after it, 'in order'"),
    ("it did not hold in between, and does at the end", journal(steady_states=states(during=[BAD])),
     [], "FAIL", "while it went on, 'in order'"),
    ("it was not looked at afterwards", journal(steady_states=states(after=None)), [],
     "INCONCLUSIVE", "not looked at"),
    ("no rollback was done", journal(rollbacks=[]), [], "INCONCLUSIVE", "rollbacks were not done"),
    ("a rollback failed", journal(rollbacks=[item("mend", "failed", exception=["stuck"])]), [],
     "INCONCLUSIVE", "rollback mend failed: stuck"),
    ("it was interrupted", journal(status="interrupted"), [], "INCONCLUSIVE", "interrupted"),
    ("nothing was run", journal(run=[]), [], "INCONCLUSIVE", "no activity"),
    ("broken, and not mended", journal(rollbacks=[]), [note("FAIL", "lost")], "FAIL", "lost"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("it", "notes", "outcome", "reason"), [m[1:] for m in MEANINGS], ids=[m[0] for m in MEANINGS]
)
def test_what_a_journal_means(
    it: dict[str, Any], notes: list[dict[str, Any]], outcome: str, reason: str
) -> None:
    verdict = verdicts.of_journal(it, notes)
    assert verdict.outcome == outcome, verdict.reasons
    assert reason in "\n".join(verdict.reasons)
    assert bool(verdict.reasons) == (outcome != "PASS")


def test_figures_come_from_what_activities_return() -> None:
    it = journal(run=[item("goes on", output={"world": 3, "after": 4.5}), item("x", output=7)])
    assert verdicts.of_journal(it, []).measures == {"goes on: after": 4.5, "goes on: world": 3.0}


DEAD = "trains: no step, not within 240 s; 23 x RuntimeError: Gloo connectFullMesh failed with"
DEAD += " Connection refused"


@pytest.mark.parametrize(
    ("reasons", "version", "outcome"),
    [
        ([DEAD], "2.8.0", "KNOWN"),
        ([DEAD], "2.15.0", "FAIL"),
        ([DEAD, "sample 7 was lost"], "2.8.0", "FAIL"),
        ([], "2.8.0", "PASS"),
    ],
)
def test_a_published_fault_has_to_explain_all(
    reasons: list[str], version: str, outcome: str
) -> None:
    notes = [note("FAIL", reason) for reason in reasons]
    verdict = verdicts.of_journal(
        journal(run=[item("p", "failed" if notes else "succeeded")]), notes
    )
    known = verdict.unless_published("E08", "worker-process-killed", {"torch": version})
    assert known.outcome == outcome
    assert set(verdict.reasons) <= set(known.reasons)


def test_an_experiment_is_found_by_its_title() -> None:
    assert experiments.titled(GOOD["title"]) == ALL[0]
    assert experiments.titled("somebody's own") == ""


def test_notes_that_were_cut_off(tmp_path: Path) -> None:
    (tmp_path / activities.FILE).write_text('{"outcome": "PASS"}\n{"outco')
    assert verdicts.notes_of(tmp_path) == [{"outcome": "PASS"}]


def test_a_history_of_nothing_and_one_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    passed = verdicts.of_journal(journal(), [])
    about = experiments.read(experiments.find(ALL[0])).about
    for wrong in (None, Header(run="r", cluster="c", started=0.0), ""):
        if isinstance(wrong, Header):
            write(path, wrong, [])
        elif wrong is not None:
            path.write_text(wrong)
        assert verdicts.of_history(path).outcome is Outcome.INCONCLUSIVE
        assert verdicts.of_run(passed, about, ALL[0], path).outcome is Outcome.INCONCLUSIVE


def test_a_published_fault_hides_nothing_that_is_unsure() -> None:
    """What an experiment left broken, or did not see, is not explained by an upstream fault."""
    failed = verdicts.of_journal(journal(run=[item("p", "failed")]), [note("FAIL", DEAD)])
    left = verdicts.Verdict(Outcome.INCONCLUSIVE, ("it left broken, undid stop node n1",))
    for verdict in (failed.and_also(left), left.and_also(failed)):
        assert verdict.outcome is Outcome.FAIL
        known = verdict.unless_published("E08", "worker-process-killed", {"torch": "2.8.0"})
        assert known.outcome is Outcome.INCONCLUSIVE
        assert "it left broken, undid stop node n1" in known.reasons


def test_errors_are_counted_without_their_figures() -> None:
    def line(event: str, detail: str | None) -> Any:
        return progress.ProgressLine(1.0, progress.Event(event), "p", "u", 7, detail=detail)

    lines = [line("error", f"RuntimeError: remote=[10.0.0.{n}]:{n}") for n in (5, 12)]
    lines += [line("error", "OSError: x"), line("end", None), line("error", None)]
    told = training.errors(lines)
    assert told == "2 x RuntimeError: remote=[N.N.N.N]:N; 1 x OSError: x"
    assert training.errors([]) == ""
