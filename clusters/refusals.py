"""Pods that a kubelet refused: put on its node by somebody who knew no better.

A kubelet looks at a pod once, before it starts it. One that does not fit is Failed there and then:
no container of it ever runs, and no scheduler places it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: a resource that the kubelet itself sums up is told by its reason: ``OutOfcpu``,
#: ``OutOfnvidia.com/gpu`` (kubelet: lifecycle/predicate.go)
OUT_OF = "OutOf"
#: one that a device plugin owns is told by the message (kubelet: cm/admission/errors.go)
UNEXPECTED = "UnexpectedAdmissionError"
#: what that message says of the plugin's devices (kubelet: cm/devicemanager/manager.go)
_DEVICES = (
    re.compile(r"requested number of devices unavailable for (?P<resource>\S+?)\. Requested"),
    re.compile(r"cannot allocate (?:unhealthy devices|unregistered device) (?P<resource>[^\s,]+)"),
)


@dataclass(frozen=True)
class Refusal:
    """Why a kubelet refused a pod.

    Attributes:
        reason, message: the kubelet's own words.
        resource: what the node had too little of; "" when it was something else.
    """

    reason: str
    message: str
    resource: str

    def __str__(self) -> str:
        what = f" for want of {self.resource}" if self.resource else ""
        return f"refused by its kubelet{what}: {self.reason}: {self.message}"


def refusal(pod: Mapping[str, Any]) -> Refusal | None:
    """Why the kubelet refused the pod; None: it did not."""
    status = pod.get("status") or {}
    reason, message = status.get("reason") or "", (status.get("message") or "").strip()
    if status.get("phase") != "Failed":
        return None
    if reason.startswith(OUT_OF):
        return Refusal(reason, message, reason.removeprefix(OUT_OF))
    if reason != UNEXPECTED:
        return None
    found = next(filter(None, (pattern.search(message) for pattern in _DEVICES)), None)
    return Refusal(reason, message, found["resource"] if found else "")
