"""A watch as lines, which another thread can end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import urllib3

from clusters.errors import Unreachable


class LineStream:
    """The lines of a response that goes on and on."""

    def __init__(self, response: urllib3.BaseHTTPResponse, what: str) -> None:
        self._response = response
        self._what = what
        self._closed = False

    def __iter__(self) -> Iterator[list[bytes]]:
        """Whole lines, as many at a time as have arrived. Ends when the server ends, or at close.

        Raises:
            Unreachable: the connection broke.
        """
        rest = b""
        try:
            for chunk in self._response.stream(amt=None, decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                if lines:
                    yield [line for line in lines if line.strip()]
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if not self._closed:
                raise Unreachable(f"watch of {self._what}: {error}") from error
        finally:
            self._response.close()

    def close(self) -> None:
        """End it, even while another thread waits for the next line."""
        self._closed = True
        # without it a thread that is reading would go on to wait on a closed socket
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self._response.shutdown()
