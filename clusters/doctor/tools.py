"""Checks of programs that some commands call."""

from __future__ import annotations

import os
import re
import shutil

from clusters.command import run
from clusters.doctor.check import Check, State
from clusters.engine.install import which
from clusters.errors import CommandError

#: the oldest Go that the pinned modules' go.mod files accept
_OLDEST_GO = (1, 24)


def _missing() -> State:
    """How bad a missing build tool is: parts can also be pulled, unless building was asked for."""
    return State.FAIL if os.environ.get("PARTS", "auto").lower() == "build" else State.WARN


def go() -> Check:
    """The Go command."""
    needed = "1.24 or newer to build parts (PARTS=build)"
    hint = "install Go 1.24 or newer and put it on PATH, or use PARTS=pull"
    path = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if path is None:
        return Check("go", _missing(), "not installed", needed, hint)
    try:
        text = run([path, "env", "GOVERSION"], timeout=20, env={"GOTOOLCHAIN": "local"}).strip()
    except CommandError as error:
        return Check("go", _missing(), str(error).splitlines()[0], needed, hint)
    found = re.match(r"go(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST_GO:
        return Check("go", _missing(), f"{text} in {path}", needed, hint)
    return Check("go", State.OK, f"{text.removeprefix('go')} in {path}", needed)


def debootstrap() -> Check:
    """What root file systems are made with."""
    needed = "to build images (PARTS=build)"
    path = which("debootstrap")
    if path is None:
        return Check(
            "debootstrap", _missing(), "not installed", needed,
            "apt-get install debootstrap, or use PARTS=pull",
        )  # fmt: skip
    return Check("debootstrap", State.OK, path, needed)


def uv() -> Check:
    """What PyTorch's and TensorFlow's environments are made with; a dependency of ours."""
    needed = "an environment per PyTorch version"
    try:
        from uv import find_uv_bin

        path = find_uv_bin()
    except (ImportError, FileNotFoundError):
        path = shutil.which("uv") or ""
    if not path:
        return Check("uv", State.FAIL, "not installed", needed, "make setup, or: pip install uv")
    try:
        return Check("uv", State.OK, run([path, "--version"], timeout=20).strip(), needed)
    except CommandError as error:
        return Check("uv", State.FAIL, str(error).splitlines()[0], needed, "pip install uv")


def report_page() -> Check:
    """What the Allure page is made with; the results are there without it."""
    needed = "Node.js with npm for `make report`"
    hint = "install Node.js and npm; results.json and JUnit XML are written without"
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        try:
            version = run([node, "--version"], timeout=20).strip()
        except CommandError as error:
            return Check("report page", State.WARN, str(error).splitlines()[0], needed, hint)
        return Check("report page", State.OK, f"Node.js {version}, {npm}", needed)
    java = shutil.which("java")
    if java:
        return Check("report page", State.WARN, f"no Node.js; Java in {java}", needed, hint)
    return Check("report page", State.WARN, "neither Node.js nor Java", needed, hint)
