"""Waiting for a state: list once, then follow the watch until a condition holds. Or holding one.

A broken or expired watch is opened again from a fresh list: no event is needed for the *state*
to be right, and the deadline goes on running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from clusters.errors import ApiError, Expired, Unreachable, WaitTimeout
from clusters.refusals import refusal
from oracles.errors import HarnessError

if TYPE_CHECKING:
    from clusters.kube import Kube, Object, Resource

#: seconds between two attempts to reach an API server that does not answer
RECONNECT = 0.5
#: HTTP statuses that say "not now": a server that is overloaded, starting or ending
PASSING = frozenset({429, 500, 502, 503, 504})


def wait_for[T](
    kube: Kube,
    what: Resource,
    until: Callable[[list[Object]], T | None],
    namespace: str | None,
    labels: str,
    fields: str,
    deadline: float,
    why: str,
) -> T:
    """See :meth:`clusters.kube.Kube.wait`."""
    end = time.monotonic() + deadline
    seen: dict[str, Object] = {}
    trouble = ""
    while True:
        try:
            items, version = kube.list_with_version(what, namespace, labels=labels, fields=fields)
            seen = {_id(item): item for item in items}
            if (answer := until(list(seen.values()))) is not None:
                return answer
            left = end - time.monotonic()
            if left > 0:
                for event in kube.watch(
                    what, namespace, since=version, labels=labels, fields=fields, timeout=left
                ):
                    if event["type"] == "BOOKMARK":
                        continue
                    item = event["object"]
                    if event["type"] == "DELETED":
                        seen.pop(_id(item), None)
                    else:
                        seen[_id(item)] = item
                    if (answer := until(list(seen.values()))) is not None:
                        return answer
                    if time.monotonic() > end:
                        break
        except Expired:
            pass
        except (Unreachable, ApiError) as error:
            if isinstance(error, ApiError) and error.status not in PASSING:
                raise
            trouble = f"; last trouble: {error}"
            time.sleep(RECONNECT)
        if time.monotonic() >= end:
            raise WaitTimeout(
                f"{why}: not within {deadline:.0f} s; last seen: {describe(seen.values())}{trouble}"
            )


def hold(
    kube: Kube,
    what: Resource,
    namespace: str,
    check: Callable[[Mapping[str, Object], float], None],
    *,
    labels: str = "",
    seconds: float,
) -> dict[str, Object]:
    """Show *check* all objects, by name, now and after every change that the watch shows for
    *seconds*, with the seconds gone by; returns the objects that there were at the end.

    Raises:
        HarnessError: the watch broke, so nobody can say what happened meanwhile.
    """
    start = time.monotonic()
    items, version = kube.list_with_version(what, namespace, labels=labels)
    seen = {item["metadata"]["name"]: item for item in items}
    check(seen, 0.0)
    try:
        # the server ends the stream by itself after the given time
        while (left := seconds - (time.monotonic() - start)) > 0:
            for event in kube.watch(what, namespace, since=version, labels=labels, timeout=left):
                item = event["object"]
                version = item["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                if event["type"] == "DELETED":
                    seen.pop(item["metadata"]["name"], None)
                else:
                    seen[item["metadata"]["name"]] = item
                check(seen, time.monotonic() - start)
    except (Expired, Unreachable) as error:
        raise HarnessError(
            f"the watch that held the {what.plural} of {namespace} broke after"
            f" {time.monotonic() - start:.1f} of {seconds:.0f} s: {error}"
        ) from error
    return seen


def _id(item: Object) -> str:
    meta = item["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"


def describe(items: Iterable[Object]) -> str:
    """Objects in few words: name, phase or true conditions, node."""
    words = []
    for item in items:
        status = item.get("status") or {}
        conditions = status.get("conditions") or []
        true = [c["type"] for c in conditions if c["status"] == "True"]
        state = status.get("phase") or ",".join(true) or "no status"
        ready = next((c for c in conditions if c["type"] == "Ready"), {"status": "True"})
        if ready["status"] != "True" and ready.get("message"):
            state += f" (not Ready: {ready['message'][:200]})"
        waiting = [
            s["state"]["waiting"].get("reason", "")
            for s in status.get("containerStatuses") or []
            if "waiting" in s.get("state", {})
        ]
        if (refused := refusal(item)) is not None:
            state += f" ({refused})"
        node = item.get("spec", {}).get("nodeName")
        words.append(
            f"{item['metadata']['name']} {state}"
            + (f" ({', '.join(waiting)})" if waiting else "")
            + (f" on {node}" if node else "")
        )
    return "; ".join(words[:20]) or "nothing"
