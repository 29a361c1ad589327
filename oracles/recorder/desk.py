"""Where other processes hand in what they have to say to the recorder.

The recorder lives in the process that owns the cluster; tests may run in others. One request is
one connection to a Unix socket: a JSON line there, a JSON line back. When the answer is there, the
mark or fault is in the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from oracles.errors import HarnessError
from oracles.recorder.recorder import Notes

#: seconds in which the recorder has to answer, besides what it is asked to wait
ANSWER = 15.0
_WORDS = ("mark", "fault", "settle")


class Desk:
    """Takes requests for a recorder until it is closed.

    Attributes:
        path: of the socket; what a :class:`Remote` is made with.
    """

    def __init__(self, notes: Notes, path: Path) -> None:
        self.path = path

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(json.dumps(_do(notes, self.rfile.readline())).encode() + b"\n")

        with _short(path) as name:
            self._server = _Server(name, Handler)
        threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="recorder-desk", daemon=True
        ).start()

    def close(self) -> None:
        """Take no more."""
        self._server.shutdown()
        self._server.server_close()
        self.path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


def _do(notes: Notes, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
        if request["do"] not in _WORDS:
            raise ValueError(f"no such request: {request['do']}")
        return {"answer": getattr(notes, request["do"])(**request["with"])}
    except Exception as error:  # said to who asked; the recorder goes on
        return {"error": f"{type(error).__name__}: {error}"}


class Remote:
    """A recorder in another process. See :class:`~oracles.recorder.recorder.Notes`.

    All methods raise HarnessError when the recorder does not answer: then nothing is recorded any
    more either.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(
        self, type: str, name: str = "", namespace: str = "", about: Mapping[str, Any] = {}
    ) -> int:
        """See :class:`Notes`."""
        return cast(
            int, self._ask("mark", type=type, name=name, namespace=namespace, about=dict(about))
        )

    def fault(
        self,
        type: str,
        kind: str,
        name: str = "",
        namespace: str = "",
        about: Mapping[str, Any] = {},
    ) -> int:
        """See :class:`Notes`."""
        more: dict[str, Any] = {"name": name, "namespace": namespace, "about": dict(about)}
        return cast(int, self._ask("fault", type=type, kind=kind, **more))

    def settle(self, deadline: float = 10.0) -> list[str]:
        """See :class:`Notes`."""
        return cast(list[str], self._ask("settle", wait=deadline, deadline=deadline))

    def _ask(self, what: str, *, wait: float = 0.0, **more: Any) -> Any:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(wait + ANSWER)
                with _short(self._path) as name:
                    connection.connect(name)
                connection.sendall(json.dumps({"do": what, "with": more}).encode() + b"\n")
                with connection.makefile("rb") as file:
                    answer = json.loads(file.readline())
        except (OSError, ValueError) as error:
            raise HarnessError(
                f"the recorder of this cluster does not answer ({error}): nothing is recorded"
            ) from error
        if "error" in answer:
            raise HarnessError(f"the recorder could not {what}: {answer['error']}")
        return answer["answer"]


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """A name for *path* that fits into a socket's address, which has 108 bytes at most."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
