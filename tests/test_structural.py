"""basalt/api/structural.py: what becomes strict and what stays open, where quantities stand, which nulls are absent."""

from typing import Any

import jsonschema_rs
import pytest

from basalt.api import structural

Schema = dict[str, Any]

TEXT = {"type": "string"}
QUANTITY = {"type": ["string", "number"], "x-quantity": True}
NUMBER = r"(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY_IN_A_CRD = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": rf"^{NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE]{NUMBER}))?$",
    "x-kubernetes-int-or-string": True,
}
QUANTITY_NAME = "io.k8s.apimachinery.pkg.api.resource.Quantity"
METADATA = {"$ref": f"#/definitions/{structural.OBJECT_META}"}
ANY_MAP = {structural.OBJECT_META: {"type": "object"}}


def strict(schema: Schema) -> Schema:
    return structural.strict_definitions({"it": schema})["it"]


def an_object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def closed(**properties: Schema) -> Schema:
    return an_object(**properties) | {"additionalProperties": False}


TRANSLATED = {
    "prose-and-hints-for-patching-go": (
        {
            "type": "array",
            "items": TEXT,
            "description": "many",
            "example": ["a"],
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
        },
        {"type": "array", "items": TEXT},
    ),
    "a-reference-stands-alone": (
        {"$ref": "#/definitions/a.B", "description": "one", "default": {}},
        {"$ref": "#/definitions/a.B"},
    ),
    "bounds-enums-and-cel-stay": (
        TEXT | {"enum": ["a"], "minLength": 1, "pattern": "^a", "x-kubernetes-validations": [{"rule": "true"}]},
        TEXT | {"enum": ["a"], "minLength": 1, "pattern": "^a", "x-kubernetes-validations": [{"rule": "true"}]},
    ),
    "a-scalar-default-stays": ({"type": "boolean", "default": False}, {"type": "boolean", "default": False}),
    "an-empty-default-goes": ({"type": "object", "default": {}}, {"type": "object"}),
    "int32-gets-its-range": (
        {"type": "integer", "format": "int32"},
        {"type": "integer", "minimum": -2147483648, "maximum": 2147483647},
    ),
    "int32-keeps-its-own-bounds": (
        {"type": "integer", "format": "int32", "minimum": 1},
        {"type": "integer", "minimum": 1, "maximum": 2147483647},
    ),
    "int64-is-any-integer": ({"type": "integer", "format": "int64"}, {"type": "integer"}),
    "bytes-are-text": (TEXT | {"format": "byte"}, TEXT),
    "a-time-keeps-its-format": (TEXT | {"format": "date-time"}, TEXT | {"format": "date-time"}),
    "nullable-becomes-a-type": (TEXT | {"nullable": True}, {"type": ["string", "null"]}),
    "exclusive-bounds-become-numbers": (
        {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": False},
        {"type": "number", "minimum": 0, "exclusiveMinimum": 0, "maximum": 1},
    ),
    "int-or-string-of-openapi": (TEXT | {"format": "int-or-string"}, {"type": ["integer", "string"]}),
    "int-or-string-of-a-crd": (
        {"anyOf": [{"type": "integer"}, TEXT], "x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%?$"},
        {"type": ["integer", "string"], "pattern": "^[0-9]+%?$"},
    ),
    "quantity-of-a-crd": (QUANTITY_IN_A_CRD, QUANTITY | {"type": ["integer", "string"]}),
    "listed-fields-are-all-fields": (an_object(a=TEXT), closed(a=TEXT)),
    "nested-objects-too": (
        an_object(a={"type": "array", "items": an_object(b=TEXT)}),
        closed(a={"type": "array", "items": closed(b=TEXT)}),
    ),
    "preserved-fields-stay-open-but-nested-ones-do-not": (
        an_object(a=an_object(b=TEXT)) | {"x-kubernetes-preserve-unknown-fields": True},
        an_object(a=closed(b=TEXT)),
    ),
    "a-map-stays-a-map": (
        {"type": "object", "additionalProperties": an_object(a=TEXT)},
        {"type": "object", "additionalProperties": closed(a=TEXT)},
    ),
    "an-object-that-lists-nothing-stays-open": ({"type": "object"}, {"type": "object"}),
    "branches-judge-values-and-never-close": (
        an_object(a=TEXT, b=TEXT) | {"oneOf": [{"required": ["a"]}, {"properties": {"b": {"enum": ["x"]}}}]},
        closed(a=TEXT, b=TEXT) | {"oneOf": [{"required": ["a"]}, {"properties": {"b": {"enum": ["x"]}}}]},
    ),
    "an-embedded-resource-has-the-fields-of-every-object": (
        an_object(spec=TEXT) | {"x-kubernetes-embedded-resource": True},
        closed(apiVersion=TEXT, kind=TEXT, metadata=METADATA, spec=TEXT),
    ),
    "a-template-with-bare-metadata": (
        an_object(metadata={"type": "object"}, spec=an_object(a=TEXT)),
        closed(metadata=METADATA, spec=closed(a=TEXT)),
    ),
    "a-template-that-lists-its-metadata": (
        an_object(metadata=an_object(labels={"type": "object"}), spec=TEXT),
        closed(metadata=closed(labels={"type": "object"}), spec=TEXT),
    ),
    "metadata-that-belongs-to-no-template": (
        an_object(metadata={"type": "object"}),
        closed(metadata={"type": "object"}),
    ),
    "nonsense-judges-nothing": ({"type": ["a"], "items": 1, "minLength": "x", "properties": []}, {}),
}


@pytest.mark.parametrize(("given", "expected"), TRANSLATED.values(), ids=TRANSLATED)
def test_a_schema_is_translated(given: Schema, expected: Schema) -> None:
    assert strict(given) == expected


def test_the_quantity_of_kubernetes_is_marked() -> None:
    assert structural.strict_definitions({QUANTITY_NAME: TEXT}) == {QUANTITY_NAME: QUANTITY}


def test_a_whole_number_may_be_written_with_a_point() -> None:
    judge = jsonschema_rs.Draft202012Validator(strict({"type": "integer", "format": "int32"}))

    assert [judge.is_valid(value) for value in (1, 1.0, 1.5, 2**31, True)] == [True, True, False, False, False]


ROOTS = {
    "bare-metadata": (an_object(metadata={"type": "object"}, spec=TEXT), METADATA),
    "no-metadata": (an_object(spec=TEXT), METADATA),
    "narrowed-name": (
        an_object(spec=TEXT, metadata=an_object(name={"type": "string", "maxLength": 9})),
        METADATA | {"properties": {"name": {"type": "string", "maxLength": 9}}},
    ),
}


@pytest.mark.parametrize(("given", "metadata"), ROOTS.values(), ids=ROOTS)
def test_the_root_of_a_crd_has_the_fields_of_every_object(given: Schema, metadata: Schema) -> None:
    expected = closed(apiVersion=TEXT, kind=TEXT, metadata=metadata, spec=TEXT) | {"definitions": ANY_MAP}

    assert structural.strict_crd(given) == expected


def test_a_crd_takes_the_metadata_of_the_given_kubernetes() -> None:
    definitions = {
        structural.OBJECT_META: closed(name=TEXT, owner={"$ref": "#/definitions/Owner"}),
        "Owner": TEXT,
        "Pod": TEXT,
    }
    judge = jsonschema_rs.Draft202012Validator(structural.strict_crd(an_object(spec=TEXT), definitions))

    assert judge.is_valid({"apiVersion": "a/v1", "kind": "B", "metadata": {"name": "c", "owner": "d"}})
    assert not judge.is_valid({"metadata": {"nmae": "c"}})


def test_a_crd_that_keeps_unknown_fields_stays_open() -> None:
    judge = jsonschema_rs.Draft202012Validator(
        structural.strict_crd({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    )

    assert judge.is_valid({"metadata": {"name": "a"}, "anything": {"goes": 1}})


def test_reachable_is_the_closure_and_ends_on_recursion() -> None:
    definitions = {
        "A": an_object(b={"type": "array", "items": {"$ref": "#/definitions/B"}}),
        "B": an_object(again={"$ref": "#/definitions/A"}),
        "C": TEXT,
    }

    assert structural.reachable(definitions, "A") == {"A": definitions["A"], "B": definitions["B"]}


def test_a_property_named_ref_is_not_a_reference() -> None:
    definitions: dict[str, Schema] = {"A": {"properties": {"$ref": TEXT, "b": {"$ref": "#/definitions/B"}}}, "B": TEXT}

    assert [*structural.reachable(definitions, "A")] == ["A", "B"]


LISTS = {"type": "object", "additionalProperties": QUANTITY}
TRIES = {
    "nothing": (an_object(a=TEXT), {}, {}),
    "in-a-map": (an_object(a=LISTS, b=TEXT), {}, {"a": {"*": True}}),
    "in-a-list": (an_object(a={"type": "array", "items": an_object(b=QUANTITY)}), {}, {"a": {"*": {"b": True}}}),
    "behind-a-reference": (
        {"$ref": "#/definitions/A"},
        {"A": an_object(b={"$ref": "#/definitions/Q"}), "Q": QUANTITY},
        {"b": True},
    ),
    "in-a-definition-inside-itself": (
        {"$ref": "#/definitions/A"},
        {"A": an_object(a={"$ref": "#/definitions/A"}, b=QUANTITY)},
        {"b": True},
    ),
}


@pytest.mark.parametrize(("schema", "definitions", "expected"), TRIES.values(), ids=TRIES)
def test_the_places_of_quantities_are_found(schema: Schema, definitions: Schema, expected: Schema) -> None:
    assert structural.quantity_paths(schema, definitions) == expected


LIMITS = {"a": {"*": {"limits": {"*": True}, "size": True, "sizes": {"*": True}}}}
WALKS = {
    "each-in-its-place": (
        {"a": [{"limits": {"cpu": "1", "memory": 2}, "size": "3"}, {"other": "4"}]},
        [
            (("a", 0, "limits", "cpu"), "cpu", "1"),
            (("a", 0, "limits", "memory"), "memory", 2),
            (("a", 0, "size"), "size", "3"),
        ],
    ),
    "a-list-gives-no-key": ({"a": [{"sizes": ["1", "2"]}]}, [(("a", 0, "sizes", i), None, str(i + 1)) for i in (0, 1)]),
    "a-map-where-a-list-belongs": ({"a": {"x": {"size": "1"}}}, [(("a", "x", "size"), "size", "1")]),
    "a-null-is-absent": ({"a": [{"limits": {"cpu": None}, "size": None, "sizes": [None]}, None]}, []),
    "a-wrong-shape-holds-none": ({"a": [{"limits": ["1"], "sizes": "1"}, 3]}, [(("a", 0, "limits", 0), None, "1")]),
    "no-map-at-all": ("a", []),
}


@pytest.mark.parametrize(("value", "expected"), WALKS.values(), ids=WALKS)
def test_the_quantities_of_a_value_are_found(value: Any, expected: list[Any]) -> None:
    assert [*structural.quantities(LIMITS, value)] == expected


NULLS = closed(
    a=TEXT,
    b={"$ref": "#/definitions/B"},
    may={"type": ["string", "null"]},
    anything={},
    list={"type": "array", "items": {"$ref": "#/definitions/B"}},
    map={"type": "object", "additionalProperties": {"$ref": "#/definitions/B"}},
)
B = {"B": closed(c=TEXT)}
DROPPED = {
    "a-field": ({"a": None}, {}),
    "a-field-behind-a-reference": ({"b": None}, {}),
    "deep": ({"b": {"c": None}, "a": "x"}, {"b": {}, "a": "x"}),
    "in-a-list-and-a-map": ({"list": [{"c": None}], "map": {"k": {"c": None}}}, {"list": [{}], "map": {"k": {}}}),
    "not-a-nullable-one": ({"may": None, "anything": None}, {"may": None, "anything": None}),
    "not-an-unknown-one": ({"typo": None}, {"typo": None}),
    "not-the-items-and-values": ({"list": [None], "map": {"k": None}}, {"list": [None], "map": {"k": None}}),
    "none": ({"a": "x", "b": {"c": "y"}, "list": [{}]}, {"a": "x", "b": {"c": "y"}, "list": [{}]}),
    "of-the-wrong-shape": ({"b": [None], "a": {"c": None}}, {"b": [None], "a": {"c": None}}),
}


@pytest.mark.parametrize(("value", "expected"), DROPPED.values(), ids=DROPPED)
def test_nulls_that_stand_for_absent_fields_are_dropped(value: Any, expected: Any) -> None:
    assert structural.without_nulls(value, NULLS, B) == expected


def test_a_value_without_such_nulls_is_returned_as_it_is() -> None:
    value = {"a": "x", "b": {"c": "y"}, "list": [{"c": "z"}], "may": None}

    assert structural.without_nulls(value, NULLS | {"definitions": B}) is value


def test_dropping_nulls_changes_no_argument() -> None:
    value = {"b": {"c": None}, "a": None}
    structural.without_nulls(value, NULLS, B)

    assert value == {"b": {"c": None}, "a": None}


def test_a_required_field_given_as_null_reads_as_missing() -> None:
    schema = closed(a=TEXT) | {"required": ["a"]}
    judge = jsonschema_rs.Draft202012Validator(schema)

    messages = [error.message for error in judge.iter_errors(structural.without_nulls({"a": None}, schema))]
    assert messages == ['"a" is a required property']
