"""The report page in a real browser, as people use it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import which

import chromium
import pytest
import results_samples as samples

from oracles.known import KnownFaults
from reports import changes, notes, table, write

pytestmark = pytest.mark.browser

LINK = "https://github.com/pytorch/pytorch/issues/67616"
GRID = "[...document.querySelectorAll('.grid')].find(each => !each.hidden)"
LINES = f"[...{GRID}.querySelectorAll('tr.line')].filter(each => each.offsetParent)"
IDS = f"{LINES}.map(each => each.querySelector('.id').innerText)"
PANEL = "document.getElementById('panel').hidden ? '' : document.getElementById('panel').innerText"
FOCUS = "document.activeElement.getAttribute('href') ?? document.activeElement.className"


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a matrix of seven versions, with notes and changes."""
    fault = {
        "id": samples.KNOWN, "behaviour": "E05", "versions": {"torch": "<1.11"},
        "signature": "RendezvousClosed", "link": LINK, "note": "the rendezvous is closed",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "known", lambda: KnownFaults.model_validate({"entries": [fault]}))
        merged = samples.matrix()
        report = table.of(merged, title="Compatibility report")
        fewer = [a for a in merged.attempts if a.outcome is not samples.F]
        older = table.of(merged.model_copy(update={"attempts": fewer}), title="older")
    note = notes.Note(behaviour="E05", framework="torch:1.1*", text="nobody waits", evidence=[LINK])
    found = changes.compare(older.entries, report.entries)
    report = report.model_copy(update={"notes": [note], "before": older.made, "changes": found})
    folder = tmp_path_factory.mktemp("report")
    evidence = folder / "r1" / "tests" / "E05-torch:2.8.0-2"
    evidence.mkdir(parents=True)
    (evidence / "timeline.html").touch()
    (evidence / "logs").mkdir()
    return write.all_forms(report, folder / "out", places={"r1": folder / "r1"})[0]


@pytest.fixture
def visit(browser: chromium.Browser, page_file: Path) -> Iterator[object]:
    """Opens the page; at the end it must have had no trouble, and asked for nothing."""
    with ExitStack() as stack:
        pages = []

        def go(fragment: str = "", **how: object) -> chromium.Page:
            page = stack.enter_context(browser.page(**how))  # type: ignore[arg-type]
            pages.append(page)
            page.open(page_file, fragment)
            return page

        yield go
        for page in pages:
            assert page.troubles == []
            local = ("about:", "data:", page_file.as_uri())
            assert [url for url in page.requests if not url.startswith(local)] == []


def cell_of(page, behaviour: str, version: str) -> str:
    """Selector of a cell's link."""
    href = page.js(
        f"""(() => {{
          const heads = [...{GRID}.querySelectorAll('thead tr:nth-child(2) th')];
          const at = heads.findIndex(each => each.dataset.value === "torch:{version}");
          const line = [...{GRID}.querySelectorAll('tr.line')]
            .find(each => each.querySelector('.id').innerText === "{behaviour}");
          return line.querySelectorAll('td')[at].querySelector('.cell').getAttribute('href');
        }})()"""
    )
    return f".grid:not([hidden]) a.cell[href='{href}']"


def type_filter(page, text: str) -> None:
    page.click("#filter")
    page.js("document.getElementById('filter').value = ''")
    page.write(text)


# filter ----------------------------------------------------------------------------------------


def test_filter_by_text(visit):
    page = visit()
    whole = page.js(IDS)
    assert len(whole) == 9
    type_filter(page, "pod deleted")
    assert page.js(IDS) == ["E05"]
    assert page.js("document.getElementById('shown').innerText") == "1 of 9 rows"
    type_filter(page, "no such thing")
    assert page.js(IDS) == []
    assert page.js("document.getElementById('nothing').offsetParent !== null")
    page.key("Escape")
    assert page.js(IDS) == whole
    page.js("document.activeElement.blur()")
    page.key("/")
    assert page.js("document.activeElement.id") == "filter"


def test_filter_by_outcome(visit):
    page = visit()
    page.click(".only-outcome[data-o='FAIL']")
    assert page.js(IDS) == ["G04", "E05", "E06"]
    assert page.js("document.querySelector('.only-outcome[data-o=FAIL]').ariaPressed") == "true"
    dimmed = page.js(
        f"{LINES}.map(each => [...each.querySelectorAll('td')]"
        ".filter(td => !td.classList.contains('other')).map(td => td.innerText.split('\\n')[0]))"
    )
    assert [len(cells) for cells in dimmed] == [1, 1, 1]
    page.click(".only-outcome[data-o='KNOWN']")
    assert page.js(IDS) == ["G04", "E05", "E06"], "E05 is mixed, and known elsewhere"
    page.click(".only-outcome[data-o='FAIL']")
    assert page.js(IDS) == ["E05"]


