"""Checks of the interpreters that may be mounted into pods."""

from __future__ import annotations

from clusters import libc, pythons
from clusters.doctor.check import Check, State

_WHY = "PyTorch in pods: some versions want this one"


def interpreters() -> list[Check]:
    """One check per minor version, judged by its best interpreter; older than 3.8 left out."""
    found = [p for p in pythons.interpreters() if int(p.minor.split(".")[1]) >= 8]
    usable: dict[str, str] = {}
    refused: dict[str, str] = {}
    for python in found:
        trouble = _trouble(python)
        if trouble is None:
            usable.setdefault(python.minor, f"{python.version} in {python.prefix}, can be mounted")
        else:
            refused.setdefault(python.minor, f"{python.version} in {python.prefix}: {trouble}")
    if not usable:
        text = "; ".join(refused.values()) or "none found"
        return [
            Check(
                "pythons", State.WARN, text, _WHY,
                "uv python install 3.12, or pyenv install 3.12; or use image: runtimes",
            )
        ]  # fmt: skip
    checks = [Check(f"python {minor}", State.OK, text, _WHY) for minor, text in usable.items()]
    only_refused = {minor: text for minor, text in refused.items() if minor not in usable}
    return checks + [
        Check(
            f"python {minor}", State.WARN, text, _WHY,
            f"uv python install {minor} brings one that can be mounted",
        )
        for minor, text in only_refused.items()
    ]  # fmt: skip


def _trouble(python: pythons.Interpreter) -> str | None:
    """Why an interpreter cannot be mounted into pods; None when it can."""
    if not python.mountable:
        return "lies among the system's own files, which cannot be mounted over a pod's"
    try:
        needs = libc.interpreter_needs(python)
    except (libc.OtherLibc, OSError) as error:
        return str(error)
    if needs > libc.POD_GLIBC:
        have = ".".join(map(str, libc.POD_GLIBC))
        return f"needs glibc {needs[0]}.{needs[1]}, the pods' image has {have}"
    return None
