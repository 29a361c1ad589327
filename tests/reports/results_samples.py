"""Results of a made-up matrix, with every kind of cell that a report has to show."""

from __future__ import annotations

from typing import Any

from oracles.merging import Merged, merge
from oracles.outcome import Outcome
from oracles.results import Attempt, Host, Measure, Run, Violation

P, F, I, N, K = (  # noqa: E741
    Outcome.PASS,
    Outcome.FAIL,
    Outcome.INCONCLUSIVE,
    Outcome.NOT_APPLICABLE,
    Outcome.KNOWN,
)
VERSIONS = ("1.10.2", "1.11.0", "1.13.1", "2.2.2", "2.6.0", "2.8.0", "2.15.0")
OPERATOR, SCHEDULER = "training-operator:1.8.1", "coscheduling:0.28.9"
KNOWN = "closed-rendezvous"


def host(cpus: int = 2) -> Host:
    return Host(cpus=cpus, memory=24 << 30, kernel="6.1", os="Debian GNU/Linux 12 (bookworm)")


def run(name: str = "r1", *, day: int = 1, ended: bool = True, cpus: int = 2) -> Run:
    return Run(
        id=name,
        versions={"muster": "0.1.0", "python": "3.13.0"},
        host=host(cpus),
        seed=7,
        provider="kind",
        topology="thread",
        command=["pytest", "suites"],
        started=f"2025-01-{day:02}T00:00:00Z",
        ended=f"2025-01-{day:02}T01:00:00Z" if ended else None,
    )


def attempt(
    behaviour: str, outcome: Outcome = P, *, run: str = "r1", number: int = 1, **fields: Any
) -> Attempt:
    """One attempt; *figures* are measures as name -> (value, unit)."""
    figures = fields.pop("figures", {})
    framework = fields.get("framework")
    defaults: dict[str, Any] = {
        "provider": "kind",
        "kubernetes": "1.34.4",
        "operator": OPERATOR,
        "scheduler": SCHEDULER,
        "duration_s": 5.0 if outcome.judged else None,
        "reason": "" if outcome is P else f"{outcome}: 3 of 8 were bound",
        "violations": [Violation(rule="gang", message="3 of 8")] if outcome is F else [],
        "test": f"test_{behaviour}[{fields.get('case', '')}-{framework}-attempt{number}]",
        "evidence": [f"tests/{behaviour}-{framework}-{number}"] if outcome is not N else [],
    }
    return Attempt(
        run=run,
        behaviour=behaviour,
        outcome=outcome,
        attempt=number,
        measures=[Measure(name=k, value=v, unit=u) for k, (v, u) in figures.items()],
        **defaults | fields,
    )


def merged(*attempts: Attempt, runs: list[Run] | None = None) -> Merged:
    return Merged(runs=runs or [run()], attempts=list(attempts))


def matrix() -> Merged:
    """Seven versions: passing, failing, mixed, known, known and gone, not applicable, not run."""
    found: list[Attempt] = []

    def add(behaviour: str, version: str | None, *outcomes: Outcome, **fields: Any) -> None:
        for number, outcome in enumerate(outcomes, 1):
            more = dict(fields)
            base = more.pop("again", None)
            if base is not None and outcome in (P, F):
                more["figures"] = {
                    "training again after": (base + number, "s"),
                    "steps lost": (number, "steps"),
                }
                more["duration_s"] = base + 20.0 + number
            found.append(
                attempt(
                    behaviour, outcome, number=number,
                    framework=f"torch:{version}" if version else None, **more,
                )
            )  # fmt: skip

    for place, version in enumerate(VERSIONS):
        add("E01", version, P, case="the least")
        deleted = {"1.10.2": (K, K, K), "2.8.0": (P, F, P), "2.15.0": (P, P, P)}
        add(
            "E05", version, *deleted.get(version, (P, P, P)), case="pod deleted",
            again=8.0 if place < 4 else 38.0, **({"known": KNOWN} if version == "1.10.2" else {}),
        )  # fmt: skip
        if version not in ("1.10.2", "2.2.2"):
            add("E06", version, *((F, F, F) if version == "2.6.0" else (P, P, P)), again=20.0)
    add("E06", "2.2.2", I, I, I, reason="the runtime could not be made: no room\non the disk")
    add("E06", "1.10.2", N, reason="torch 1.10.2 has no such option")
    add("E07", "2.8.0", P, P, known=KNOWN, again=30.0)
    for behaviour in ("G01", "G04", "S02", "T05"):
        add(behaviour, None, P)
    found.append(attempt("G04", F, kubernetes="1.28.9", reason="one pod was bound"))
    return merge([merged(*found)])
