"""The Docker engine that clusters run on: the user's when it answers, else one of our own.

>>> engine = ensure()                       # doctest: +SKIP
>>> engine.docker("ps")                     # doctest: +SKIP
"""

from __future__ import annotations

from clusters import cache
from clusters.engine import capabilities, install, own
from clusters.engine.client import Engine, find, found_default
from clusters.engine.probe import check_privileged
from clusters.errors import EngineError
from clusters.progress import say

__all__ = ["Engine", "check_privileged", "ensure", "find", "revived", "stop"]


def ensure() -> Engine:
    """The Docker engine; installed and started when none answers and this host allows it.

    An engine of our own outlives the command (clusters live in it) and goes with :func:`stop`.

    Raises:
        EngineError: there is none and none can be made here; says what is missing.
    """
    engine = find()
    if not _usable(engine):
        with cache.lock("engine"):
            engine = find()  # whoever held the lock may have started it
            if not _usable(engine):
                engine = _start(engine)
    assert engine is not None
    if not engine.own and capabilities.lacking():
        check_privileged(engine)
    return engine


def revived() -> Engine | None:
    """The engine that answers, if any; one of our own that was killed is started again.

    For whoever removes containers: those of a killed engine live on.

    Raises:
        EngineError: it does not start again.
    """
    engine = find()
    return ensure() if engine is None and own.died() else engine


def _usable(engine: Engine | None) -> bool:
    return engine is not None and (not engine.own or own.healthy())


def _start(broken: Engine | None) -> Engine:
    """An engine that was not there: the service that apt starts, else our own."""
    if broken is not None:
        say("our Docker engine has lost its data root: starting it again")
        own.stop()
    install.refused()
    install.missing()
    engine = found_default(wait=install.just_installed())
    if engine is not None:
        return engine
    own.start()
    engine = find()
    if engine is None or not engine.own:
        raise EngineError(
            "the Docker engine was started but does not answer", hint=f"see {own.log()}"
        )
    check_privileged(engine)
    own.confirm()
    return engine


def stop() -> bool:
    """Stop our own engine and all that runs in it; somebody else's is left alone.

    Returns whether there was one.

    Raises:
        EngineError: it would not end.
    """
    with cache.lock("engine"):
        was_there = own.stop()
        own.forget()
        return was_there
