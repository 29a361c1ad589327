"""The report: its table, and the forms that it is written in."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from results_samples import KNOWN, VERSIONS, F, I, K, N, P, attempt, matrix, merged, run
from typer.testing import CliRunner

from oracles.errors import UsageError
from oracles.known import KnownFaults
from oracles.outcome import Outcome
from oracles.results import Log
from reports import axes, changes, markdown, notes, sheet, table, terminal, words
from reports.cli import app
from reports.links import Link, Links, places

RUNNER = CliRunner()
LINK = "https://github.com/pytorch/pytorch/issues/67616"


@pytest.fixture(autouse=True)
def one_known_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {
        "id": KNOWN, "behaviour": "E05", "versions": {"torch": "<1.11"},
        "signature": "RendezvousClosed", "link": LINK, "note": "the rendezvous is closed",
    }  # fmt: skip
    faults = KnownFaults.model_validate({"entries": [entry]})
    monkeypatch.setattr(table, "known", lambda: faults)


@pytest.fixture
def report() -> table.Report:
    return table.of(matrix(), title="Compatibility report")


def entry(report: table.Report, behaviour: str, version: str | None) -> table.Entry:
    return next(
        e
        for e in report.entries
        if e.behaviour == behaviour and e.framework == (f"torch:{version}" if version else None)
    )


# the table -------------------------------------------------------------------------------------


def test_a_mixed_cell_keeps_its_counts_and_is_not_averaged(report: table.Report) -> None:
    mixed = entry(report, "E05", "2.8.0")
    assert mixed.mixed
    assert mixed.counts == {P: 2, F: 1}
    assert mixed.outcome is F
    assert mixed.reason == "FAIL: 3 of 8 were bound"
    assert changes.counted(mixed.counts) == "2 PASS, 1 FAIL"
    assert "2 PASS, 1 FAIL" in markdown.cell(mixed, None)


def test_few_attempts_are_said_to_be_few(report: table.Report) -> None:
    assert entry(report, "E01", "2.8.0").few
    assert not entry(report, "E05", "2.8.0").few
    assert not entry(report, "E06", "1.10.2").few, "what does not apply needs no more attempts"


def test_a_known_fault_has_its_link_and_one_that_is_gone_says_so(report: table.Report) -> None:
    shown, gone = entry(report, "E05", "1.10.2"), entry(report, "E07", "2.8.0")
    assert (shown.outcome, shown.known, shown.link, shown.gone) == (K, KNOWN, LINK, False)
    assert (gone.outcome, gone.known, gone.gone) == (P, KNOWN, True)
    assert f"KNOWN · [{KNOWN}]({LINK})" in markdown.cell(shown, None)
    assert "is gone" in markdown.cell(gone, None)


def test_figures_have_attempts_least_median_and_most(report: table.Report) -> None:
    figure = entry(report, "E05", "1.11.0").figures[0]
    assert figure == table.Figure(
        name="training again after", unit="s", attempts=3, min=9, median=10, max=11
    )
    assert words.measured(figure) == "10 (9–11) s"


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(list(Outcome)), st.sampled_from(VERSIONS[:3]))))
def test_counts_of_a_cell_add_up(drawn: list[tuple[Outcome, str]]) -> None:
    found = [
        attempt("E05", outcome, number=number, framework=version)
        for number, (outcome, version) in enumerate(drawn, 1)
    ]
    report = table.of(merged(*found), title="x")
    assert sum(e.attempts for e in report.entries) == len(drawn)
    assert sum(report.totals.values()) == len(report.entries)
    for e in report.entries:
        assert e.attempts == len(e.tries) == sum(e.counts.values())
        assert e.counts == {o: n for o in Outcome if (n := [t.outcome for t in e.tries].count(o))}
        assert e.judged <= e.attempts
        assert (len(e.counts) > 1) == e.mixed


def test_the_json_is_read_again_and_follows_its_schema(
    report: table.Report, tmp_path: Path
) -> None:
    import jsonschema

    text = table.text(report)
    (tmp_path / "report.json").write_text(text)
    assert table.read(tmp_path) == table.read(tmp_path / "report.json") == report
    assert json.loads(table.SCHEMA.read_text()) == table.schema()
    jsonschema.Draft202012Validator(table.schema()).validate(json.loads(text))
    assert len(text) < 400 * len(matrix().attempts), "it is to be small"


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is not JSON"), ('{"format": "report.v1"}', "title: Field required")],
)
def test_a_broken_report_is_a_usage_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        table.read(tmp_path)


# axes ------------------------------------------------------------------------------------------


def test_versions_are_columns_in_the_order_of_versions(report: table.Report) -> None:
    grid = axes.grids(report.entries)[0]
    assert [column.label for column in grid.columns] == list(VERSIONS)
    assert grid.groups == [("PyTorch", 7)]


def test_what_varies_besides_has_rows_of_its_own_and_a_table(report: table.Report) -> None:
    by_torch, by_kubernetes = axes.grids(report.entries)
    rows = [(line.rest, line.only) for line in by_torch.lines if line.behaviour == "G04"]
    assert [rest for rest, _ in rows] == [{"kubernetes": "1.28.9"}, {"kubernetes": "1.34.4"}]
    assert all(only is not None for _, only in rows)
    assert [column.value for column in by_kubernetes.columns] == ["1.28.9", "1.34.4"]


def test_frameworks_are_groups_of_columns_and_own_builds_come_last() -> None:
    names = ["torch@image:me/torch:3", "tensorflow:2.21.0", "torch:2.8.0", "torch:1.9.0"]
    made = table.entries(attempt("E05", framework=name) for name in names)
    grid = axes.grid(made, "framework")
    assert grid.groups == [("PyTorch", 3), ("TensorFlow", 1)]
    assert [c.label for c in grid.columns] == ["1.9.0", "2.8.0", "image:me/torch:3", "2.21.0"]


def test_every_cell_is_in_every_table_once(report: table.Report) -> None:
    for grid in axes.grids(report.entries):
        found = [e.key for line in grid.lines for e in line.entries]
        assert sorted(map(str, found)) == sorted(str(e.key) for e in report.entries)


# what changed ----------------------------------------------------------------------------------


def changed(old: list[Outcome], new: list[Outcome]) -> list[str]:
    def made(outcomes: list[Outcome]) -> list[table.Entry]:
        return table.entries(
            attempt("E05", outcome, number=number, framework="torch:2.8.0")
            for number, outcome in enumerate(outcomes, 1)
        )

    return [c.kind for c in changes.compare(made(old), made(new))]


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ([P], [P, P, P], []),
        ([P], [F], ["worse"]),
        ([P], [K], ["worse"]),
        ([P], [I], ["worse"]),
        ([P, P], [P, F], ["worse"]),
        ([F], [P, F], ["changed"]),
        ([F], [P], ["better"]),
        ([I], [P], ["better"]),
        ([P], [N], ["changed"]),
        ([], [P], ["new"]),
        ([P], [], ["gone"]),
    ],
)
def test_what_changed(old: list[Outcome], new: list[Outcome], kinds: list[str]) -> None:
    assert changed(old, new) == kinds


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(list(Outcome)), max_size=4))
def test_nothing_changes_from_a_table_to_itself(outcomes: list[Outcome]) -> None:
    assert changed(outcomes, outcomes) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ([10, 11, 12], [13, 14, 15], True),
        ([10, 11, 12], [12, 14, 15], False),  # the ranges meet
        ([10.0, 10.1, 10.2], [10.3, 10.4, 10.5], False),  # hardly apart
        ([10], [14], False),  # two single figures say little
        ([10], [30], True),
        ([0, 0, 0], [0, 0, 0], False),
    ],
)
def test_a_figure_that_moved_is_told(old: list[float], new: list[float], told: bool) -> None:
    def made(values: list[float]) -> list[table.Entry]:
        return table.entries(
            attempt("E05", number=number, figures={"wait": (value, "s")})
            for number, value in enumerate(values, 1)
        )

    assert [c.kind for c in changes.compare(made(old), made(new))] == (["figure"] if told else [])


# notes and links -------------------------------------------------------------------------------


def test_notes_are_about_the_cells_that_they_name(tmp_path: Path, report: table.Report) -> None:
    file = tmp_path / "notes.yaml"
    file.write_text(
        "notes:\n"
        "- {behaviour: E05, case: pod *, framework: 'torch:1.1?.*', text: nobody waits there,"
        f" evidence: ['{LINK}']}}\n"
    )
    noted = report.model_copy(update={"notes": notes.read(file)})
    about = [e.framework for e in noted.entries if markdown.notes_of(noted, e)]
    assert about == ["torch:1.10.2", "torch:1.11.0", "torch:1.13.1"]
    text = markdown.text(noted)
    assert f"[^1]: E05 pod * torch:1.1?.*: nobody waits there Evidence: {LINK}." in text
    assert "×3[^1]" in text


def test_links_lead_to_what_is_there(tmp_path: Path) -> None:
    test = tmp_path / "runs" / "r1" / "tests" / "a b"
    test.mkdir(parents=True)
    (test / "history.jsonl").touch()
    (test / "timeline.html").touch()
    there = Links(tmp_path / "out", {"r1": tmp_path / "runs" / "r1"})
    assert there.of("r1", ["tests/a b"]) == [
        Link("timeline", "../runs/r1/tests/a%20b/timeline.html"),
        Link("history", "../runs/r1/tests/a%20b/history.jsonl"),
    ]
    assert there.of("r2", ["tests/x"]) == [Link("r2/tests/x", "")]
    assert there.of("r1", ["tests/gone"]) == []
    assert Links(tmp_path, {"r1": test}, "none").of("r1", ["tests/a b"])[0].href == ""
    published = Links(tmp_path, {}, "https://example.org/nightly/")
    assert published.of("r1", ["tests/x"])[0].href == (
        "https://example.org/nightly/r1/tests/x/timeline.html"
    )


# forms -----------------------------------------------------------------------------------------


def test_markdown_tells_every_cell(report: table.Report) -> None:
    text = markdown.text(report)
    head, row = (
        next(
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if line.startswith(start)
        )
        for start in ("| behaviour | PyTorch 1.10.2", "| **E06")
    )
    assert head[1:] == [f"PyTorch {version}" for version in VERSIONS]
    assert row[1:] == [
        "NOT_APPLICABLE", "PASS · 22 (21–23) s · ×3", "PASS · 22 (21–23) s · ×3",
        "INCONCLUSIVE · ×3", "FAIL · 22 (21–23) s · ×3", "PASS · 22 (21–23) s · ×3",
        "PASS · 22 (21–23) s · ×3",
    ]  # fmt: skip
    assert "the runtime could not be made: no room<br>on the disk" in text
    assert "1 of 3 attempts failed: a failure rate of up to 86% fits" in text


def test_a_cell_that_never_ran_is_never_a_pass(report: table.Report) -> None:
    row = next(
        line for line in markdown.text(report).splitlines() if line.startswith("| **E07")
    ).split("|")[2:-1]
    assert [cell.strip() == "not run" for cell in row] == [v != "2.8.0" for v in VERSIONS]


def test_csv_has_a_line_per_cell_and_figure(report: table.Report) -> None:
    rows = list(csv.DictReader(io.StringIO(sheet.text(report.entries))))
    cells = [row for row in rows if row["figure"] == "duration"]
    assert len(cells) == len(report.entries)
    assert len(set(sheet.HEAD)) == len(sheet.HEAD)
    mixed = next(r for r in cells if r["behaviour"] == "E05" and r["framework"] == "torch:2.8.0")
    assert (mixed["outcome"], mixed["attempts"], mixed["PASS"], mixed["FAIL"]) == (
        "FAIL", "3", "2", "1",
    )  # fmt: skip
    steps = [r for r in rows if r["figure"] == "steps lost" and r["framework"] == "torch:2.8.0"]
    assert (steps[0]["min"], steps[0]["median"], steps[0]["max"]) == ("1.0", "2.0", "3.0")


# commands --------------------------------------------------------------------------------------


def folder(path: Path, name: str, *attempts_: object, ended: bool = True) -> Path:
    path.mkdir()
    (path / "tests").mkdir()
    log = Log(path, run(name, day=int(name[1:]), ended=False))
    for each in attempts_:
        log.add(each)  # type: ignore[arg-type]
    if ended:
        log.finish()
    return path


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    def made(name: str, *outcomes: Outcome) -> Path:
        found = [
            attempt("G01", o, run=name, number=n, duration_s=n + int(name[1:]))
            for n, o in enumerate(outcomes, 1)
        ]
        return folder(tmp_path / name, name, *found)

    return [str(made("r1", P)), str(made("r2", P, F))]


def test_build_writes_all_forms_and_prints_where_the_time_went(
    two: list[str], tmp_path: Path
) -> None:
    (tmp_path / "notes.yaml").write_text("notes: [{behaviour: G99, text: about nothing at all}]")
    out = tmp_path / "out"
    done = RUNNER.invoke(
        app,
        ["build", *two, "--out", str(out), "--before", two[0],
         "--notes", str(tmp_path / "notes.yaml")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in out.iterdir()) == [
        "report.csv", "report.html", "report.json", "report.md",
    ]  # fmt: skip
    lines = [line.split() for line in done.output.splitlines()]
    assert ["G01", "2", "PASS", "2/3/4"] in lines
    assert "time: 9.0 s: G01 9.0 s" in done.output
    assert "the slowest 3:" in done.output
    assert ["worse", "G01", "PASS", "→", "2", "PASS,", "1", "FAIL"] in lines
    assert "no cell is meant by the note on G99" in done.output
    data = json.loads((out / "report.json").read_text())
    assert [c["kind"] for c in data["changes"]] == ["worse"]
    assert "PASS → 2 PASS, 1 FAIL" in (out / "report.md").read_text()


def test_many_versions_are_columns_in_a_terminal_too(report: table.Report) -> None:
    lines = [line.split() for line in terminal.text(report).splitlines()]
    assert ["behaviour", *VERSIONS] in lines
    assert ["E01", "the", "least", "·", "Kubernetes", "1.34.4", *["PASS", "×1"] * 7] in lines
    assert any("(all)" in line for line in lines)
    assert max(map(len, terminal.text(report).splitlines())) <= terminal.WIDTH


def test_merge_and_diff(two: list[str], tmp_path: Path) -> None:
    both = tmp_path / "all.json"
    done = RUNNER.invoke(app, ["merge", *two, two[0], "-o", str(both)])
    assert done.exit_code == 0, done.output
    assert "3 attempts of 2 runs on 1 kind of machine" in done.output
    assert RUNNER.invoke(app, ["diff", str(both), str(both)]).output.endswith("nothing changed\n")
    worse = RUNNER.invoke(app, ["diff", two[0], str(both)])
    assert worse.exit_code == 1
    assert "PASS → 2 PASS, 1 FAIL" in worse.output
    better = RUNNER.invoke(app, ["diff", str(both), two[0]])
    assert better.exit_code == 0
    assert "better" in better.output


def test_nothing_at_all_makes_a_report_that_says_so(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["build", str(folder(tmp_path / "r1", "r1"))])
    assert done.exit_code == 0, done.output
    assert "0 cells: nothing was run" in done.output
    assert "Nothing was run." in (tmp_path / "r1" / "report.html").read_text()


def test_places_are_the_folders_of_runs(two: list[str], tmp_path: Path) -> None:
    paths = [Path(each) for each in two]
    assert places([*paths, tmp_path / "nowhere"]) == {"r1": paths[0], "r2": paths[1]}


def test_the_page_holds_no_text_as_markup(tmp_path: Path) -> None:
    from reports import page

    nasty = attempt("G01", F, reason="<script>alert(1)</script>", case="<b>x")
    made = page.html(table.of(merged(nasty), title="<i>t"), Links(tmp_path, {}))
    assert "<script>alert" not in made
    assert "<b>x" not in made
    assert "<i>t" not in made


def test_the_example_is_still_one() -> None:
    example = table.read(Path(__file__).parents[2] / "reports" / "examples" / "report.json")
    assert example.entries
    assert example.runs[0].host.cpus == 2
    assert markdown.text(example).startswith("# Example")
