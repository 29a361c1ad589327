"""A Chromium for the tests here, and pages of sample histories."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "reports")]

import chromium  # noqa: E402
import history_samples  # noqa: E402

from reports import timeline  # noqa: E402

Open = Callable[..., chromium.Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Browser]:
    """Skips where there is none, unless ``MUSTER_BROWSER=required``.

    One that is there and does not start is an error.
    """
    path = chromium.find()
    if path is None:
        needed = os.environ.get("MUSTER_BROWSER") == "required"
        (pytest.fail if needed else pytest.skip)(
            "no Chromium on the path nor in $CHROMIUM (Debian: apt-get install chromium)"
        )
    with chromium.Browser(path) as found:
        yield found


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of an elastic job of 8 and of 200 pods, and of a job with nothing wrong."""
    folder = tmp_path_factory.mktemp("timelines")
    stories = {
        "eight": history_samples.elastic(8),
        "many": history_samples.elastic(200, steps=40),
        "calm": history_samples.calm(),
    }
    return {
        name: timeline.write(
            story.events,
            folder / f"{name}.html",
            title=name,
            outcome="FAIL" if story.violations else "PASS",
            violations=story.violations,
            header=story.header,
        )
        for name, story in stories.items()
    }


@pytest.fixture
def visit(browser: chromium.Browser, files: dict[str, Path]) -> Iterator[Open]:
    """Opens a page by name; at the end it must have had no trouble, and asked for nothing."""
    with ExitStack() as stack:
        pages = []

        def go(name: str, fragment: str = "", **how: object) -> chromium.Page:
            page = stack.enter_context(browser.page(**how))  # type: ignore[arg-type]
            pages.append((page, files[name]))
            page.media(dark=bool(how.get("dark")), still=True)  # no waiting for animations
            page.open(files[name], fragment)
            return page

        yield go
        for page, path in pages:
            assert page.troubles == []
            local = ("about:", "data:", path.as_uri())
            assert [url for url in page.requests if not url.startswith(local)] == []
