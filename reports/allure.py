"""A static Allure page: one HTML file that a browser opens from disk.

Allure 3 is a program for Node without Java. It comes from the npm registry, once, into the cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from oracles.errors import HarnessError, UsageError

#: the one version that is used; an upgrade is this line
VERSION = "3.18.0"
RESULTS = "allure-results"
PAGE = "allure-report"
#: seconds
INSTALLING = 300.0
GENERATING = 300.0


def generate(run: Path) -> str:
    """Make ``allure-report/index.html`` in a run's folder; a line that says where, or why not.

    Raises:
        UsageError: the run has no Allure results.
        HarnessError: Allure could not be fetched, or failed; with the end of what it printed.
    """
    results = run / RESULTS
    if not any(results.glob("*-result.json")):
        raise UsageError(
            f"no Allure results in {run}", hint=f"give the folder of a run (it holds {RESULTS})"
        )
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        return (
            f"no Allure page: {' and '.join(missing)} not found; with Node.js and npm installed"
            f" this command makes it (the results in {results} stay as they are)"
        )
    program = _installed()
    config = run / ".allure.json"
    config.write_text(json.dumps(_config(run.resolve().name, results)))
    page = run / PAGE
    partial = run / f".{PAGE}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _run(
            ["node", str(program), "generate", str(results.resolve()),
             "--config", str(config.resolve()), "--output", str(partial.resolve())],
            run, GENERATING, "allure generate",
        )  # fmt: skip
    finally:
        config.unlink()
    shutil.rmtree(page, ignore_errors=True)
    partial.rename(page)
    return f"Allure page: {page / 'index.html'}"


def _config(name: str, results: Path) -> dict[str, object]:
    options = {"singleFile": True, "reportName": f"muster {name}", "groupBy": ["epic", "feature"]}
    config: dict[str, object] = {
        "name": f"muster {name}",
        "plugins": {"awesome": {"options": options}},
    }
    categories = results / "categories.json"
    if categories.exists():  # Allure 2 finds it in the results, Allure 3 wants it in its config
        config["categories"] = json.loads(categories.read_text())
    return config


def _installed() -> Path:
    """Allure's program, fetched when it is not in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster"
    place = cache / f"allure-{VERSION}"
    program = place / "node_modules" / "allure" / "cli.js"
    if not program.exists():
        partial = cache / f".allure-{VERSION}.{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            _run(
                ["npm", "install", "--prefix", str(partial), "--cache", str(cache / "npm"),
                 "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error",
                 f"allure@{VERSION}"],
                partial, INSTALLING, f"npm install allure@{VERSION}",
            )  # fmt: skip
            shutil.rmtree(place, ignore_errors=True)
            partial.rename(place)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return program


def _run(command: list[str], folder: Path, timeout: float, what: str) -> None:
    hint = "is the npm registry reachable? `npm ping` tells" if command[0] == "npm" else None
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise HarnessError(f"{what}: no end after {timeout:.0f} s", hint=hint) from None
    if done.returncode != 0:
        tail = "\n".join(f"  | {line}" for line in (done.stderr or done.stdout).splitlines()[-8:])
        raise HarnessError(f"{what}: exit code {done.returncode}\n{tail}", hint=hint)
