"""Breaking things so that they are mended, whatever happens in between."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from chaos import safety
from chaos.errors import NotMended
from chaos.faults.base import Fault, Planned, Proof
from chaos.site import Site
from chaos.undo.journal import Entry, Journal
from clusters.progress import say
from oracles.errors import HarnessError

#: seconds after which a fault is undone, unless another time is given
WITHIN = 600.0
#: what is said again when it is mended: the history's judges need it
_REPEATED = ("id", "pauses", "what")
#: takes down a fault's step: its type, the fault's name, and what else there is to say
Note = Callable[[str, str, Mapping[str, Any]], None]


@dataclass
class _Broken:
    fault: Fault
    about: dict[str, Any]
    entry: Entry | None
    timer: threading.Timer | None = field(default=None, repr=False)


class Injector:
    """Injects faults into one cluster, and mends all of them.

    ``injector(fault)`` breaks something and returns the proof. What undoes it is on disk before;
    it is undone by :meth:`recover`, by :meth:`close`, when its time is over, when this process
    ends, and else by the next one (:func:`chaos.undo.mend`).

    Args:
        owned: names of clusters whose owner allows everything; see :mod:`chaos.safety`.
        note: told of each step: ``inject``, ``proven``, ``unproven``, ``recover``.
    """

    def __init__(
        self, site: Site, *, owned: Collection[str] = (), note: Note = lambda *_: None
    ) -> None:
        self.site = site
        self.proofs: list[tuple[Fault, Proof]] = []
        self._owned = owned
        self._note = note
        self._journal = Journal(site)
        self._broken: list[_Broken] = []
        self._lock = threading.RLock()
        self._short: list[str] = []
        atexit.register(self._at_exit)

    def __call__(self, fault: Fault, *, within: float = WITHIN, **about: Any) -> Proof:
        """Break something; returns when it is proven to be broken.

        Args:
            within: seconds after which it is undone, if nobody did before.
            about: goes into the history with each step; see ``oracles.invariants.recovery``.

        Raises:
            NotOurs: the fault would touch what it may not.
            NotApplicable: it cannot be had here.
            FaultError: there is nothing to break, or the fault did not take. It is undone then.
        """
        safety.check(self.site, fault, self._owned)
        steps = fault.plan() if isinstance(fault, Planned) else ()
        more: dict[str, Any] = dict(about)
        words = getattr(fault, "about", "")
        if words:
            more["what"] = words
        entry = None
        if steps:
            space = getattr(fault, "namespace", "")
            entry = self._journal.write(
                fault.name, steps, within=within, about=words, namespace=space
            )
            more["id"] = entry.id
        if pauses := getattr(fault, "pauses", ()):
            more.setdefault("pauses", list(pauses))
            more.setdefault("id", f"{fault.name}-{id(fault)}")
        broken = _Broken(fault, more, entry)
        if entry is not None:
            broken.timer = threading.Timer(within, self._expire, [broken])
            broken.timer.daemon = True
            broken.timer.start()
        self._broken.append(broken)
        self._note("inject", fault.name, more)
        try:
            fault.inject()
            proof = fault.proof()
        except BaseException as error:
            self._note("unproven", fault.name, {**more, "why": str(error)})
            with suppress(Exception):  # the first trouble is the one to be told
                self._mend(broken)
            raise
        self.proofs.append((fault, proof))
        self._note("proven", fault.name, {**more, **asdict(proof)})
        return proof

    @property
    def open(self) -> list[Fault]:
        """What is broken now, the oldest first."""
        return [broken.fault for broken in self._broken]

    def recover(self, fault: Fault) -> None:
        """Mend it now; nothing to do when it is mended already.

        Raises:
            HarnessError: it does not mend now: it may when this is called again, for what else is
                broken may keep it from being mended.
        """
        for broken in list(self._broken):
            if broken.fault is fault:
                self._mend(broken)

    def close(self) -> None:
        """Mend everything, the last first.

        Raises:
            NotMended: with what could not be mended, and what did not last until it was to be
                mended, as its time was over: nobody knows what of the test came after that.
        """
        troubles = []
        for broken in reversed(list(self._broken)):
            try:
                self._mend(broken)
            except Exception as error:  # whatever it is, the others are to be mended
                troubles.append(str(error) or type(error).__name__)
                with suppress(ValueError):  # what is written down of it stays, for who comes next
                    self._broken.remove(broken)
        atexit.unregister(self._at_exit)
        troubles += self._short
        self._short = []
        if troubles:
            raise NotMended("\n".join(troubles))

    def _mend(self, broken: _Broken) -> None:
        with self._lock:
            if broken not in self._broken:
                return
            why = self._lasted(broken)
            broken.fault.recover()
            self._broken.remove(broken)
            if broken.timer is not None:  # until here: what does not mend has its deadline still
                broken.timer.cancel()
            if why:
                self._short.append(why)
            if broken.entry is not None:
                self._journal.forget(broken.entry)
        said: dict[str, Any] = {k: v for k, v in broken.about.items() if k in _REPEATED}
        self._note("recover", broken.fault.name, said)

    def _expire(self, broken: _Broken) -> None:
        with self._lock:
            if broken not in self._broken or broken.entry is None:
                return
            say(f"{broken.fault.name} lasted to its deadline: undoing it")
            self._short.append(f"{broken.fault.name} was undone because its time was over")
            with suppress(Exception):
                self._mend(broken)

    def _lasted(self, broken: _Broken) -> str:
        """Why a fault that was proven did not last until now, or ""."""
        proven = any(fault is broken.fault for fault, _ in self.proofs)
        if not proven or not isinstance(broken.fault, Planned):
            return ""
        try:
            return broken.fault.lasted()
        except HarnessError as error:
            return f"whether {broken.fault.name} lasted, nobody can say: {error}"

    def _at_exit(self) -> None:
        try:
            self.close()
        except HarnessError as error:
            say(f"still broken: {error}")
