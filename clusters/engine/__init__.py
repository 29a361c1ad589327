"""The Docker engine that clusters run on: the user's when it answers, else one of our own.

>>> engine = ensure()                       # doctest: +SKIP
>>> engine.docker("ps")                     # doctest: +SKIP
"""

from __future__ import annotations

from clusters import cache, hostfacts
from clusters.engine import install, own
from clusters.engine.client import Engine, find, found_default, refused
from clusters.engine.probe import check_privileged
from clusters.errors import EngineError

__all__ = ["Engine", "check_privileged", "ensure", "find", "stop"]


def ensure() -> Engine:
    """The Docker engine; installed and started when none answers and this host allows it.

    An engine of our own outlives the command (clusters live in it) and goes with :func:`stop`.

    Raises:
        EngineError: there is none and none can be made here; says what is missing.
    """
    engine = find()
    if engine is not None and (not engine.own or own.healthy()):
        return engine
    with cache.lock("engine"):
        engine = find()  # whoever held the lock may have started it
        if engine is not None and not engine.own:
            return engine
        if engine is not None and own.healthy():
            return engine
        refused()
        install.missing()
        engine = found_default(wait=install.just_installed())
        if engine is None:
            own.start()
            engine = find()
        if engine is None:
            raise EngineError(
                "the Docker engine was started but does not answer", hint=f"see {own.log()}"
            )
        if engine.own or hostfacts.lacking_capabilities():
            check_privileged(engine)
        return engine


def stop() -> bool:
    """Stop our own engine and all that runs in it; somebody else's is left alone.

    Returns whether there was one.

    Raises:
        EngineError: it would not end.
    """
    with cache.lock("engine"):
        return own.stop()
