"""A headless Chromium, driven over its DevTools protocol.

A few methods over a web socket (a dependency of the Kubernetes client anyway) do what these tests
need; a browser automation package would bring 160 MB and a Node runtime for the same.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: seconds for the browser to start, for an answer, for a condition on a page
START, ANSWER, WAIT = 30.0, 30.0, 10.0

#: what the protocol wants to know of a key besides its name
_CODES = {
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35,
    "Enter": 13, "Escape": 27, "Tab": 9,
}  # fmt: skip


def find() -> str | None:
    """The browser of this machine: ``$CHROMIUM``, or one on the path."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(Exception):
    """The browser did not start, or refused."""


class Browser:
    """A running browser; its profile is thrown away with it."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="muster-chromium-")
        command = [
            path, "--headless=new", "--remote-debugging-port=0", "--no-first-run",
            "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio",
            "--disable-background-networking", "--disable-component-update",
            f"--user-data-dir={self._profile}", "about:blank",
        ]  # fmt: skip
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # it refuses to start as root otherwise
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            self._port = self._wait_for_port()
        except BaseException:
            self.close()
            raise

    def _wait_for_port(self) -> int:
        said = ""
        assert self._process.stderr is not None
        # the browser says where it listens, or says why not and ends
        deadline = time.monotonic() + START
        for line in self._process.stderr:
            said += line.decode(errors="replace")
            if found := re.search(r"DevTools listening on ws://[^:]+:(\d+)/", said):
                return int(found[1])
            if time.monotonic() > deadline:
                break
        raise BrowserError(f"Chromium did not start within {START:.0f} s: {said[-800:]}")

    @contextmanager
    def page(self, width: int = 1360, height: int = 860, *, dark: bool = False) -> Iterator[Page]:
        """A new page, closed at the end."""
        page = Page(self._port, width, height, dark)
        try:
            yield page
        finally:
            page.close()

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Page:
    """A tab.

    Attributes:
        troubles: errors and warnings of the console, uncaught exceptions, failed requests.
        requests: addresses that were asked for.
    """

    def __init__(self, port: int, width: int, height: int, dark: bool) -> None:
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self._numbers = 0
        self._events: list[str] = []
        self._browser = self._connect(port, "browser")
        target = self._on(self._browser, "Target.createTarget", url="about:blank")["targetId"]
        self._socket = self._connect(port, f"page/{target}")
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.size(width, height)
        self.media(dark=dark)

    @staticmethod
    def _connect(port: int, path: str) -> websocket.WebSocket:
        if path == "browser":
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/version", timeout=10) as got:
                address = json.load(got)["webSocketDebuggerUrl"]
        else:
            address = f"ws://127.0.0.1:{port}/devtools/{path}"
        return websocket.create_connection(address, timeout=ANSWER, suppress_origin=True)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the protocol, and its answer."""
        return self._on(self._socket, method, **params)

    def _on(self, socket: websocket.WebSocket, method: str, **params: Any) -> dict[str, Any]:
        self._numbers += 1
        number = self._numbers
        socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(socket.recv())
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']}")
                return dict(message["result"])
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method", ""), message.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            detail = params["exceptionDetails"]
            self.troubles.append(
                detail.get("exception", {}).get("description") or detail.get("text", "exception")
            )
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            said = [str(each.get("value", each.get("description"))) for each in params["args"]]
            self.troubles.append(" ".join(said))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.troubles.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    # a page --------------------------------------------------------------------------------

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file, and wait until it is loaded."""
        # through an empty page: another fragment of the same file would not be loaded again
        for address in ("about:blank", path.resolve().as_uri() + fragment):
            self._events.clear()
            self.send("Page.navigate", url=address)
            while "Page.loadEventFired" not in self._events:
                self._take(json.loads(self._socket.recv()))
        self.frames()

    def size(self, width: int, height: int, *, scale: float = 1, mobile: bool = False) -> None:
        """Size of the window in CSS pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=mobile,
        )

    def media(self, *, dark: bool, still: bool = False) -> None:
        """What the user prefers."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        self.send("Emulation.setEmulatedMedia", features=features)

    def js(self, expression: str) -> Any:
        """Value of an expression; a promise is waited for."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def frames(self, count: int = 2) -> None:
        """Wait until the page was painted."""
        for _ in range(count):
            self.js("new Promise(done => requestAnimationFrame(() => done(1)))")

    def until(self, expression: str, deadline: float = WAIT) -> Any:
        """Wait until an expression is true; its value."""
        end = time.monotonic() + deadline
        while not (value := self.js(expression)):
            if time.monotonic() > end:
                raise AssertionError(f"not within {deadline:.0f} s: {expression}; last: {value!r}")
            self.frames(1)
        return value

    # hands ---------------------------------------------------------------------------------

    def middle(self, selector: str) -> tuple[float, float]:
        """Middle of an element, in the window."""
        x, y = self.js(
            "(() => { const b = document.querySelector(" + json.dumps(selector) + ")"
            ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return x, y

    def click(self, selector: str) -> None:
        """Click on the middle of an element, scrolled into view."""
        self.js(
            f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block:'center'}})"
        )
        self.click_at(*self.middle(selector))

    def click_at(self, x: float, y: float, *, times: int = 1) -> None:
        """Click at a place of the window."""
        self.mouse("mouseMoved", x, y)
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button="left", clickCount=count)
        self.frames()

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press, move, release."""
        self.mouse("mousePressed", *start, button="left", clickCount=1)
        for part in (0.3, 0.7, 1.0):
            x = start[0] + (end[0] - start[0]) * part
            y = start[1] + (end[1] - start[1]) * part
            self.mouse("mouseMoved", x, y, button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)
        self.frames()

    def wheel(self, x: float, y: float, delta: float, *, modifiers: int = 0) -> None:
        """Turn the wheel; modifiers: 2 Ctrl, 8 Shift."""
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta, modifiers=modifiers)
        self.frames()

    def key(self, name: str, *, modifiers: int = 0) -> None:
        """Press a key."""
        params: dict[str, Any] = {"key": name, "modifiers": modifiers}
        if len(name) == 1:
            params["text"] = name
        params["windowsVirtualKeyCode"] = _CODES.get(name, ord(name[0].upper()))
        self.send("Input.dispatchKeyEvent", type="keyDown", **params)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=name, modifiers=modifiers)
        self.frames()

    def write(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)
        self.frames()

    # pictures ------------------------------------------------------------------------------

    def screenshot(self, path: Path, *, whole: bool = False) -> Path:
        """A PNG of the window, or of the whole page."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def pdf(self, path: Path) -> Path:
        """The page printed."""
        answer = self.send("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def close(self) -> None:
        """Close the tab."""
        # it may be gone already
        with suppress(BrowserError, websocket.WebSocketException, OSError):
            self.send("Page.close")
        self._socket.close()
        self._browser.close()
