"""Queues, PriorityClasses and the scheduler's configuration to entries of an Environment that might make them. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from basalt.api.versions import Version
from basalt.loading import yaml_text
from basalt.loading.limits import Fault
from basalt.objects import KubeObject, mapping
from basalt.pointers import get
from modules import scheduler

_AMOUNTS = ("capability", "deserved")
_ARGO_CD = {"namespace": "argocd", "project": "default"}
_PLAIN = ("priority", "dequeueStrategy")
Entry = dict[str, Any]


def queue(value: Mapping[str, Any]) -> Entry:
    """The entry of a Queue; what is the default anyway is left out."""
    spec = mapping(value.get("spec"))
    found: Entry = {}
    if spec.get("parent") not in (None, "", "root"):
        found["parent"] = spec["parent"]
    found |= {field: spec[field] for field in _AMOUNTS if spec.get(field)}
    if guarantee := get(spec, ("guarantee", "resource")):
        found["guarantee"] = guarantee
    if spec.get("weight") not in (None, 1):
        found["weight"] = spec["weight"]
    if spec.get("reclaimable") is False:
        found["reclaimable"] = False
    return found | {field: spec[field] for field in _PLAIN if spec.get(field) is not None}


def priority(value: Mapping[str, Any]) -> Entry:
    found: Entry = {"value": value.get("value")}
    if value.get("globalDefault"):
        found["default"] = True
    if value.get("preemptionPolicy") not in (None, "PreemptLowerPriority"):
        found["preemption"] = value["preemptionPolicy"]
    return found | ({"description": value["description"]} if value.get("description") is not None else {})


def scheduler_configuration(text: Any, version: Version) -> Entry | None:
    """The typed form of volcano-scheduler.conf; empty where it is Basalt's own default, None where the text is none."""
    try:
        parsed = next(yaml_text.documents(text), None) if isinstance(text, str) else None
    except Fault:
        return None
    if parsed is None or not isinstance(parsed.value, Mapping):
        return None
    actions = [each.strip() for each in str(parsed.value.get("actions", "")).split(",")]
    found = {**parsed.value, "actions": actions}
    default = scheduler.default_configuration(version)
    return {key: part for key, part in found.items() if part != default.get(key)}


def deliveries(objects: Iterable[KubeObject]) -> Iterator[tuple[Entry, str, Any]]:
    """Who might install Volcano's chart, at which version, and the scheduler's configuration in its values."""
    for each in objects:
        if (each.ref.group, each.ref.kind) == ("argoproj.io", "Application"):
            where = {"namespace": each.ref.namespace, "project": each.spec.get("project")}
            own = {key: text for key, text in where.items() if text not in (None, _ARGO_CD[key])}
            values = get(each.spec, ("source", "helm", "valuesObject", "custom", scheduler.OVERRIDE))
            version = get(each.spec, ("source", "targetRevision"))
            if values is not None:
                yield {"engine": "argocd", **({"argocd": own} if own else {})}, str(version), values
        elif (each.ref.group, each.ref.kind) == ("helm.toolkit.fluxcd.io", "HelmRelease"):
            own = {"namespace": each.ref.namespace} if each.ref.namespace not in (None, "flux-system") else {}
            values = get(each.spec, ("values", "custom", scheduler.OVERRIDE))
            version = get(each.spec, ("chart", "spec", "version"))
            if values is not None:
                yield {"engine": "flux", **({"flux": own} if own else {})}, str(version), values
