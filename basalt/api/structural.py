"""Strict JSON Schemas (draft 2020-12) out of the OpenAPI schemas of Kubernetes and of CRDs, where quantities stand in
them, and which nulls an API server drops. Never reads a file, never words a finding.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from basalt.pointers import Pointer

Schema = dict[str, Any]
Definitions = Mapping[str, Schema]
_Found = tuple[Pointer, str | None, Any]
Trie = dict[str, Any]  # property name, or "*" for map values and list items -> Trie, or True at a quantity

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_REF: Final = "#/definitions/"
_QUANTITY_NAME: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_QUANTITY_PATTERN: Final = "([KMGTPE]i)|[numkMGTPE]|"  # part of what controller-gen writes for resource.Quantity
_QUANTITY: Final = {"type": ["string", "number"], "x-quantity": True}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_INT32: Final = {"minimum": -(2**31), "maximum": 2**31 - 1}
_TYPES: Final = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_TYPE_META: Final = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_NUMBER: Final = (int, float)
_KEPT: Final[Mapping[str, tuple[type, ...]]] = {
    "default": (str, int, float, bool),
    "enum": (list,),
    "maxItems": (int,),
    "maxLength": (int,),
    "maxProperties": (int,),
    "maximum": _NUMBER,
    "minItems": (int,),
    "minLength": (int,),
    "minProperties": (int,),
    "minimum": _NUMBER,
    "multipleOf": _NUMBER,
    "pattern": (str,),
    "required": (list,),
    "uniqueItems": (bool,),
    "x-kubernetes-validations": (list,),
}


def strict_definitions(definitions: Mapping[str, Any]) -> dict[str, Schema]:
    """The definitions of an OpenAPI v2 document, strict: an object that lists its properties takes no others."""
    strict = {name: _strict(schema) for name, schema in definitions.items()}
    return strict | {name: dict(_QUANTITY) for name in (_QUANTITY_NAME,) if name in strict}


def strict_crd(schema: Mapping[str, Any], definitions: Definitions | None = None) -> Schema:
    """A CRD's openAPIV3Schema, strict and complete: `definitions` of the result holds what its $refs name.

    Metadata is judged as the ObjectMeta of the given Kubernetes definitions; without them it is any map. A template's
    metadata whose fields the CRD lists stays as listed, because the API server prunes the others.
    """
    strict = _with_object_fields(_strict(schema), schema)
    metadata = definitions if definitions and OBJECT_META in definitions else {OBJECT_META: {"type": "object"}}
    return strict | {"definitions": reachable(metadata, OBJECT_META)}


def reachable(definitions: Definitions, name: str) -> dict[str, Schema]:
    """The named definition and every one that it refers to, directly or through others; sorted by name."""
    found: dict[str, Schema] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found[current] = definitions[current]
            waiting.extend(_references(definitions[current]))
    return dict(sorted(found.items()))


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_REF)
        else:
            for value in schema.values():
                yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def _strict(schema: Any) -> Schema:
    """The schema with the unknown fields closed that an API server prunes."""
    if not isinstance(schema, Mapping):
        return {}
    strict = _translated(schema, _strict)
    keeps_unknown = "additionalProperties" in strict or schema.get("x-kubernetes-preserve-unknown-fields")
    if "properties" in strict and not keeps_unknown:
        strict["additionalProperties"] = False
    if schema.get("x-kubernetes-embedded-resource"):
        return _with_object_fields(strict, schema)
    return _with_template_metadata(strict) if _is_template(schema.get("properties")) else strict


def _loose(schema: Any) -> Schema:
    """The schema as a branch of anyOf and its like, which judges values but never says which fields exist."""
    return _translated(schema, _loose) if isinstance(schema, Mapping) else {}


def _is_template(properties: Any) -> bool:
    """Whether they are those of a template (metadata and spec) whose metadata the CRD left out.

    Source: controller-gen without crd:generateEmbeddedObjectMeta.
    """
    if not isinstance(properties, Mapping) or "spec" not in properties:
        return False
    metadata = properties.get("metadata")
    return isinstance(metadata, Mapping) and not {"properties", "additionalProperties"} & metadata.keys()


def _with_template_metadata(strict: Schema) -> Schema:
    return strict | {"properties": strict["properties"] | {"metadata": {"$ref": _REF + OBJECT_META}}}


def _with_object_fields(strict: Schema, schema: Mapping[str, Any]) -> Schema:
    """The strict schema with the three fields that every object has; what it says of metadata is beside ObjectMeta."""
    listed = schema.get("properties")
    narrowed = _loose(listed.get("metadata")) if isinstance(listed, Mapping) else {}
    metadata = {"$ref": _REF + OBJECT_META} | {key: narrowed[key] for key in narrowed if key != "type"}
    return strict | {"properties": _TYPE_META | strict.get("properties", {}) | {"metadata": metadata}}


def _translated(schema: Mapping[str, Any], child: Callable[[Any], Schema]) -> Schema:
    """The schema in the words of draft 2020-12; `child` translates what is nested in it."""
    if isinstance(schema.get("$ref"), str):
        return {"$ref": schema["$ref"]}
    is_either = _is_int_or_string(schema)
    if is_either and _QUANTITY_PATTERN in str(schema.get("pattern")):
        return _QUANTITY | _nullable(["integer", "string"], schema)  # a CRD's quantity may not be a fraction in digits
    kept = {key: schema[key] for key, kinds in _KEPT.items() if key in schema and _is_a(schema[key], kinds)}
    kept |= _types(schema) | _bounds(schema) | _nested(schema, child)
    if is_either and kept.get("anyOf") == _INT_OR_STRING:
        del kept["anyOf"]
    return kept


def _is_a(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)


def _is_int_or_string(schema: Mapping[str, Any]) -> bool:
    return schema.get("x-kubernetes-int-or-string") is True or schema.get("format") == "int-or-string"


def _types(schema: Mapping[str, Any]) -> Schema:
    """The type, and the one format that a value can break: the range of int32 is among the bounds."""
    if _is_int_or_string(schema):
        return _nullable(["integer", "string"], schema)
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        return {}
    is_time = kind == "string" and schema.get("format") == "date-time"
    return _nullable(kind, schema) | ({"format": "date-time"} if is_time else {})


def _nullable(kind: Any, schema: Mapping[str, Any]) -> Schema:
    if schema.get("nullable") is not True:
        return {"type": kind}
    return {"type": [*(kind if isinstance(kind, list) else [kind]), "null"]}


def _bounds(schema: Mapping[str, Any]) -> Schema:
    """The bounds that OpenAPI says in other words: int32, and exclusive ones as booleans beside minimum and maximum.

    An exclusive bound leaves the inclusive one beside it, which it implies.
    """
    is_int32 = schema.get("type") == "integer" and schema.get("format") == "int32"
    bounds = {key: limit for key, limit in _INT32.items() if is_int32 and key not in schema}
    for key, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True and _is_a(schema.get(key), _NUMBER):
            bounds[exclusive] = schema[key]
    return bounds


def _nested(schema: Mapping[str, Any], child: Callable[[Any], Schema]) -> Schema:
    nested: Schema = {}
    if isinstance(schema.get("properties"), Mapping):
        nested["properties"] = {name: child(each) for name, each in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            nested[key] = child(schema[key])
        elif key == "additionalProperties" and isinstance(schema.get(key), bool):
            nested[key] = schema[key]
    if isinstance(schema.get("not"), Mapping):
        nested["not"] = _loose(schema["not"])
    for key in _JUNCTORS:
        if isinstance(schema.get(key), list):
            nested[key] = [_loose(each) for each in schema[key]]
    return nested


def quantity_paths(schema: Schema, definitions: Definitions) -> Trie:
    """Where quantities stand in a value of the schema: property names, "*" for map values and list items, True.

    A definition inside itself is not followed a second time: no kind of Kubernetes nests quantities that way.
    """
    found = _paths(schema, definitions, frozenset())
    return found if isinstance(found, dict) else {}


def _paths(schema: Any, definitions: Definitions, above: frozenset[str]) -> Trie | bool:
    if not isinstance(schema, dict):
        return False
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        is_new = name in definitions and name not in above
        return is_new and _paths(definitions[name], definitions, above | {name})
    if schema.get("x-quantity"):
        return True
    steps = {**schema.get("properties", {}), "*": schema.get("items", schema.get("additionalProperties"))}
    found = {step: _paths(child, definitions, above) for step, child in steps.items()}
    return {step: below for step, below in found.items() if below} or False


def quantities(trie: Trie, value: Any) -> Iterator[_Found]:
    """Each quantity in the value: its pointer, the key it stands under (None in a list), what stands there.

    A null is left out: the API server takes it for an absent field.
    """
    found: list[_Found] = []
    _collect(trie, value, (), found)
    return iter(found)


def _collect(trie: Trie, value: Any, above: Pointer, found: list[_Found]) -> None:
    if isinstance(value, dict):
        rest = trie.get("*")
        for key in value if rest else trie:
            child = value.get(key)
            below = trie.get(key, rest)
            if child is None or below is None:
                continue
            if below is True:
                found.append(((*above, key), key, child))
            else:
                _collect(below, child, (*above, key), found)
    elif isinstance(value, list) and "*" in trie:
        _collect_items(trie["*"], value, above, found)


def _collect_items(below: Any, items: list[Any], above: Pointer, found: list[_Found]) -> None:
    for index, item in enumerate(items):
        if below is not True:
            _collect(below, item, (*above, index), found)
        elif item is not None:
            found.append(((*above, index), None, item))


def without_nulls(value: Any, schema: Schema, definitions: Definitions | None = None) -> Any:
    """The value without the fields given as null that an API server takes for absent; itself where there are none.

    The strict schemas say nothing of such nulls: they stay small, and a required field that is null reads as missing.
    A null stays where it means something (nullable, or a value of any type), where the field is unknown, in a map and
    in a list, so that the schema speaks about it: there it is nearly always a forgotten value. Only a value that breaks
    the schema as it is needs this; pointers into the result are pointers into the value.
    """
    return _dropped(value, schema, schema.get("definitions", {}) if definitions is None else definitions)


def _dropped(value: Any, schema: Any, definitions: Definitions) -> Any:
    schema = _resolved(schema, definitions)
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        kept = {
            key: _dropped(child, properties.get(key, others), definitions)
            for key, child in value.items()
            if not (child is None and key in properties and _refuses_null(properties[key], definitions))
        }
        is_same = len(kept) == len(value) and all(kept[key] is value[key] for key in value)
        return value if is_same else kept
    if isinstance(value, list):
        items = [_dropped(item, schema.get("items"), definitions) for item in value]
        return value if all(map(_is, items, value)) else items
    return value


def _is(left: Any, right: Any) -> bool:
    return left is right


def _refuses_null(schema: Any, definitions: Definitions) -> bool:
    kinds = _resolved(schema, definitions).get("type", "null")
    return "null" not in kinds if isinstance(kinds, list) else kinds != "null"


def _resolved(schema: Any, definitions: Definitions) -> Mapping[str, Any]:
    while isinstance(schema, Mapping) and "$ref" in schema:
        schema = definitions.get(schema["$ref"].removeprefix(_REF))
    return schema if isinstance(schema, Mapping) else {}
