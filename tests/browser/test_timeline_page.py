"""The timeline page in a real browser, as people use it."""

from __future__ import annotations

import subprocess
from shutil import which

import pytest

pytestmark = pytest.mark.browser

LANES = "[...document.querySelectorAll('.lane')]"
SHOWN = f"{LANES}.filter(each => each.offsetParent).map(each => each.dataset.lane)"
POD = "[data-lane='Pod h-elastic/elastic-worker-2']"
FOCUS = "document.activeElement.dataset.lane ?? document.activeElement.className"
DETAILS = (
    "document.getElementById('details').hidden ? '' : document.getElementById('details').innerText"
)

#: labels of the axis say what is shown: the scripts keep it to themselves
AXIS = "document.getElementById('axis').toDataURL()"


def pixels(page, selector: str) -> set[tuple[int, ...]]:
    """Colours in the canvas of a lane."""
    found = page.js(
        f"""(() => {{
          const canvas = document.querySelector("{selector} canvas");
          const copy = new OffscreenCanvas(canvas.width, canvas.height);
          const g = copy.getContext("2d", {{ willReadFrequently: true }});
          g.drawImage(canvas, 0, 0);
          const all = g.getImageData(0, 0, copy.width, copy.height).data;
          const found = new Set();
          for (let i = 0; i < all.length; i += 4) if (all[i + 3] === 255)
            found.add([all[i], all[i + 1], all[i + 2]].join());
          return [...found];
        }})()"""
    )
    return {tuple(map(int, each.split(","))) for each in found}


