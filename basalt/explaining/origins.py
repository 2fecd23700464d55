"""Where an object, or one field of it, came from."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from basalt import names, pointers
from basalt.api.schemas import show
from basalt.findings import Ref, Source
from basalt.index import Index
from basalt.loading.sources import Misuse
from basalt.objects import KubeObject
from basalt.pointers import Pointer
from basalt.reporting import json_format
from basalt.views import sensitive

_HIDDEN = "***"


class Explained(NamedTuple):
    """An object and, for each value asked for, where it was written; by is the module that made the object."""

    ref: Ref
    by: str | None
    fields: tuple[
        tuple[Pointer, Any, Source, bool], ...
    ]  # pointer, value, place, whether the value itself stands there

    def as_json(self) -> dict[str, Any]:
        return {
            "object": json_format.ref(self.ref),
            "module": self.by,
            "fields": [
                {"pointer": pointers.render(pointer), "value": value, "source": source._asdict(), "written": is_written}
                for pointer, value, source, is_written in self.fields
            ],
        }


def explain(index: Index, wanted: str, pointer: str = "") -> Explained:
    """The object that KIND/[NAMESPACE/]NAME names, and the value at the pointer; every field where it is empty."""
    declared = _find(index, wanted)
    try:
        parts = pointers.parse(pointer)
    except ValueError as error:
        raise Misuse(str(error)) from None
    at = pointers.resolve(declared.value, parts)
    if at is None:
        raise Misuse(f"{declared.ref} has nothing at {pointer}; {_children(declared, parts)}")
    chosen = [at] if at else [(), *_leaves(declared.value, ())]
    return Explained(declared.ref, declared.module, tuple(_field(declared, each) for each in chosen))


def _find(index: Index, wanted: str) -> KubeObject:
    kind, *rest = wanted.split("/")
    found = [each for each in index.objects if _is_kind(each, kind) and _is_named(each, rest)]
    if len(found) == 1:
        return found[0]
    if found:
        choices = ", ".join(_qualified(each) for each in found[:6])
        raise Misuse(f"{wanted} names {len(found)} objects: {choices}")
    of_kind = [each for each in index.objects if _is_kind(each, kind)]
    same = {f"{kind}/{each.name}" if len(rest) == 1 else f"{kind}/{each.ref.namespace}/{each.name}" for each in of_kind}
    candidates = same or {each.ref.kind for each in index.objects}
    raise Misuse(f"no object {wanted}; {names.did_you_mean(wanted if same else kind, candidates)}".rstrip("; "))


def _qualified(declared: KubeObject) -> str:
    ref = declared.ref
    kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
    return "/".join(part for part in (kind, ref.namespace, ref.name) if part)


def _is_kind(declared: KubeObject, wanted: str) -> bool:
    kind, _, group = wanted.casefold().partition(".")
    return kind == declared.ref.kind.casefold() and group in ("", declared.ref.group)


def _is_named(declared: KubeObject, rest: list[str]) -> bool:
    return rest in ([declared.name], [declared.ref.namespace, declared.name])


def _field(declared: KubeObject, pointer: Pointer) -> tuple[Pointer, Any, Source, bool]:
    value = pointers.get(declared.value, pointer)
    if isinstance(value, dict | list):
        value = None  # its parts are fields of their own
    elif sensitive.is_at(declared.value, pointer) or (isinstance(value, str) and sensitive.kind_of(value)):
        value = _HIDDEN
    elif isinstance(around := pointers.get(declared.value, pointer[:-1]), list):
        value = _HIDDEN if any(each.pointer == pointer[-1:] for each in sensitive.literals(around)) else value
    elif isinstance(value, str) and "\n" in value:
        value = "\n".join(_HIDDEN if sensitive.is_in_line(line) else line for line in value.split("\n"))
    written = getattr(declared.written, "value", None)
    return pointer, value, declared.position(pointer), pointers.has(written, declared.origin(pointer))


def _leaves(value: Any, pointer: Pointer) -> Iterator[Pointer]:
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from _leaves(child, (*pointer, key))
    elif isinstance(value, list) and value:
        for index, child in enumerate(value):
            yield from _leaves(child, (*pointer, index))
    else:
        yield pointer


def _children(declared: KubeObject, parts: tuple[str, ...]) -> str:
    """The hint for a pointer that leads nowhere: what there is at the last step that does."""
    for length in range(len(parts) - 1, -1, -1):
        at = pointers.resolve(declared.value, parts[:length])
        value = pointers.get(declared.value, at) if at is not None else None
        if isinstance(value, dict):
            known = {pointers.render((*(at or ()), key)) for key in value}
            return names.did_you_mean(pointers.render(parts[: length + 1]), known)
        if isinstance(value, list):
            return f"{pointers.render(at or ())} has {len(value)} items, counted from 0"
    return ""


def text(found: Explained) -> str:
    by = f"made by the module {found.by}" if found.by else "a raw manifest"
    lines = [f"{found.ref} ({found.ref.api_version}), {by}"]
    shown = [
        (pointers.render(pointer) or "(the object)", value, source, own) for pointer, value, source, own in found.fields
    ]
    width = max(len(pointer) for pointer, *_ in shown)
    for pointer, value, source, is_written in shown:
        what = "" if value is None else f" = {show(value)}"
        why = "" if is_written else "  (set by Basalt; follows from there)"
        lines.append(f"  {pointer:{width}}  {source}{what}{why}")
    return "\n".join(lines) + "\n"
