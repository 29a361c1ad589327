"""A site of fakes: objects in memory, nodes that note their commands."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from chaos.site import Site
from clusters.cluster import Capability, Cluster
from clusters.errors import ApiError, CommandError, WaitTimeout
from clusters.kube import ExecResult, Object, Resource
from clusters.topology import load

MINE = frozenset(Capability) - {Capability.LOCAL_PROCESSES, Capability.DEVICE_PLUGIN}
THEIRS = frozenset({Capability.CONTAINERS, Capability.NODE_POWER})


class Kube:
    """Objects by kind, namespace and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.calls: list[str] = []
        self.on_call: Callable[[str], None] = lambda call: None
        self.commands: list[list[str]] = []
        self.answers: list[ExecResult] = []

    def put(self, what: Resource, item: Object, namespace: str = "") -> Object:
        meta = item.setdefault("metadata", {})
        meta.setdefault("uid", f"uid-{len(self.objects)}")
        if namespace:
            meta["namespace"] = namespace
        item.setdefault("spec", {})
        item.setdefault("status", {})
        self.objects[(what.plural, namespace, meta["name"])] = item
        return item

    def ready(self) -> bool:
        return True

    def _said(self, text: str) -> None:
        self.calls.append(text)
        self.on_call(text)

    def get(self, what: Resource, name: str, namespace: str | None = None) -> Object | None:
        found = self.objects.get((what.plural, namespace or "", name))
        return copy.deepcopy(found) if found is not None else None

    def find(
        self, what: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        wanted = [part.partition("=") for part in labels.split(",") if part]
        chosen = [part.partition("=") for part in fields.split(",") if part]

        def fits(item: Object) -> bool:
            has = item["metadata"].get("labels") or {}
            for key, sign, value in wanted:
                if key not in has or (sign and has[key] != value):
                    return False
            for key, _, value in chosen:
                at: Any = item
                for part in key.split("."):
                    at = (at or {}).get(part)
                if str(at) != value:
                    return False
            return True

        return [
            copy.deepcopy(item)
            for (plural, ns, _), item in self.objects.items()
            if plural == what.plural and namespace in (None, ns) and fits(item)
        ]

    def wait(self, what: Resource, until: Any, **more: Any) -> Any:
        why = more.pop("why")
        deadline = more.pop("deadline")
        answer = until(self.find(what, **more))
        if answer is None:
            raise WaitTimeout(f"{why}: not within {deadline:.0f} s")
        return answer

    def patch(
        self, what: Resource, name: str, body: Any, namespace: str | None = None, *,
        subresource: str = "",
    ) -> Object:  # fmt: skip
        self._said(f"patch {what.plural}/{name} {subresource} {body}".replace("  ", " "))
        key = (what.plural, namespace or "", name)
        if key not in self.objects:
            raise ApiError(f"no {name}", status=404)
        if isinstance(body, dict):
            _merge(self.objects[key], body)
        return copy.deepcopy(self.objects[key])

    def delete(
        self, what: Resource, name: str, namespace: str | None = None, *, grace: int | None = None
    ) -> bool:
        self._said(f"delete {what.plural}/{name} {grace}")
        return self.objects.pop((what.plural, namespace or "", name), None) is not None

    def exec(self, namespace: str, pod: str, command: list[str], **more: Any) -> ExecResult:
        self.commands.append(command)
        return self.answers.pop(0) if self.answers else ExecResult(0, "", "")


def _merge(item: Object, body: Object) -> None:
    for key, value in body.items():
        if value is None:
            item.pop(key, None)
        elif isinstance(value, dict) and isinstance(item.get(key), dict):
            _merge(item[key], value)
        else:
            item[key] = copy.deepcopy(value)


class Provider:
    """Nodes that note their commands; ``scripts`` answers them by a word in the script."""

    name = "kind"
    capabilities = MINE

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.scripts: dict[str, str | Exception] = {}
        self.off: set[str] = set()

    def node_exec(
        self, cluster: Cluster, node: str, command: list[str], *, timeout: float = 30.0
    ) -> str:
        if node in self.off:
            raise CommandError(f"{node} is not running")
        script = command[-1]
        if script != "true":
            self.calls.append(f"{node}: {script}")
        for word, answer in self.scripts.items():
            if word in script:
                if isinstance(answer, Exception):
                    raise answer
                return answer
        return ""

    def stop_node(self, cluster: Cluster, node: str) -> None:
        self.calls.append(f"stop {node}")
        self.off.add(node)

    def start_node(self, cluster: Cluster, node: str) -> None:
        self.calls.append(f"start {node}")
        self.off.discard(node)

    def restart_kubelet(self, cluster: Cluster, node: str) -> None:
        self.calls.append(f"kubelet {node}")

    def names(self) -> list[str]:
        return ["mine"]


class FakeCluster(Cluster):
    """A cluster whose API is in memory."""

    @property
    def kube(self) -> Any:  # type: ignore[override]
        return self.__dict__["_kube"]


class Place:
    """A site with its fakes at hand."""

    def __init__(
        self, folder: Path, *, name: str = "mine", run: str = "run-1",
        capabilities: Iterable[Capability] = MINE, provider: str = "kind",
    ) -> None:  # fmt: skip
        self.kube = Kube()
        self.provider = Provider()
        cluster = FakeCluster(
            name=name, provider=provider, kubernetes="1.34.4", topology=load("small"),
            kubeconfig=folder / "kubeconfig", context="x", run=run,
            capabilities=frozenset(capabilities), shared=folder / "shared",
        )  # fmt: skip
        cluster.__dict__["_kube"] = self.kube
        self.site = Site(cluster, self.provider)  # type: ignore[arg-type]