def colour(page, name: str) -> tuple[int, ...]:
    text = page.js(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')")
    return tuple(bytes.fromhex(text.strip().lstrip("#")))


def canvas_of(page, selector: str, part: float = 0.5) -> tuple[float, float]:
    """A place in a lane's canvas, brought into view: *part* of its width."""
    page.js(f'document.querySelector("{selector} canvas").scrollIntoView({{block: "center"}})')
    page.frames()  # the page hears of having been scrolled in the next frame
    x, y, wide = page.js(
        f"""(() => {{
          const box = document.querySelector("{selector} canvas").getBoundingClientRect();
          return [box.left, box.top, box.width];
        }})()"""
    )
    return x + wide * part, y + 8


# what is seen ----------------------------------------------------------------------------------


def test_all_lanes_are_there_and_painted(visit):
    page = visit("eight", height=2000)
    shown = page.js(SHOWN)
    assert [each for each in shown if each.startswith("Pod ")] == [
        f"Pod h-elastic/elastic-worker-{index}" for index in range(8)
    ]
    for kind in ("violations", "faults", "gaps", "PodGroup", "pods", "training", "Node"):
        assert page.js(f"!!document.querySelector(\".lane[data-kind='{kind}']\")"), kind
    page.until(f"{LANES}.every(lane => lane.querySelector('canvas').width > 100)")
    seen = pixels(page, POD)
    for state in ("waiting", "ready", "good", "train", "fault"):
        assert colour(page, state) in seen, state


def test_dark_and_light_follow_the_system(visit):
    page = visit("eight")
    light = colour(page, "ready")
    assert light in pixels(page, POD)
    page.media(dark=True)
    page.frames(3)
    dark = colour(page, "ready")
    assert dark != light
    assert dark in pixels(page, POD)
    assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(15, 20, 26)"


def test_a_calm_history_has_no_violations_and_no_faults(visit):
    page = visit("calm")
    assert not page.js("document.querySelector('.violations')")
    assert page.js("document.querySelector('.outcome').innerText").endswith("PASS")


@pytest.mark.parametrize("width", [360, 1360])
def test_nothing_runs_out_of_the_window(visit, width):
    page = visit("eight", width=width, height=800)
    assert page.js("document.documentElement.scrollWidth") <= width


# time ------------------------------------------------------------------------------------------


def test_zoom_and_fit_with_buttons_and_keys(visit):
    page = visit("eight")
    whole = page.js(AXIS)
    page.click("#zoom-in")
    near = page.js(AXIS)
    assert near != whole
    page.click("#zoom-out")
    assert page.js(AXIS) == whole
    page.key("+")
    assert page.js(AXIS) != whole
    page.key("0")
    assert page.js(AXIS) == whole
    page.click("#zoom-in")
    page.click("#fit")
    assert page.js(AXIS) == whole


def test_the_wheel_zooms_with_ctrl_pans_with_shift_and_else_scrolls(visit):
    page = visit("eight")
    x, y = canvas_of(page, POD)
    whole = page.js(AXIS)
    page.wheel(x, y, -120, modifiers=2)
    near = page.js(AXIS)
    assert near != whole
    page.wheel(x, y, 120, modifiers=8)
    page.until(f"{AXIS} !== {near!r}")
    moved = page.js(AXIS)
    page.js("scrollTo(0, 0)")
    page.wheel(x, 300, 200)
    page.until("scrollY > 0")
    assert page.js(AXIS) == moved


def test_dragging_moves_in_time_and_on_the_axis_zooms(visit):
    page = visit("eight")
    whole = page.js(AXIS)
    page.click("#zoom-in")
    near = page.js(AXIS)
    x, y = canvas_of(page, POD)
    page.drag((x, y), (x - 200, y))
    assert page.js(AXIS) not in (whole, near)
    assert page.js(DETAILS) == ""  # a drag is no click
    page.key("0")
    x, y = page.middle("#axis")
    page.drag((x, y), (x + 100, y))
    assert page.js(AXIS) != whole


def test_one_cannot_get_lost(visit):
    page = visit("eight")
    whole = page.js(AXIS)
    for _ in range(30):
        page.key("+")
    for _ in range(5):
        page.key("d")
    for _ in range(40):
        page.key("-")
    widest = page.js(AXIS)
    page.key("-")
    page.key("a")
    assert page.js(AXIS) == widest
    page.key("0")
    assert page.js(AXIS) == whole


# violations, events, links ---------------------------------------------------------------------


def test_a_violation_links_to_its_place(visit):
    page = visit("eight", height=700)
    whole = page.js(AXIS)
    page.click('a[href="#v2"]')
    assert page.js(AXIS) != whole
    assert page.js(FOCUS) == "PyTorchJob h-elastic/elastic"
    assert "replica counts went blank" in page.js(DETAILS)
    assert "Worker active 8 → none" in page.js(DETAILS)
    box = "document.activeElement.getBoundingClientRect()"
    assert page.js(f"{box}.top > 60 && {box}.bottom < innerHeight")
    assert (194, 15, 52) in pixels(page, "[data-lane='PyTorchJob h-elastic/elastic']")


def test_a_violation_is_found_in_a_closed_group_and_behind_a_filter(visit):
    page = visit("eight")
    page.click("#close-all")
    assert page.js(f"{SHOWN}.length") == 0
    page.click("#filter")
    page.write("worker-3")
    page.click('a[href="#v1"]')
    assert page.js(FOCUS) == "PodGroup h-elastic/elastic"
    assert page.js("document.getElementById('filter').value") == ""


def test_a_link_from_outside_opens_the_page_at_an_event(visit):
    page = visit("eight", "#v1")
    assert page.js(FOCUS) == "PodGroup h-elastic/elastic"
    cited = page.js("document.querySelector('#details .said a').hash")
    other = visit("eight", cited)
    assert other.js(FOCUS).startswith("Pod ")
    assert "bound to worker" in other.js(DETAILS)


def test_lines_of_the_list_lead_to_their_place(visit):
    page = visit("eight")
    rows = "[...document.querySelectorAll('.story tr')]"
    index = page.js(f"{rows}.findIndex(row => row.innerText.includes('inject'))")
    page.js(f"{rows}[{index}].querySelector('.jump').click()")
    page.frames()
    assert page.js(FOCUS) == "faults"
    assert "signal SIGKILL" in page.js(DETAILS)


# filter and groups -----------------------------------------------------------------------------


def test_the_filter_leaves_what_has_the_name(visit):
    page = visit("eight")
    all_ = page.js(SHOWN)
    page.key("/")
    page.write("worker-3")
    assert page.js(SHOWN) == ["Pod h-elastic/elastic-worker-3"]
    assert page.js("document.getElementById('shown').innerText") == f"1 of {len(all_)} lanes"
    page.write("zzz")
    assert page.js(SHOWN) == []
    assert not page.js("document.getElementById('nothing').hidden")
    page.key("Escape")
    assert page.js(SHOWN) == all_


def test_groups_close_and_open(visit):
    page = visit("eight")
    before = page.js(f"{SHOWN}.length")
    page.click(".group:has(+ .lane[data-kind='Node']) .name")
    assert page.js(f"{SHOWN}.filter(each => each.startsWith('Node')).length") == 0
    group = "document.querySelector(\".group:has(+ .lane[data-kind='Node'])\")"
    assert page.js(f"{group}.getAttribute('aria-expanded')") == "false"
    page.key("ArrowRight")
    assert page.js(f"{SHOWN}.length") == before


# details ---------------------------------------------------------------------------------------


def test_hovering_shows_what_is_there(visit):
    page = visit("eight")
    x, y = canvas_of(page, POD, 0.4)
    page.mouse("mouseMoved", x, y)
    page.until("!document.getElementById('tip').hidden")
    said = page.js("document.getElementById('tip').innerText")
    assert "ready · worker" in said
    assert "Ready False → True" in said
    assert "05:20:" in page.js("document.getElementById('cursor').innerText")
    page.mouse("mouseMoved", 5, 5)
    page.until("document.getElementById('tip').hidden")


def test_clicking_pins_the_details_until_escape(visit):
    page = visit("eight")
    page.click_at(*canvas_of(page, POD, 0.4))
    said = page.js(DETAILS)
    assert "ready · worker" in said
    assert "began with event" in said
    assert "ended with event" in said
    page.key("Escape")
    assert page.js(DETAILS) == ""


# keyboard --------------------------------------------------------------------------------------


def test_everything_can_be_walked_with_the_keyboard(visit):
    page = visit("eight")
    page.js("document.querySelector('#lanes [tabindex=\"0\"]').focus()")
    page.key("ArrowDown")
    assert page.js(FOCUS) == "violations"
    page.key("ArrowRight")
    assert "3 of at least 4 pods were bound" in page.js(DETAILS)
    page.key("ArrowRight")
    assert "replica counts went blank" in page.js(DETAILS)
    page.key("End")
    assert page.js(FOCUS) == "Node worker3"
    said = []
    for _ in range(3):
        page.key("ArrowRight")
        said.append(page.js("document.querySelector('#details h3').innerText"))
    assert [each for each in ("Ready", "Unknown") if each in said] == ["Ready", "Unknown"]
    page.key("Home")
    assert page.js("document.activeElement.className") == "group"
    page.key("ArrowLeft")
    assert page.js("document.activeElement.getAttribute('aria-expanded')") == "false"


def test_only_one_line_is_in_the_tab_order_and_each_has_a_name(visit):
    page = visit("eight")
    page.key("Tab")
    assert page.js("document.querySelectorAll('#lanes [tabindex=\"0\"]').length") == 1
    names = page.js(f"{LANES}.map(each => each.getAttribute('aria-label'))")
    assert "Pod h-elastic/elastic-worker-2, rank 2 of 7 · worker, last worker" in names
    assert all(names)


def test_n_and_p_go_from_violation_to_violation(visit):
    page = visit("eight")
    page.key("n")
    assert "3 of at least 4" in page.js(DETAILS)
    page.key("n")
    assert "went blank" in page.js(DETAILS)
    page.key("p")
    assert "3 of at least 4" in page.js(DETAILS)


def test_help_opens_and_closes(visit):
    page = visit("eight")
    page.key("?")
    assert page.js("document.getElementById('help').open")
    page.key("Escape")
    assert not page.js("document.getElementById('help').open")


# many pods, paper ------------------------------------------------------------------------------


def test_200_pods_are_all_there_and_only_those_in_view_are_painted(visit):
    page = visit("many", width=1920, height=1080)
    assert page.js(f"{SHOWN}.filter(each => each.startsWith('Pod ')).length") == 200
    assert page.js("document.getElementById('density').value") == "compact"
    page.key("+")
    painted = page.js(f"{LANES}.filter(each => each.querySelector('canvas').width > 0).length")
    assert 20 < painted < 120


def test_rows_can_be_made_small_enough_to_see_all_pods_at_once(visit):
    page = visit("many", width=1920, height=1080)
    page.key("r")
    assert page.js("document.getElementById('density').value") == "tiny"
    pods = f"{LANES}.filter(each => each.dataset.kind === 'Pod')"
    assert page.js(f"{pods}.reduce((sum, each) => sum + each.offsetHeight, 0)") <= 1200


def test_printed_pages_are_light_and_complete(visit, tmp_path):
    page = visit("eight", dark=True)
    paper = page.pdf(tmp_path / "t.pdf")
    assert paper.stat().st_size > 20_000
    page.frames()
    assert page.js("document.documentElement.dataset.theme ?? ''") == ""  # back to dark
    if which("pdftotext"):
        said = subprocess.run(
            ["pdftotext", "-layout", str(paper), "-"], capture_output=True, text=True, check=True
        ).stdout
        for words in ("2 broken promises", "worker-7", "worker3", "What happened", "recover"):
            assert words in said
