"""What the Kubernetes provider does to a cluster, by server-side apply with a manager's name of each object's own."""

import secrets
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from basalt.cluster.connection import Cluster, Refusal
from basalt.cluster.settling import has_condition
from basalt.findings import Ref
from basalt.gathering.documents import ref_of
from basalt.objects import mapping

Object = dict[str, Any]
_CREATOR = "pulumi-kubernetes"  # who the provider is where it does not apply but create
_PATIENCE = 600  # seconds, the provider's own
_TRIES = 5
_PAUSE = 0.1


class Live(NamedTuple):
    """The cluster, and whether what is there already is taken over, and fields of other managers."""

    cluster: Cluster
    upserts: bool
    forces: bool

    def serves(self, value: Object) -> bool:
        return self.cluster.resource(ref(value).api_version, ref(value).kind) is not None

    def create(self, value: Object, manager: str, *, is_preview: bool) -> Object:
        """The object as it then is. Refusal AlreadyExists where it is there and is not to be taken over."""
        for number in range(_TRIES):
            try:
                if self.upserts:
                    # In a preview the object to be replaced still has its fields.
                    return self._apply(value, manager, is_preview=is_preview, force=is_preview or self._forced(value))
                return self._post(value, is_preview=is_preview)
            except Refusal as refusal:
                # What it needs may just be coming: its definition, its namespace.
                if is_preview or refusal.status != 404 or number == _TRIES - 1:
                    raise
                self.cluster.forget_kinds()
                time.sleep(_PAUSE * 2**number)
        raise AssertionError

    def update(self, value: Object, manager: str, *, is_preview: bool) -> Object:
        """The object as it then is. Refusal where it is gone, where the API server does not change it so, or where
        other managers own what changes."""
        live = self.cluster.get(ref(value))
        if live is None:
            raise Refusal(404, "NotFound", f"{ref(value)} not found")
        is_created = any(each["manager"] == _CREATOR for each in _managed(live))
        if is_created and not is_preview:
            self._hand_over(live, manager)
        return self._apply(value, manager, is_preview=is_preview, force=self._forced(value) or is_created)

    def wait(self, value: Object, live: Object) -> Object:
        """The object when what its annotation pulumi.com/waitFor says has come about."""
        wanted = annotation(value, "waitFor")
        end = time.monotonic() + _PATIENCE
        while wanted and not _has_come(wanted, live):
            if time.monotonic() > end:
                raise Refusal(408, "Timeout", f"{ref(value)}: waited {_PATIENCE} s for {wanted}")
            time.sleep(_PAUSE)
            live = self.cluster.get(ref(value)) or {}
        return live

    def delete(self, found: Ref) -> None:
        """Deletes the object and what it owns, and returns when it is gone."""
        if (live := self.cluster.get(found)) is None:
            return
        path = f"{self.cluster.collection(found.api_version, found.kind, found.namespace)}/{found.name}"
        try:
            self.cluster.request("DELETE", path, None, {"propagationPolicy": "Foreground"})
        except Refusal as refusal:
            if refusal.status != 404:
                raise
        uid, end = live["metadata"]["uid"], time.monotonic() + _PATIENCE
        while (left := self.cluster.get(found)) and left["metadata"]["uid"] == uid:
            if time.monotonic() > end:
                raise Refusal(408, "Timeout", f"{found}: waited {_PATIENCE} s for its end")
            time.sleep(_PAUSE)

    def _forced(self, value: Object) -> bool:
        return self.forces or annotation(value, "patchForce") == "true"

    def _apply(self, value: Object, manager: str, *, is_preview: bool, force: bool) -> Object:
        query = {"fieldManager": manager, "force": str(force).lower(), **_dry(is_preview)}
        return self.cluster.request("PATCH", self._path(value), query, value, "application/apply-patch+yaml")

    def _post(self, value: Object, *, is_preview: bool) -> Object:
        path = self._path(value).rpartition("/")[0]
        return self.cluster.request("POST", path, {"fieldManager": _CREATOR, **_dry(is_preview)}, value)

    def _path(self, value: Object) -> str:
        found = ref(value)
        return f"{self.cluster.collection(found.api_version, found.kind, found.namespace or 'default')}/{found.name}"

    def _hand_over(self, live: Object, manager: str) -> None:
        """What was created is from now on applied: its fields go to the manager that applies."""
        ours = [each for each in _managed(live) if each["manager"] in (_CREATOR, manager)]
        fields: Object = {}
        for each in ours:
            fields = _union(fields, each["fieldsV1"])
        applied = {**ours[0], "manager": manager, "operation": "Apply", "fieldsV1": fields}
        kept = [each for each in live["metadata"]["managedFields"] if each not in ours]
        patch = [
            {"op": "replace", "path": "/metadata/managedFields", "value": [*kept, applied]},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
        ]
        self.cluster.request("PATCH", self._path(live), None, patch, "application/json-patch+json")


def ref(value: Object) -> Ref:
    found = ref_of(value)
    assert found is not None, value
    return found


def annotation(value: Object, name: str) -> str:
    """One of the provider's own annotations; "" where it is not there."""
    return str(mapping(mapping(value.get("metadata")).get("annotations")).get(f"pulumi.com/{name}", ""))


def new_manager(value: Object) -> str:
    """Who applies the object: of each a random name, which only the state knows."""
    return annotation(value, "patchFieldManager") or f"pulumi-kubernetes-{secrets.token_hex(4)}"


def _dry(is_preview: bool) -> dict[str, str]:
    return {"dryRun": "All"} if is_preview else {}


def _managed(live: Object) -> list[Object]:
    return [each for each in live["metadata"].get("managedFields", ()) if "subresource" not in each]


def _union(first: Object, second: Object) -> Object:
    return {key: _union(first.get(key, {}), second.get(key, {})) for key in {**first, **second}}


def _has_come(wanted: str, live: Mapping[str, Any]) -> bool:
    """condition=Ready, or jsonpath={.status.state}=Open"""
    what, _, rest = wanted.partition("=")
    if what == "condition":
        return has_condition(live, rest)
    path, _, value = rest.partition("=")
    found: Any = live
    for part in path.strip("{}").strip(".").split("."):
        found = mapping(found).get(part)
    return found is not None and (not value or str(found) == value)
