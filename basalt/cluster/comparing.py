"""What differs between two states of an object, and who owns its fields. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.objects import mapping, sequence
from basalt.pointers import Pointer

# What the API server writes itself, and what only controllers write.
_SERVERS = {"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"}


_NOBODY = "before-first-apply"  # what an object had before anybody's fields were written down


class Change(NamedTuple):
    """One value that differs; None stands for one that is not there."""

    pointer: Pointer
    before: Any
    after: Any


class Owned(NamedTuple):
    """A field and the manager that server-side apply remembers for it."""

    pointer: Pointer
    manager: str

    def touches(self, pointer: Pointer) -> bool:
        """Whether the value there is the field, in it, or around it."""
        return all(one == other for one, other in zip(self.pointer, pointer, strict=False))


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs, down to single values, but for the status and what the API server keeps for itself."""
    return [each for each in _differences(before, after, ()) if not _is_servers(each.pointer)]


def _is_servers(pointer: Pointer) -> bool:
    return pointer[0] == "status" or (pointer[0] == "metadata" and len(pointer) > 1 and pointer[1] in _SERVERS)


def _differences(before: Any, after: Any, at: Pointer) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _differences(before.get(key), after.get(key), (*at, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, (*at, index))
    elif before != after:
        yield Change(at, before, after)


def is_managed(live: Mapping[str, Any], manager: str) -> bool:
    """Whether the manager has applied the object before."""
    return any(each.get("manager") == manager and each.get("operation") == "Apply" for each in _entries(live))


def strangers(live: Mapping[str, Any], manager: str) -> list[Owned]:
    """The fields that others own and the manager does not."""
    own = {each.pointer for each in _owned(live, None) if each.manager == manager}
    found = {each for each in _owned(live, manager) if each.pointer not in own}
    return sorted(found, key=lambda each: (tuple(map(str, each.pointer)), each.manager))


def _owned(live: Mapping[str, Any], but: str | None) -> Iterator[Owned]:
    for entry in _entries(live):
        manager = entry.get("manager")
        if entry.get("subresource") != "status" and manager not in (but, _NOBODY):
            for pointer in _leaves(mapping(entry.get("fieldsV1")), live, ()):
                yield Owned(pointer, str(manager))


def _entries(live: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return sequence(mapping(live.get("metadata")).get("managedFields"))


def _leaves(fields: Mapping[str, Any], value: Any, at: Pointer) -> Iterator[Pointer]:
    """The pointers to the values that a FieldsV1 names the last of: "f:name" is a field, 'k:{"name":"a"}' the item of a
    list with these values, 'v:"a"' an item that is that value, "." the value itself."""
    inner = [key for key in fields if key != "."]
    if not inner and at:
        yield at
    for key in inner:
        kind, _, text = key.partition(":")
        step: str | int | None = text if kind == "f" else _index(kind, json.loads(text), value)
        if step is not None:
            below = mapping(value).get(text) if kind == "f" else value[step]
            yield from _leaves(mapping(fields[key]), below, (*at, step))


def _index(kind: str, wanted: Any, value: Any) -> int | None:
    """Where the item stands in the list; None where it is gone."""
    for index, item in enumerate(sequence(value)):
        if item == wanted or (kind == "k" and all(mapping(item).get(key) == wanted[key] for key in wanted)):
            return index
    return None
