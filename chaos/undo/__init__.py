"""What undoes a fault is on disk before the fault happens.

Whoever broke something mends it: at the end of the test, at Ctrl-C, when its time is over. If that
process dies, the next one that uses the cluster does it, or ``python -m chaos mend``.
"""

from chaos.undo.journal import Entry, Journal
from chaos.undo.mending import everywhere, mend, mend_named, pending
from chaos.undo.steps import (
    Ask,
    Continue,
    Delete,
    ForgetLocal,
    InPod,
    OnNode,
    Patch,
    PowerOn,
    Reinstall,
    StartKubelet,
    StartLocal,
    Step,
)

__all__ = [
    "Ask",
    "Continue",
    "Delete",
    "Entry",
    "ForgetLocal",
    "InPod",
    "Journal",
    "OnNode",
    "Patch",
    "PowerOn",
    "Reinstall",
    "StartKubelet",
    "StartLocal",
    "Step",
    "everywhere",
    "mend",
    "mend_named",
    "pending",
]
