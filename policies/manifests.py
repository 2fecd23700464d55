"""From what a Pulumi program registered to Kubernetes objects, without what the API server wrote into them. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from basalt.objects import RELEASE, mapping
from policies import unknowns

_PACKAGE = "kubernetes"
# Components, whose objects are resources of their own; and resources that are no objects.
_NO_OBJECTS = ("yaml", "kustomize", "helm.sh/")
_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_CHART = ("chart", "version", "repositoryOpts", "values")
_OCI = "oci://"
# How Pulumi writes the groups of Kubernetes that have a dot, and the one that has no name.
_GROUPS = {
    "core": "",
    "admissionregistration": "admissionregistration.k8s.io",
    "apiextensions": "apiextensions.k8s.io",
    "apiregistration": "apiregistration.k8s.io",
    "auditregistration": "auditregistration.k8s.io",
    "certificates": "certificates.k8s.io",
    "coordination": "coordination.k8s.io",
    "discovery": "discovery.k8s.io",
    "events": "events.k8s.io",
    "flowcontrol": "flowcontrol.apiserver.k8s.io",
    "networking": "networking.k8s.io",
    "node": "node.k8s.io",
    "rbac": "rbac.authorization.k8s.io",
    "resource": "resource.k8s.io",
    "scheduling": "scheduling.k8s.io",
    "storage": "storage.k8s.io",
    "storagemigration": "storagemigration.k8s.io",
}


class Resource(NamedTuple):
    """One resource of a stack; props as plain values."""

    urn: str
    type: str
    name: str
    props: Mapping[str, Any]


def manifest(resource: Resource) -> dict[str, Any] | None:
    """The object that the resource is; None for one that is none, or only a patch of one."""
    package, _, rest = resource.type.partition(":")
    group_version, _, kind = rest.rpartition(":")
    is_release = (group_version, kind) == RELEASE
    if package != _PACKAGE or not group_version or (group_version.startswith(_NO_OBJECTS) and not is_release):
        return None
    value = {key: _plain(each) for key, each in resource.props.items() if not key.startswith("__")}
    if is_release:
        return _release(value)
    if kind.endswith("Patch"):
        return None
    value = {"apiVersion": _api_version(group_version), "kind": kind, **_told(value)}
    value.pop("status", None)
    if isinstance(metadata := value.get("metadata"), dict):
        value["metadata"] = {key: each for key, each in metadata.items() if key not in _OF_THE_SERVER}
    return value


def _told(value: Mapping[str, Any]) -> dict[str, Any]:
    """Without an identity that is not known, since the type tells it."""
    typed = ("apiVersion", "kind")
    known = {key for key in typed if isinstance(value.get(key), str) and value[key] not in unknowns.SENTINELS}
    return {key: each for key, each in value.items() if key not in typed or key in known}


def _api_version(group_version: str) -> str:
    group, _, version = group_version.rpartition("/")
    group = _GROUPS.get(group, group)
    return f"{group}/{version}" if group else version


def _release(props: Mapping[str, Any]) -> dict[str, Any]:
    """A release as Basalt has it: the arguments that say what is installed, beside an identity."""
    spec = {key: props[key] for key in _CHART if props.get(key) is not None}
    chart = spec.get("chart")
    if isinstance(chart, str) and chart.startswith(_OCI):
        repository, _, spec["chart"] = chart.rpartition("/")
        spec["repositoryOpts"] = {**mapping(spec.get("repositoryOpts")), "repo": repository}
    metadata = {key: props[key] for key in ("name", "namespace") if props.get(key) is not None}
    return {"apiVersion": RELEASE[0], "kind": RELEASE[1], "metadata": metadata, "spec": spec}


def _plain(value: Any) -> Any:
    """Without what protocol buffers make of values: they know no whole numbers, and a null is nothing."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
