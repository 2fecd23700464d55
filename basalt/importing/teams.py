"""Namespaces that carry a team's label to the Team that might make them, with what lies in them. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from basalt.importing.entries import queue
from basalt.objects import POD_SECURITY, KubeObject, mapping, sequence
from basalt.pointers import get
from basalt.quantities import is_extended
from modules.tenancy import LEVELS, ROLE_PREFIX, TEAM_LABEL

_LISTED = re.compile(r" in (\[.*\])$")
Spec = dict[str, Any]


def teams(objects: Iterable[KubeObject]) -> dict[str, Spec]:
    """The specs of the Teams, by name."""
    found = {(each.ref.kind, each.ref.namespace, each.name): each.value for each in objects}
    specs: dict[str, Spec] = {}
    for (kind, _, name), value in found.items():
        team = mapping(mapping(value.get("metadata")).get("labels")).get(TEAM_LABEL)
        if kind == "Namespace" and isinstance(team, str):
            spec = specs.setdefault(team, {"access": {}, "namespaces": {}})
            spec["access"] |= _access(found, name)
            spec["namespaces"][name] = _namespace(found, name, value)
    return {team: _whole(found, team, spec) for team, spec in specs.items()}


_Objects = Mapping[tuple[str, str | None, str], Mapping[str, Any]]


def _whole(found: _Objects, team: str, spec: Spec) -> Spec:
    if ("Queue", None, team) in found:
        spec["queue"] = queue(found["Queue", None, team])
    if priorities := _priorities(found.get(("ValidatingAdmissionPolicy", None, f"{ROLE_PREFIX}{team}-priority"), {})):
        spec["priorities"] = priorities
    return {key: part for key, part in spec.items() if part or key == "queue"}


def _access(found: _Objects, namespace: str) -> Spec:
    access: Spec = {}
    for level in LEVELS:
        subjects = sequence(found.get(("RoleBinding", namespace, ROLE_PREFIX + level), {}).get("subjects"))
        if subjects:
            access[level] = [mapping(each).get("name") for each in subjects]
    return access


def _namespace(found: _Objects, name: str, value: Mapping[str, Any]) -> Spec:
    spec: Spec = {}
    hard = mapping(get(found.get(("ResourceQuota", name, "quota")), ("spec", "hard")))
    if hard:
        spec["quota"] = {_resource(key): amount for key, amount in hard.items()}
    limits = [mapping(each) for each in sequence(get(found.get(("LimitRange", name, "defaults")), ("spec", "limits")))]
    if limits and limits[0].get("default"):
        spec["defaults"] = limits[0]["default"]
    security = get(value, ("metadata", "labels", POD_SECURITY))
    if security not in (None, "baseline"):
        spec["security"] = security
    if ("NetworkPolicy", name, "default-deny") not in found:
        spec["network"] = "open"
    return spec


def _resource(key: str) -> str:
    resource = key.removeprefix("requests.")
    return resource if is_extended(resource) else key


def _priorities(policy: Mapping[str, Any]) -> list[str]:
    """The classes that the team's admission policy lets through."""
    rules = sequence(get(policy, ("spec", "validations")))
    listed = _LISTED.search(str(mapping(rules[0]).get("expression"))) if rules else None
    try:
        return [str(each) for each in json.loads(listed[1])] if listed else []
    except ValueError:
        return []
