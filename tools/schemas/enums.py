"""The enums of Kubernetes' built-in kinds. The published OpenAPI files leave them out; the generated Go code that they
are made from has them."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

CODE = "pkg/generated/openapi/zz_generated.openapi.go"

_BODY = re.compile(r"^func (schema_\w+)\(")
_PROPERTY = re.compile(r'^\t{5}"([^"]+)": \{$')
_ENUM = re.compile(r"^(\t+)Enum: +\[\]interface\{\}\{(.*)\},$")
_OWN_DEPTH = 7  # tabs before an Enum of the property itself; deeper ones are its items'


class Enum(NamedTuple):
    """The values that a property takes, or the items of the list that it is; function makes its definition."""

    function: str
    property: str
    is_items: bool
    values: tuple[str, ...]


def read(code: str) -> Iterator[Enum]:
    """The enums in the text of zz_generated.openapi.go."""
    function = found = ""
    for line in code.split("\n"):
        if body := _BODY.match(line):
            function, found = body[1], ""
        elif declared := _PROPERTY.match(line):
            found = declared[1]
        elif (enum := _ENUM.match(line)) and found:
            values = tuple(re.findall(r'"([^"]*)"', enum[2]))
            yield Enum(function, found, len(enum[1]) > _OWN_DEPTH, values)


def _function(definition: str) -> str:
    """The function that makes a definition: schema_k8sio_api_core_v1_Container for io.k8s.api.core.v1.Container."""
    return "schema_k8sio_" + definition.removeprefix("io.k8s.").replace(".", "_")


def add(definitions: dict[str, Any], enums: Iterable[Enum]) -> None:
    """Writes the enums into the definitions. An empty text is taken everywhere: the API server reads it as absent."""
    by_function = {_function(name): definition for name, definition in definitions.items()}
    for enum in enums:
        declared = by_function.get(enum.function, {}).get("properties", {}).get(enum.property)
        if declared is not None:
            target = declared["items"] if enum.is_items and "items" in declared else declared
            if target.get("type") == "string":
                target["enum"] = sorted({"", *enum.values})
