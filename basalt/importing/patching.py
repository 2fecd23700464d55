"""The rest that a TrainingJob has no field for, as its patch, where that is small. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from basalt import deriving
from basalt.importing.proposal import JobKey, Proposal, Wanted, declared, form_faults, identity
from basalt.objects import mapping
from basalt.plan.stored import stored

_MOST = 12  # single values
_SERVERS = ("status", "managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink")


def patched(
    proposal: Proposal, jobs: Mapping[JobKey, Mapping[str, Any]], wanted: Wanted
) -> dict[JobKey, dict[str, Any]]:
    """The jobs with a patch that makes up the difference; those for which it would be large, or would write the tasks
    anew, are left out."""
    sound = {key: each for key, each in jobs.items() if not form_faults(each)}
    found: dict[JobKey, dict[str, Any]] = {}
    values = [*replace(proposal, jobs=sound).values()]
    declarations = tuple(map(declared, values))
    for each in deriving.derive(declarations[0], declarations, tuple):
        there = wanted.objects.get(identity(each.ref))
        key = (each.ref.namespace or "default", each.name)
        if each.module != "jobs" or there is None or key not in sound:
            continue
        patch = difference(stored(each.value, each.ref), stored(there.value, there.ref))
        if isinstance(patch, dict) and _is_small(patch):
            spec = sound[key]["spec"]
            found[key] = {**sound[key], "spec": {**spec, "patch": patch}}
    return found


def difference(before: Any, after: Any) -> Any:
    """The JSON Merge Patch from one value to the other; what servers write themselves is left out."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return after
    patch: dict[str, Any] = {}
    for key in (*before, *(key for key in after if key not in before)):
        old, new = before.get(key), after.get(key)
        if old == new or key in _SERVERS:
            continue
        patch[key] = None if new is None else difference(old, new)
    return patch


def _is_small(patch: Mapping[str, Any]) -> bool:
    template = mapping(mapping(mapping(patch.get("spec")).get("jobTemplate")).get("spec"))
    if "tasks" in mapping(patch.get("spec")) or "tasks" in template or "apiVersion" in patch:
        return False
    return _count(patch) <= _MOST


def _count(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(_count(each) for each in value.values()) or 1
    return sum(_count(each) for each in value) or 1 if isinstance(value, list) else 1
