"""The decoding of what a watch sends: what is not kept of an object is left out meanwhile.

What is kept are the types of :mod:`oracles.kept`. An object that does not have the expected form is
kept whole.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from oracles.kept import ENV, ENV_PREFIXES, NOISE, TYPES, Bare, Metadata, Pod, Pruned, Whole


class Seen(Struct, gc=False):
    """A line of a watch. ``object`` of an ERROR or BOOKMARK is decoded by its own type."""

    type: str
    object: Raw


class Status(Struct, gc=False):
    """What the server says when it refuses."""

    code: int = 0
    message: str = ""


class _ListMeta(Struct, gc=False):
    resourceVersion: str = ""


class _List(Struct, gc=False):
    metadata: _ListMeta
    items: list[Raw] | None = None


_IDENTITY = ("name", "namespace", "uid", "resourceVersion")
_list: msgspec.json.Decoder[_List] = msgspec.json.Decoder(_List)
_fallback: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
status: msgspec.json.Decoder[Status] = msgspec.json.Decoder(Status)
seen: msgspec.json.Decoder[Seen] = msgspec.json.Decoder(Seen)
bare: msgspec.json.Decoder[Bare] = msgspec.json.Decoder(Bare)


class Pruner:
    """Decodes the objects of one kind, and leaves out what is not kept."""

    def __init__(self, api_version: str, kind: str) -> None:
        wanted = TYPES.get(f"{api_version}/{kind}", Whole)
        self._decode = msgspec.json.Decoder(wanted).decode
        self._core = "/" not in api_version
        self._api_version = api_version
        self._containers = wanted is Pod

    def prune(self, data: bytes | Raw) -> Pruned | dict[str, Any]:
        """The object, ready to be encoded.

        Raises:
            msgspec.DecodeError: not JSON.
        """
        try:
            item = self._decode(data)
        except msgspec.ValidationError:
            return self._whole(data)
        item.apiVersion = UNSET if self._core else self._api_version
        annotations = item.metadata.annotations
        if annotations:
            for name in NOISE:
                annotations.pop(name, None)
        if self._containers and isinstance(item, Pod) and item.spec:
            for containers in (item.spec.containers, item.spec.initContainers):
                for container in containers or ():
                    if container.env:
                        container.env = [v for v in container.env if _kept(v.name)]
        return item

    def _whole(self, data: bytes | Raw) -> dict[str, Any]:
        item = _fallback.decode(data)
        meta = item.get("metadata")
        if not isinstance(meta, dict):
            item["metadata"] = meta = {}
        meta.pop("managedFields", None)
        return item


def metadata(item: Pruned | dict[str, Any]) -> Metadata:
    """Metadata of what :meth:`Pruner.prune` gave."""
    if isinstance(item, Pruned):
        return item.metadata
    meta = item["metadata"]
    name, namespace, uid, version = (str(meta.get(field) or "") for field in _IDENTITY)
    return Metadata(name, namespace, uid, version)


def items(data: bytes) -> tuple[list[Raw], str]:
    """Objects of a list as the server sent it, and the version it is of.

    Raises:
        msgspec.DecodeError: it is no list.
    """
    found = _list.decode(data)
    return found.items or [], found.metadata.resourceVersion


def _kept(name: str) -> bool:
    return name in ENV or name.startswith(ENV_PREFIXES)
