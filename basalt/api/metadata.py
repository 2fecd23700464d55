"""What the metadata of an object breaks of Kubernetes' rules for labels and annotations.

Source: ValidateObjectMeta in k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from basalt import names
from basalt.api.schemas import show
from basalt.findings import Place, Problem
from basalt.objects import mapping
from basalt.pointers import Pointer

Check = Callable[[str], str | None]  # of basalt.names: why a text is not a name, else None


def wrong_name(place: Place, pointer: Pointer, text: str, check: Check) -> Iterator[Problem]:
    """What the check of basalt.names says of the text at the pointer, with the nearest one that it takes as a hint."""
    if fault := check(text):
        yield Problem(place, pointer, _words(text, fault, "a name"), _nearest(text.lower(), check, "[^-a-z0-9.]"))


def _words(text: str, fault: str, what: str) -> str:
    """A fault as a message: what is wrong with this text, or what any text of its sort takes."""
    return f"{show(text)} {fault}" if fault.startswith(("has ", "is ")) else f"{show(text)}: {what} {fault}"


def _nearest(text: str, check: Check, others: str) -> str:
    near = re.sub(f"{others}+", "-", text).strip("-._")
    near = near if check(near) is None else near.replace(".", "-")
    return f"for example {near}" if near and check(near) is None else ""


def faults(place: Place, value: Mapping[str, Any], pointer: Pointer = ()) -> Iterator[Problem]:
    """Of the labels and annotations of the value, which stands at the pointer."""
    metadata, at = mapping(value.get("metadata")), (*pointer, "metadata")
    yield from labels(place, metadata.get("labels"), (*at, "labels"))
    for key in mapping(metadata.get("annotations")):
        if fault := names.qualified_fault(key.lower()):
            yield Problem(place, (*at, "annotations", key), f"the key {show(key)}: {fault}")


def labels(place: Place, found: Any, pointer: Pointer) -> Iterator[Problem]:
    """Of a map from label key to value: a nodeSelector is one too."""
    for key, text in mapping(found).items():
        if fault := names.qualified_fault(key):
            yield Problem(place, (*pointer, key), f"the key {show(key)}: {fault}")
        elif isinstance(text, str) and (fault := names.label_value_fault(text)):
            hint = _nearest(text, names.label_value_fault, "[^-A-Za-z0-9_.]")
            yield Problem(place, (*pointer, key), _words(text, fault, "a value"), hint)
