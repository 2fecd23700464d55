"""Arguments as documents: what a component is given, in the words of Basalt's documents, and the way back from a
place in a document to the argument that it comes from."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pulumi

from basalt.loading.files import SourceFile
from basalt.loading.marks import Mark
from basalt.pointers import Pointer, dotted

_KEY = "named"


def named(name: str) -> Mapping[str, str]:
    """The metadata of a field that the document calls so."""
    return {_KEY: name}


def document(value: Any, *, at: str = "args") -> Any:
    """The arguments as a document holds them: maps, lists and plain values. RunError for a value that only the engine
    will know: the rules must be judged before."""
    if isinstance(value, pulumi.Output | pulumi.Resource):
        raise pulumi.RunError(f"{at} is an Output, whose value is known too late for the rules; give a plain value")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key: document(inner, at=f"{at}.{field}") for field, key, inner in _fields(value) if inner is not None}
    if isinstance(value, Mapping):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise pulumi.RunError(f"{at} has the key {strange[0]!r}; keys are texts")
        return {key: document(inner, at=f"{at}[{key!r}]") for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [document(inner, at=f"{at}[{index}]") for index, inner in enumerate(value)]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise pulumi.RunError(f"{at} is {a_type(value)}; give texts, numbers, lists and maps")


def a_type(value: Any) -> str:
    """What a message calls a value of that type: a dict, nothing."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _fields(value: Any) -> Iterator[tuple[str, str, Any]]:
    """The name of each field, what the document calls it, and its value."""
    for field in dataclasses.fields(value):
        if _KEY in field.metadata:
            yield field.name, field.metadata[_KEY], getattr(value, field.name)


def argument(value: Any, pointer: Pointer) -> str:
    """The place in the arguments that the pointer into their document leads to: tiers[0].name_template."""
    if not pointer:
        return ""
    head, rest = pointer[0], pointer[1:]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field, key, inner in _fields(value):
            if key == head:
                return f".{field}{argument(inner, rest)}"
        return f".{dotted(pointer)}"
    step = f"[{head}]" if isinstance(head, int) else f'["{head}"]'
    try:
        return step + argument(value[head], rest)
    except (KeyError, IndexError, TypeError):
        return step


class Arguments(SourceFile):
    """The documents of one component in place of a file. A place in them is a line: they are counted in the order in
    which they are written."""

    def __init__(self, name: str, documents: Sequence[Any]) -> None:
        super().__init__(Path(name), name, b"")
        self.documents = documents
        self.places: dict[int, tuple[int, Pointer]] = {}  # line -> which document, and where in it

    @cached_property
    def _positions(self) -> list[dict[Pointer, Mark]]:
        found: list[dict[Pointer, Mark]] = []
        for index, each in enumerate(self.documents):
            marks = {}
            for pointer in _pointers(each, ()):
                line = len(self.places) + 1
                self.places[line] = index, pointer
                marks[pointer] = Mark(line, 1)
            found.append(marks)
        return found


def _pointers(value: Any, at: Pointer) -> Iterator[Pointer]:
    yield at
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _pointers(each, (*at, key))
