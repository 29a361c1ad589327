"""Experiments: files of chaostoolkit, with what the harness needs to know of them.

What is ours stands in the format's own place for such, ``extensions``::

    extensions:
      - name: muster
        question: Does training go on after an agent was killed in a rendezvous?
        behaviour: E05
        deadline_s: 300
        exclusive: false
        torch: true

``read`` refuses a file that chaostoolkit would take and that proves nothing or leaves things
broken: no question, no hypothesis, no rollback, actions that are not ours.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from oracles.catalogue import catalogue
from oracles.errors import UsageError
from oracles.strict import Strict, problems

FOLDER = Path(__file__).parent
MODULES = ("chaos.actions", "chaos.probes")
CONTROL = "chaos.control"
#: an experiment mends what it broke, whatever happened
MENDS = "recover_all"
#: action -> kind of the job that it submits
SUBMITS = {
    "submit_program_job": "PyTorchJob",
    "submit_training": "PyTorchJob",
    "submit_tfjob": "TFJob",
}


class Extension(Strict):
    """What the harness needs to know of an experiment.

    Attributes:
        question: what it answers, in one sentence.
        behaviour: the one of the catalogue that it is a case of.
        deadline_s: seconds after which it is ended, mended and INCONCLUSIVE.
        exclusive: whether it breaks nodes, systems or the control plane.
        torch: whether its jobs train with PyTorch.
        gpus: how many GPUs it uses at most.
        topology: names of topologies that it needs; none: any.
    """

    name: str = "muster"
    question: str = Field(min_length=20, pattern=r"\?$")
    behaviour: str
    deadline_s: float = Field(gt=0, le=1800)
    exclusive: bool = False
    torch: bool = False
    gpus: int = 0
    topology: tuple[str, ...] = ()


class Experiment(Strict):
    """A file that was read and found good."""

    path: Path
    title: str
    tags: list[str]
    about: Extension
    data: dict[str, Any]

    @property
    def name(self) -> str:
        """The file's name without its ending: the case of the behaviour."""
        return self.path.stem

    @property
    def jobs(self) -> tuple[str, ...]:
        """Kinds of the jobs that it submits; () when it makes do with pods."""
        done = [*self.data.get("method", ()), *self.data.get("rollbacks", ())]
        found = {SUBMITS.get(str(_provider(item).get("func")), "") for item in done}
        return tuple(sorted(found - {""}))


def names() -> list[str]:
    """Names of the experiments that come with the harness."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def titled(title: str) -> str:
    """The name of the experiment that comes with the harness and has a title; "" for no such."""
    return next((name for name in names() if read(find(name)).title == title), "")


def find(name: str) -> Path:
    """The file of an experiment, by its path, or by its name if it is one of ours.

    Raises:
        UsageError: there is none.
    """
    path = Path(name)
    if path.is_file():
        return path
    ours = FOLDER / f"{name}.yaml"
    if ours.is_file():
        return ours
    raise UsageError(f"no experiment {name!r}", hint=f"a file, or one of {', '.join(names())}")


def read(path: Path) -> Experiment:
    """An experiment, checked.

    Raises:
        UsageError: each thing that is wrong with it, on a line.
    """
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: no readable experiment: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} is no experiment")
    about = checked(data, str(path))
    return Experiment(
        path=path.resolve(), title=data["title"], tags=data.get("tags") or [], about=about,
        data=data,
    )  # fmt: skip


def checked(data: dict[str, Any], name: str) -> Extension:
    """What the harness needs to know of the experiment *name*, which is found good.

    Raises:
        UsageError: each thing that is wrong with it, on a line.
    """
    wrong = [*_shape(data), *_activities(data)]
    about: Extension | None = None
    mine = [e for e in data.get("extensions") or [] if isinstance(e, dict)]
    mine = [e for e in mine if e.get("name") == "muster"]
    if len(mine) != 1:
        wrong.append("extensions: one named muster is needed, with question and behaviour")
    else:
        try:
            about = Extension.model_validate(mine[0])
            catalogue().get(about.behaviour)
        except ValidationError as error:
            wrong += [line.strip() for line in problems(error).splitlines()]
        except UsageError as error:
            wrong.append(str(error).partition("\n")[0])
    if wrong or about is None:
        lines = "\n".join(f"  {line}" for line in wrong)
        raise UsageError(f"{name} is no experiment that can be run:\n{lines}")
    return about


def _shape(data: dict[str, Any]) -> list[str]:
    wrong = [f"{key}: is needed" for key in ("title", "description") if not data.get(key)]
    hypothesis = data.get("steady-state-hypothesis") or {}
    if not hypothesis.get("probes"):
        wrong.append("steady-state-hypothesis: without a probe nobody knows how it was before")
    if not data.get("method"):
        wrong.append("method: it does nothing")
    rollbacks = [_provider(item).get("func") for item in data.get("rollbacks") or []]
    if MENDS not in rollbacks:
        wrong.append(f"rollbacks: {MENDS} is needed: what is broken has to be mended")
    runtime = (data.get("runtime") or {}).get("rollbacks") or {}
    if runtime.get("strategy") != "always":
        wrong.append("runtime.rollbacks.strategy: has to be always, else a failure skips them")
    controls = [_provider(item).get("module") for item in data.get("controls") or []]
    if CONTROL not in controls:
        wrong.append(f"controls: {CONTROL} is needed: it opens the session")
    return wrong


def _activities(data: dict[str, Any]) -> list[str]:
    wrong = []
    hypothesis = data.get("steady-state-hypothesis") or {}
    places = (
        ("steady-state-hypothesis", hypothesis.get("probes") or []),
        ("method", data.get("method") or []),
        ("rollbacks", data.get("rollbacks") or []),
    )
    for place, items in places:
        for number, item in enumerate(items):
            if problem := _activity(item):
                name = item.get("name", number) if isinstance(item, dict) else number
                wrong.append(f"{place}: {name}: {problem}")
    return wrong


def _activity(item: Any) -> str:
    if not isinstance(item, dict):
        return "is no activity"
    it = _provider(item)
    if it.get("type") != "python" or it.get("module") not in MODULES:
        return f"its provider is not python with one of {', '.join(MODULES)}"
    name = str(it.get("func", ""))
    function = getattr(importlib.import_module(it["module"]), name, None)
    if not inspect.isfunction(function) or not hasattr(function, "__wrapped__"):
        kind = item.get("type", "activity")
        return f"there is no {kind} {name!r} in {it['module']}"
    signature, given = inspect.signature(function), it.get("arguments") or {}
    try:
        signature.bind(**given)
    except TypeError as error:
        return f"{name}: {error}"
    for key, value in given.items():  # such as a word that YAML takes for a truth value
        known = signature.parameters.get(key)
        if known is not None and known.annotation == "str" and not isinstance(value, str):
            return f"{name}: {key}: {value!r} is no text: put it in quotes"
    return ""


def _provider(item: Any) -> dict[str, Any]:
    found = item.get("provider") if isinstance(item, dict) else None
    return found if isinstance(found, dict) else {}
