"""Objects of an API server: read, made, changed, deleted; plain dicts in, plain dicts out."""

from __future__ import annotations

from pathlib import Path

from clusters.apiserver import MANAGER, ApiServer
from clusters.errors import ApiError, NotServed
from clusters.resources import Object, Resource


class Objects(ApiServer):
    """An API server's objects, one request each. Threads may share it."""

    def __init__(self, kubeconfig: Path, context: str | None = None) -> None:
        super().__init__(kubeconfig, context)
        self._resources: dict[tuple[str, str], Resource] = {}

    def resource(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind, by discovery (cached). Raises NotServed, an ApiError."""
        known = self._resources.get((api_version, kind))
        if known is None:
            base = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
            for item in self._served(base):
                if "/" not in item["name"]:
                    found = Resource(api_version, item["name"], item["kind"], item["namespaced"])
                    self._resources[(api_version, item["kind"])] = found
            known = self._resources.get((api_version, kind))
        if known is None:
            raise NotServed(f"{self.host} does not serve {kind} in {api_version}", kind=kind)
        return known

    def _served(self, base: str) -> list[Object]:
        """The kinds of a version of a group; none of one that is not served."""
        try:
            found: list[Object] = self.request("GET", base)["resources"]
        except ApiError as error:
            if error.status == 404:
                return []
            raise
        return found

    def get(self, what: Resource, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None when there is none."""
        try:
            answer: Object = self.request("GET", what.path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return answer

    def find(
        self, what: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        """All objects of a kind, in one namespace or in all, that match the selectors."""
        return self.list_with_version(what, namespace, labels=labels, fields=fields)[0]

    def list_with_version(
        self, what: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> tuple[list[Object], str]:
        """As :meth:`find`, with the resource version that a watch goes on from."""
        answer = self.request("GET", what.path(namespace), query=selectors(labels, fields))
        items = answer["items"]
        for item in items:  # a list leaves these out, a watch does not
            item.setdefault("apiVersion", what.api_version)
            item.setdefault("kind", what.kind)
        return items, answer["metadata"]["resourceVersion"]

    def create(self, manifest: Object, *, namespace: str | None = None) -> Object:
        """Create an object; what the server made of it."""
        what = self.resource(manifest["apiVersion"], manifest["kind"])
        namespace = manifest["metadata"].get("namespace") or namespace
        answer: Object = self.request("POST", what.path(namespace), body=manifest)
        return answer

    def apply(self, *manifests: Object, namespace: str | None = None) -> list[Object]:
        """Server-side apply, in the given order; what the server made of each.

        An object's own namespace wins over *namespace*.
        """
        done = []
        for manifest in manifests:
            what = self.resource(manifest["apiVersion"], manifest["kind"])
            target = manifest["metadata"].get("namespace") or namespace
            done.append(
                self.request(
                    "PATCH",
                    what.path(target, manifest["metadata"]["name"]),
                    body=manifest,
                    query={"fieldManager": MANAGER, "force": "true"},
                    content_type="application/apply-patch+yaml",
                    # a definition of half a megabyte, on a host that is busy with builds
                    timeout=120.0,
                )
            )
        return done

    def patch(
        self,
        what: Resource,
        name: str,
        body: object,
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> Object:
        """Change an object: a dict is a merge patch, a list a JSON patch."""
        path = what.path(namespace, name) + (f"/{subresource}" if subresource else "")
        kind = "json-patch" if isinstance(body, list) else "merge-patch"
        answer: Object = self.request(
            "PATCH", path, body=body, content_type=f"application/{kind}+json"
        )
        return answer

    def delete(
        self,
        what: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace: int | None = None,
    ) -> bool:
        """Delete an object; False when there was none. *grace*: seconds, 0 kills at once."""
        body: Object = {"propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self.request("DELETE", what.path(namespace, name), body=body)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True


def selectors(labels: str, fields: str) -> dict[str, object]:
    """What a request's query says of label and field selectors; "" for none."""
    query: dict[str, object] = {}
    if labels:
        query["labelSelector"] = labels
    if fields:
        query["fieldSelector"] = fields
    return query
