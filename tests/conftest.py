"""For all tests: what no unit test may do, whatever slips past its fakes."""

from __future__ import annotations

import signal

import pytest

# a shell starts what it puts into the background with SIGINT ignored, and children inherit that:
# those that tests interrupt would run on for ever
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only tests of a real cluster may install, start or stop a Docker engine of ours.

    Tests of the engine's own code move its socket elsewhere and bring a ``dockerd`` of their own.
    """
    if any(request.node.get_closest_marker(name) for name in ("smoke", "proof")):
        return
    from clusters.engine import client, install, own

    real, stop = client.SOCKET.parent, own.stop

    def stopped() -> bool:  # what starts an engine stops a former one first
        if own.run_dir() == real:
            pytest.fail("a unit test was about to start or stop the real Docker engine")
        return stop()

    def found(name: str) -> str | None:
        if name == "dockerd":
            pytest.fail("a unit test was about to start a real dockerd")
        return install.which(name)

    def command(args: object, *more: object, **options: object) -> None:
        pytest.fail(f"a unit test was about to install something: {args}")

    monkeypatch.setattr(own, "stop", stopped)
    monkeypatch.setattr(own, "which", found)
    monkeypatch.setattr(install, "run", command)
    monkeypatch.setattr(install, "run_logged", command)
