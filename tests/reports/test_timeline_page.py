"""The file: complete in itself, safe, small; and the command that writes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from history_samples import NS, Story, calm, elastic
from typer.testing import CliRunner

from oracles import history, judgement
from oracles.errors import UsageError
from oracles.history import Header
from oracles.invariants.base import Violation
from oracles.known import KnownFault, KnownFaults
from reports.cli import app
from reports.timeline import write
from reports.timeline.render import duration, offset
from tests.oracles.build import History

FAULT = KnownFault(
    id="too-many",
    behaviour="S01",
    versions={"coscheduling": "==0.28.9"},
    signature="more GPUs bound",
    link="https://example.org/1",
    note="It counts them wrong.",
)


def written(story: Story, path: Path, title: str = "a test") -> str:
    write(
        story.events,
        path,
        title=title,
        outcome="FAIL",
        violations=story.violations,
        header=story.header,
    )
    return path.read_text()


def data(html: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found
    return dict(json.loads(found[1]))


def test_the_page_names_outcome_duration_and_versions(tmp_path):
    html = written(elastic(4, steps=30), tmp_path / "t.html", "E05 agent killed")
    assert "<h1>E05 agent killed</h1>" in html
    assert re.search(r'data-outcome="FAIL".*FAIL</span>', html)
    for fact in ("training-operator 1.8.1", "coscheduling 0.28.9", "1.34.4", "torch 2.8.0"):
        assert f"<dd>{fact}</dd>" in html
    assert "2 broken promises" in html


def test_a_known_fault_has_its_link(tmp_path):
    story = elastic(4, steps=30)
    first, second = story.violations
    target = tmp_path / "t.html"
    write(
        story.events,
        target,
        title="t",
        outcome="FAIL",
        violations=[second],
        excused=[(first, FAULT)],
    )
    html = target.read_text()
    assert "2 broken promises, 1 of them known" in html
    assert '<a href="https://example.org/1">too-many</a> It counts them wrong.' in html
    assert [flag["known"] for flag in data(html)["flags"]] == [[FAULT.id, FAULT.link], None]


def test_nothing_is_loaded_from_anywhere(tmp_path):
    html = written(elastic(4, steps=30), tmp_path / "t.html")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#|data:)""", html)
    assert not re.search(r"https?://|@import|url\((?!data:)|import\(|fetch\(", html)


def test_names_and_messages_are_text_and_nothing_else(tmp_path):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    story = calm()
    story.put("Pod", evil, status={"phase": evil, "reason": "{{ 7 * 7 }}"})
    story.wait(1)
    story.put("Pod", evil, status={"phase": "Failed"})
    story.mark("note", evil)
    story.violations = [Violation(evil, "B", f"Pod {NS}/{evil}", evil, "s", (1,), 0.0)]
    html = written(story, tmp_path / "t.html", evil)
    assert evil not in html
    assert "<img" not in html
    assert html.count("</script>") == 2
    assert any(evil in each["title"] for g in data(html)["groups"] for each in g["lanes"])
    assert "{{ 7 * 7 }}" in html


def test_a_page_of_200_pods_is_small(tmp_path):
    story = elastic(200)
    assert len(written(story, tmp_path / "t.html").encode()) < 500_000
    assert len(story.events) > 10_000


def test_the_events_are_read_once(tmp_path):
    events = iter(calm().events)
    write(events, tmp_path / "t.html", title="t", outcome="PASS")
    assert next(events, None) is None


def test_folders_are_made_and_nothing_half_written_is_left(tmp_path):
    target = tmp_path / "a" / "b.html"
    assert write(calm().events, target, title="t", outcome="PASS") == target

    def broken():
        yield from calm().events
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError):
        write(broken(), target, title="t", outcome="FAIL")
    assert [each.name for each in target.parent.iterdir()] == ["b.html"]
    assert 'data-outcome="PASS"' in target.read_text()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0.0 s"), (59.94, "59.9 s"), (102, "1 min 42 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "+0.000 s"), (-1.5, "−1.500 s"), (65.2, "+1:05.200"), (59.9996, "+1:00.000")],
)
def test_offsets(seconds, words):
    assert offset(seconds) == words


# the command -----------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path) -> Path:
    story = calm()
    path = tmp_path / "calm.jsonl"
    history.write(path, story.header, story.events)
    return path


def run(*args: object):
    return CliRunner().invoke(app, ["timeline", *map(str, args)])


def test_the_page_is_written_beside_the_history(stored):
    result = run(stored)
    assert result.exit_code == 0, result.output
    page = stored.with_suffix(".html")
    assert f"{page}: " in result.output
    assert "<h1>calm</h1>" in page.read_text()


def test_published_faults_are_known_to_the_command_too(tmp_path, monkeypatch):
    made = History()
    made.node("n1", gpus=1)
    for name in ("a", "b"):
        made.pod(name, gpus=1).bind("n1")
    path = tmp_path / "h.jsonl"
    facts = {"versions": {"coscheduling": "0.28.9"}}
    history.write(path, Header(run="r", cluster="c", started=0.0, facts=facts), made.events)
    assert ": FAIL, 1 broken promise\n" in run(path).output
    monkeypatch.setattr(judgement, "known", lambda: KnownFaults(entries=[FAULT]))
    assert ": KNOWN, 0 broken promises, 1 more known\n" in run(path).output
    assert "1 broken promise, 1 of them known" in path.with_suffix(".html").read_text()


def test_one_file_or_a_folder_for_several(stored, tmp_path):
    assert run(stored, "-o", tmp_path / "x.html").exit_code == 0
    assert (tmp_path / "x.html").is_file()
    other = tmp_path / "other.jsonl"
    other.write_bytes(stored.read_bytes())
    assert run(stored, other, "-o", tmp_path / "pages").exit_code == 0
    assert {each.name for each in (tmp_path / "pages").iterdir()} == {"calm.html", "other.html"}
    assert isinstance(run(stored, other, "-o", tmp_path / "x.html").exception, UsageError)


def test_what_breaks_a_promise_is_on_the_page(tmp_path):
    story = Story()
    (node,) = story.nodes(1, gpus=4)
    story.mark("test-start", "overcommitted")
    for name in ("a", "b"):
        resources = {"requests": {"nvidia.com/gpu": "4"}}
        story.put("Pod", name, spec={"containers": [{"name": "c", "resources": resources}]})
        story.put("Pod", name, spec={"nodeName": node}, status={"phase": "Running"})
        story.wait(30)
    story.mark("test-end", "overcommitted")
    path = tmp_path / "h.jsonl"
    history.write(path, story.header, story.events)
    assert "FAIL" in run(path).output
    assert f"Node {node}" in path.with_suffix(".html").read_text()


def test_a_history_that_ends_in_the_middle_of_a_line(stored):
    stored.write_bytes(stored.read_bytes()[:-40])
    result = run(stored)
    assert result.exit_code == 0, result.output
    assert "INCONCLUSIVE" in result.output
