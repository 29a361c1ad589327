"""What changed between two versions of an object, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Object = Mapping[str, Any]
Path = tuple[str, ...]

#: bookkeeping that says nothing about the object
_SILENT = frozenset(
    {
        "resourceVersion", "managedFields", "generation", "observedGeneration", "uid",
        "creationTimestamp", "lastTransitionTime", "lastUpdateTime", "lastProbeTime",
        "lastHeartbeatTime", "lastReconcileTime", "lastTimestamp", "firstTimestamp",
        "apiVersion", "kind",
    }
)  # fmt: skip

#: lists whose items are told apart by one field, so that an item can be followed
_KEYS = ("type", "name", "key", "ip")
_LONGEST, _MOST = 160, 8


def words(old: Object | None, new: Object | None) -> str:
    """The change in words, phrases divided by ``; ``; "" when nothing that matters changed.

    Args:
        old: None for an object that is new.
        new: None for one that is gone.
    """
    if new is None:
        return "deleted"
    if old is None:
        return "; ".join(["made", *_first(new)])
    phrases = list(dict.fromkeys(_walk((), old, new)))
    if len(phrases) > _MOST:
        phrases = [*phrases[:_MOST], f"and {len(phrases) - _MOST} more"]
    return "; ".join(phrases)


def says(content: Object) -> str:
    """What a free-form object (of a fault, a gap, a mark) says: ``pod x, grace 0``."""
    for key in ("text", "message", "words"):
        if isinstance(content.get(key), str):
            return _short(content[key])
    return ", ".join(
        f"{_human(key)} {_value(value)}"
        for key, value in content.items()
        if value not in (None, "", [], {})
    )


def _first(new: Object) -> Iterator[str]:
    status, spec = new.get("status") or {}, new.get("spec") or {}
    if spec.get("nodeName"):
        yield f"on {spec['nodeName']}"
    if isinstance(status.get("phase"), str):
        yield f"phase {status['phase']}"
    for condition in dicts(status.get("conditions")):
        if condition.get("status") == "True":
            yield f"{condition.get('type')} True"


def _walk(path: Path, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if path and path[-1] in _SILENT:
        return
    special = _SPECIAL.get(path)
    if special:
        yield from special(old, new)
    elif isinstance(old, Mapping | None) and isinstance(new, Mapping | None):
        old, new = old or {}, new or {}
        for key in dict.fromkeys([*old, *new]):
            yield from _walk((*path, str(key)), old.get(key), new.get(key))
    elif isinstance(old, list | None) and isinstance(new, list | None):
        yield from _lists(path, old or [], new or [])
    else:
        yield f"{_place(path)} {_value(old)} → {_value(new)}"


def _lists(path: Path, old: list[Any], new: list[Any]) -> Iterator[str]:
    key = next((key for key in _KEYS if _keyed(old, key) and _keyed(new, key)), None)
    if key is None:
        yield f"{_place(path)} {_value(old)} → {_value(new)}"
        return
    before = {item[key]: item for item in old}
    after = {item[key]: item for item in new}
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            yield f"{_place(path)} {name} gone"
        else:
            yield from _walk((*path, name), before.get(name), after[name])


def _keyed(items: list[Any], key: str) -> bool:
    return all(isinstance(item, Mapping) and isinstance(item.get(key), str) for item in items)


def _conditions(old: Any, new: Any) -> Iterator[str]:
    before = {item.get("type"): item for item in dicts(old)}
    after = {item.get("type"): item for item in dicts(new)}
    for type_ in dict.fromkeys([*before, *after]):
        was, is_ = before.get(type_), after.get(type_)
        if is_ is None:
            yield f"{type_} gone"
            continue
        why = ": ".join(_short(is_[key]) for key in ("reason", "message") if is_.get(key))
        if was is None or was.get("status") != is_.get("status"):
            former = f"{was.get('status')} → " if was else ""
            yield f"{type_} {former}{is_.get('status')}" + (f" ({why})" if why else "")
        elif any(was.get(key) != is_.get(key) for key in ("reason", "message")):
            yield f"{type_} still {is_.get('status')}, now {why or 'without a reason'}"


def _containers(old: Any, new: Any) -> Iterator[str]:
    before = {item.get("name"): item for item in dicts(old)}
    for status in dicts(new):
        name = status.get("name")
        was = before.get(name) or {}
        if _container_state(was) != _container_state(status):
            yield f"container {name} {_container_state(status)}"
        if (was.get("restartCount") or 0) != (status.get("restartCount") or 0):
            yield f"restart {status['restartCount']}{_last_exit(status)}"
        if was and bool(was.get("ready")) != bool(status.get("ready")):
            yield f"container {name} {'ready' if status.get('ready') else 'not ready'}"


def _container_state(status: Object) -> str:
    for state, detail in (status.get("state") or {}).items():
        if state == "terminated":
            return f"terminated, {exit_words(detail)}"
        return f"{state} ({detail['reason']})" if (detail or {}).get("reason") else str(state)
    return "not started"


def _last_exit(status: Object) -> str:
    last = (status.get("lastState") or {}).get("terminated")
    return f" after {exit_words(last)}" if last else ""


def exit_words(terminated: Object | None) -> str:
    """How a container ended: ``exit 137 (OOMKilled)``."""
    detail = terminated or {}
    reason = detail.get("reason")
    return f"exit {detail.get('exitCode', '?')}" + (f" ({reason})" if reason else "")


def _node_name(old: Any, new: Any) -> Iterator[str]:
    yield f"bound to {new}" if not old else f"node {old} → {new}"


def _deletion(old: Any, new: Any) -> Iterator[str]:
    yield "deletion asked" if not old else "deletion time moved"


def _unschedulable(old: Any, new: Any) -> Iterator[str]:
    yield "cordoned" if new else "uncordoned"


def _owners(old: Any, new: Any) -> Iterator[str]:
    yield f"owners {_names(old)} → {_names(new)}"


def _names(owners: Any) -> str:
    return ", ".join(f"{o.get('kind')} {o.get('name')}" for o in dicts(owners)) or "none"


_SPECIAL: dict[Path, Callable[[Any, Any], Iterator[str]]] = {
    ("status", "conditions"): _conditions,
    ("status", "containerStatuses"): _containers,
    ("status", "initContainerStatuses"): _containers,
    ("spec", "nodeName"): _node_name,
    ("spec", "unschedulable"): _unschedulable,
    ("metadata", "deletionTimestamp"): _deletion,
    ("metadata", "ownerReferences"): _owners,
}

#: parts of a path that only say where in the object it is
_DULL = frozenset({"spec", "status", "metadata", "replicaStatuses", "replicaSpecs"})


def _place(path: Path) -> str:
    return " ".join(part for part in path if part not in _DULL) or "object"


def _human(key: str) -> str:
    return key.replace("_", " ")


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} {_value(item)}" for key, item in value.items())
        return _short(f"{{{inner}}}")
    if isinstance(value, list):
        return _short(", ".join(_value(item) for item in value) or "none")
    return _short(str(value))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def dicts(items: Any) -> list[Any]:
    """The objects of a list; [] of what is no list."""
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