def test_filter_by_version_and_kubernetes(visit):
    page = visit()
    page.js(
        "(e => { e.value = 'torch:2.8.0'; e.dispatchEvent(new Event('change')) })"
        "(document.querySelector('select[data-part=framework]'))"
    )
    page.frames()
    heads = f"[...{GRID}.querySelectorAll('thead tr:nth-child(2) th')]"
    shown = f"{heads}.filter(each => each.offsetParent).map(each => each.innerText)"
    assert page.js(shown) == ["2.8.0"]
    assert "E07" in page.js(IDS)
    page.js(
        "(e => { e.value = '1.28.9'; e.dispatchEvent(new Event('change')) })"
        "(document.querySelector('select[data-part=kubernetes]'))"
    )
    page.frames()
    assert page.js(IDS) == ["G04"]


def test_other_columns(visit):
    page = visit()
    page.js(
        "(e => { e.value = 'kubernetes'; e.dispatchEvent(new Event('change')) })"
        "(document.getElementById('axis'))"
    )
    page.frames()
    heads = f"[...{GRID}.querySelectorAll('thead tr:nth-child(2) th')].map(e => e.innerText)"
    assert page.js(heads) == ["1.28.9", "1.34.4"]
    assert page.js("document.querySelectorAll('.grid:not([hidden])').length") == 1
    assert "torch" not in page.js(f"{GRID}.querySelector('thead').innerText").lower()


# sort ------------------------------------------------------------------------------------------


def test_sort_by_a_column(visit):
    page = visit()
    elastic = f"{LINES}.filter(e => e.querySelector('.id').innerText[0] === 'E')"
    ids = f"{elastic}.map(each => each.querySelector('.id').innerText)"
    button = ".grid:not([hidden]) thead th[data-value='torch:2.6.0'] .sort"
    head = "document.querySelector(\"thead th[data-value='torch:2.6.0']\")"
    assert page.js(ids) == ["E01", "E05", "E06", "E07"]
    page.click(button)
    assert page.js(ids) == ["E06", "E05", "E01", "E07"], "FAIL, PASS with a figure, PASS, not run"
    assert page.js(f"{head}.ariaSort") == "other"
    page.click(button)
    assert page.js(ids) == ["E05", "E06", "E01", "E07"], "40 s, 22 s, no figure"
    assert page.js(f"{head}.ariaSort") == "descending"
    page.click(button)
    assert page.js(ids) == ["E01", "E05", "E06", "E07"]
    assert page.js(f"{head}.ariaSort") is None


# a cell ----------------------------------------------------------------------------------------


def test_a_cell_opens_its_details_and_gives_the_focus_back(visit):
    page = visit()
    cell = cell_of(page, "E05", "2.8.0")
    page.click(cell)
    said = page.js(PANEL)
    assert "2 PASS" in said
    assert "1 FAIL" in said
    assert "3 of 8 were bound" in said
    assert "1 of 3 attempts failed" in said
    links = page.js(
        "[...document.querySelectorAll('#panel .tries a')].map(e => [e.innerText, e.href])"
    )
    assert [word for word, _ in links] == ["timeline", "logs"]
    assert links[0][1].endswith("/r1/tests/E05-torch%3A2.8.0-2/timeline.html")
    assert page.js(FOCUS) == "close"
    page.key("Escape")
    assert page.js(PANEL) == ""
    assert cell.endswith(f"[href='{page.js(FOCUS)}']")


def test_a_link_to_a_cell_opens_it(visit):
    page = visit("#c3")
    assert page.js(PANEL)


def test_arrows_move_between_cells(visit):
    page = visit()
    start, right = (cell_of(page, "E05", version) for version in ("2.2.2", "2.6.0"))
    page.js(f'document.querySelector("{start}").focus()')
    page.key("ArrowRight")
    assert right.endswith(f"[href='{page.js(FOCUS)}']")
    page.key("ArrowDown")
    below = cell_of(page, "E06", "2.6.0")
    assert below.endswith(f"[href='{page.js(FOCUS)}']")
    page.key("Enter")
    assert "E06" in page.js(PANEL)


def test_known_faults_lead_upstream_and_notes_to_their_text(visit):
    page = visit()
    links = "[...document.querySelectorAll('.grid:not([hidden]) .upstream')]"
    assert page.js(f"{links}[0].href") == LINK
    assert page.js("document.querySelectorAll('.grid:not([hidden]) .note').length") == 3
    page.click(".grid:not([hidden]) .note")
    assert page.js("location.hash") == "#n1"
    assert "nobody waits" in page.js("document.querySelector('.notes li:target').innerText")


def test_what_changed_is_told_and_leads_to_the_cell(visit):
    page = visit()
    told = page.js("[...document.querySelectorAll('.changes li')].map(e => e.className)")
    assert told == ["worse", "new", "new"]
    page.click(".changes li.worse a")
    assert "2 PASS → 2 PASS, 1 FAIL" in page.js(PANEL)


def test_all_figures(visit):
    page = visit()
    lost = f"{GRID}.innerText.includes('steps lost')"
    assert not page.js(lost)
    page.click("#all-figures")
    assert page.js(lost)


# where it is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [360, 390, 820, 1360])
def test_the_page_does_not_scroll_sideways(visit, width):
    page = visit(width=width, height=844)
    assert page.js("document.documentElement.scrollWidth") <= width
    page.js("document.getElementById('cells').open = true")
    page.click(cell_of(page, "E05", "2.8.0"))
    assert page.js("document.documentElement.scrollWidth") <= width
    assert page.js("document.getElementById('panel').getBoundingClientRect().right") <= width


def test_on_a_phone_names_stay_while_the_table_is_moved(visit):
    page = visit(width=390, height=844)
    box = f"{GRID}.querySelector('.scroll')"
    assert page.js(f"{box}.scrollWidth > {box}.clientWidth")
    page.js(f"{box}.scrollLeft = 300")
    page.frames()
    name = f"{LINES}[3].querySelector('.first').getBoundingClientRect()"
    assert page.js(f"{name}.left - {box}.getBoundingClientRect().left") == pytest.approx(1, abs=1)


def test_dark_and_light_follow_the_system(visit):
    page = visit()
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.js(ground) == "rgb(246, 247, 249)"
    page.media(dark=True)
    page.frames()
    assert page.js(ground) == "rgb(15, 20, 26)"


@pytest.mark.parametrize("dark", [False, True])
def test_words_can_be_read(visit, dark):
    """Contrast of at least 4.5 (WCAG 2.1 AA), of every outcome on its cell."""
    page = visit(dark=dark)
    least = page.js(
        """(() => {
          const g = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
          const rgb = (...layers) => {
            g.clearRect(0, 0, 1, 1);
            for (const each of layers) { g.fillStyle = each; g.fillRect(0, 0, 1, 1); }
            return [...g.getImageData(0, 0, 1, 1).data].slice(0, 3);
          };
          const light = (c) => c.map(v => v / 255)
            .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
          const paper = getComputedStyle(document.querySelector(".scroll")).backgroundColor;
          return Math.min(...[...document.querySelectorAll(".grid td .o")].map(each => {
            const td = getComputedStyle(each.closest("td")).backgroundColor;
            const a = light(rgb(getComputedStyle(each).color)), b = light(rgb(paper, td));
            return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
          }));
        })()"""
    )
    assert least >= 4.5


def test_without_scripts_everything_is_there(browser, page_file, tmp_path):
    text = page_file.read_text()
    start, end = text.index("<script>"), text.index("</script>")
    bare = tmp_path / "bare.html"
    bare.write_text(text[:start] + text[end:])
    with browser.page() as page:
        page.open(bare)
        assert page.js("document.querySelector('.toolbar').offsetParent") is None
        shown = "[...document.querySelectorAll('tr.line')].filter(e => e.offsetParent).length"
        assert page.js(shown) == page.js("document.querySelectorAll('tr.line').length")
        page.open(bare, "#c3")
        assert page.js("document.querySelector('.detail:target').offsetHeight") > 0


def test_print(visit, tmp_path):
    if which("pdftotext") is None:
        pytest.skip("no pdftotext (Debian: poppler-utils)")
    page = visit()
    page.click(cell_of(page, "E05", "2.8.0"))
    file = page.pdf(tmp_path / "page.pdf")
    text = subprocess.run(
        ["pdftotext", "-layout", str(file), "-"], capture_output=True, text=True, check=True
    ).stdout
    assert "all figures" not in text, "the toolbar is for screens"
    assert "evidence" not in text, "so is the panel"
    for version in samples.VERSIONS:
        assert version in text
    assert "steps lost" in text, "paper has no button for the other figures"
    assert "nobody waits" in text
    assert "2 PASS" in text
    assert "1 FAIL" in text
