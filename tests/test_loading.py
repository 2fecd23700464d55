"""Reading YAML and JSON: values as every reader takes them, each at its own line, and nothing lost on the way."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from basalt.loading import files, inventories, json_text, nodes, scalars, yaml_text
from basalt.loading.limits import Fault
from basalt.loading.sources import Reading
from basalt.loading.yaml_text import Parsed
from basalt.pointers import Pointer

# No control characters, surrogates or line ends of libyaml's own: what a text may hold besides, its escapes tell.
_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\ufeff"))
_SCALAR = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
_VALUE = st.recursive(
    _SCALAR | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)
_MAP = st.dictionaries(_TEXT, _VALUE, max_size=5)


def read_yaml(text: str) -> list[Any]:
    return [parsed.value for parsed in yaml_text.documents(text)]


def read_json(text: str) -> list[Any]:
    return [parsed.value for parsed in json_text.documents(text)]


@settings(max_examples=60)
@given(_MAP)
def test_json_is_read_as_the_standard_library_reads_it(value: dict[str, Any]) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        assert read_json(text) == [json.loads(text)]


class Quoting(yaml.CSafeDumper):
    """A dumper that puts every text in quotes."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


@settings(max_examples=60)
@given(_MAP)
def test_yaml_with_every_text_in_quotes_is_read_as_pyyaml_reads_it(value: dict[str, Any]) -> None:
    text = yaml.dump(value, Dumper=Quoting, allow_unicode=True)

    assert read_yaml(text) == [yaml.load(text, Loader=yaml.CSafeLoader)]


@settings(max_examples=60)
@given(_MAP)
def test_yaml_is_read_as_pyyaml_reads_it_but_for_what_readers_differ_on(value: dict[str, Any]) -> None:
    text = yaml.dump(value, Dumper=yaml.CSafeDumper, allow_unicode=True)

    (parsed,) = yaml_text.documents(text, with_positions=True)

    if not parsed.ambiguous:
        assert parsed.value == yaml.load(text, Loader=yaml.CSafeLoader)


@settings(max_examples=60)
@given(_MAP)
def test_json_is_yaml_and_means_the_same(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assume("\ufffe" not in text and "\uffff" not in text)  # YAML has no such characters

    (parsed,) = yaml_text.documents(text, with_positions=True)

    assert parsed.ambiguous or [parsed.value] == read_json(text)  # 1e-05 is a number to one reader, text to another


def _pointers(value: Any, at: Pointer = ()) -> Iterator[Pointer]:
    yield at
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _pointers(child, (*at, key))


@settings(max_examples=60)
@given(_MAP)
def test_every_value_has_a_position_and_no_other_has(value: dict[str, Any]) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)

    for documents in (yaml_text.documents, json_text.documents):
        (parsed,) = documents(text, with_positions=True)
        assert parsed.positions is not None
        assert set(parsed.positions) == set(_pointers(value))


@settings(max_examples=60)
@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), _VALUE, min_size=1, max_size=6))
def test_a_position_is_the_line_and_column_at_which_the_key_is_written(value: dict[str, Any]) -> None:
    # One entry a line, so that the line of a key is known without any reader.
    lines = [f" {json.dumps(key)}: {json.dumps(child, ensure_ascii=False)}" for key, child in value.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"

    for documents in (yaml_text.documents, json_text.documents):
        (parsed,) = documents(text, with_positions=True)
        assert parsed.positions is not None
        assert [parsed.positions[(key,)] for key in value] == [(number, 2) for number in range(2, len(value) + 2)]


@settings(max_examples=40)
@given(st.lists(_MAP, max_size=4))
def test_every_document_of_a_stream_is_read(values: list[dict[str, Any]]) -> None:
    texts = [json.dumps(value) for value in values]

    assert read_json("\n".join(texts)) == values
    assert len(read_yaml("\n---\n".join(yaml.dump(value, Dumper=Quoting) for value in values))) == len(values)


@settings(max_examples=200)
@given(st.text(st.sampled_from(" \n\t-:{}[],'\"#&*!|>%@`?~<=ab01.\u00e9\u2028\x00\x07\ufeff"), max_size=60))
def test_no_text_is_answered_with_anything_but_values_or_a_fault(text: str) -> None:
    for documents in (yaml_text.documents, json_text.documents):
        fault: Fault | None = None
        try:
            assert all(isinstance(parsed, Parsed) for parsed in documents(text, with_positions=True))
        except Fault as found:
            fault = found
        assert fault is None or (min(fault.mark) >= 1 and "invalid" not in fault.message)


# What kubectl reads was measured (kubectl 1.32).
@pytest.mark.parametrize(
    ("text", "boolean", "integer"),
    [
        ("yes", True, None), ("No", False, None), ("ON", True, None), ("off", False, None), ("y", True, None),
        ("N", False, None), ("010", None, 8), ("-010", None, -8), ("08", None, 8), ("0o10", None, 8),
        ("1e3", None, 1000), ("1E3", None, 1000), ("1.5e3", None, 1500), (".5e1", None, 5), ("1_000", None, 1000),
        ("0_10", None, 8), ("0b101", None, 5), ("-0x1F", None, -31), ("0X1f", None, 31), ("12:30:45", None, None),
        ("1:30", None, None), ("2001-01-01", None, None), ("2001-12-14t21:59:43.10-05:00", None, None),
        ("=", None, None),
        (".inf", None, None), ("-.Inf", None, None), (".nan", None, None), ("1.0e+999", None, None),
        ("1e-3", None, None), ("1_000.5", None, None),
    ],
)  # fmt: skip
def test_a_scalar_that_readers_differ_on_stays_text_and_tells_what_kubectl_reads(
    text: str, boolean: bool | None, integer: int | None
) -> None:
    assert scalars.resolve(text) == (text, True)
    assert (scalars.as_boolean(text), scalars.as_integer(text)) == (boolean, integer)
    assert scalars.readings(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("NULL", None), ("true", True), ("False", False), ("0", 0), ("-0", 0),
        ("+7", 7), ("-12", -12), ("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("-1.5e+3", -1500.0), ("0x1F", 31),
        ("99999999999999999999", 99999999999999999999), ("nUll", "nUll"), ("yes please", "yes please"),
        ("1.2.3", "1.2.3"), ("10.0.0.1", "10.0.0.1"), ("12:60", "12:60"), ("2024-01-01 or so", "2024-01-01 or so"),
        ("1_a", "1_a"), ("0b2", "0b2"), ("0o8", "0o8"), ("e3", "e3"), ("1e", "1e"), ("-", "-"), (".", "."),
        ("64Gi", "64Gi"),
    ],
)  # fmt: skip
def test_a_scalar_that_every_reader_takes_alike_is_that(text: str, value: Any) -> None:
    assert scalars.resolve(text) == (value, False)


@given(st.text(st.sampled_from("0123456789_.:-+eExobaf"), max_size=40))
def test_pyyaml_and_basalt_read_the_same_number_or_it_is_called_ambiguous(text: str) -> None:
    value, is_ambiguous = scalars.resolve(text)
    by_pyyaml = yaml.SafeLoader.yaml_implicit_resolvers
    is_number = any(
        pattern.match(text) for tag, pattern in by_pyyaml.get(text[:1], ()) if tag.endswith(("int", "float"))
    )

    if isinstance(value, int | float) and not isinstance(value, bool):
        assert float(value) == float(text) if not text.startswith("0x") else value == int(text, 16)
    elif is_number:
        assert is_ambiguous
    assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize(
    "text", ["1_" * 100_000 + "x", "1:" * 100_000 + "x", "0" + "8" * 100_000 + ".5e3", "9" * 100_000]
)
def test_no_scalar_takes_long(text: str) -> None:
    scalars.resolve(text)
    scalars.readings(text)
    scalars.as_integer(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!int 010", 8), ("!!int '5'", 5), ("!!float 5", 5.0), ("!!bool yes", True), ("!!null x", None),
        ("!!str 5", "5"), ("! 5", "5"), ("!!map {a: !!seq [1]}", {"a": [1]}), ('"<<"', "<<"),
    ],
)  # fmt: skip
def test_a_tag_of_the_core_schema_says_what_the_value_is(text: str, value: Any) -> None:
    assert read_yaml(f"a: {text}\n") == [{"a": value}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}", {"x": {"a": 1, "b": 2}, "y": {"a": 1, "b": 3}}),
        (
            "x: &x {a: 1}\nz: &z {a: 2, c: 3}\ny: {<<: [*x, *z]}",
            {"x": {"a": 1}, "z": {"a": 2, "c": 3}, "y": {"a": 1, "c": 3}},
        ),
        ('y: {"<<": {a: 1}}', {"y": {"<<": {"a": 1}}}),
        ("&k a: 1\nb: *k", {"a": 1, "b": "a"}),
    ],
)
def test_merge_keys_and_anchors_mean_what_yaml_says(text: str, value: Any) -> None:
    assert read_yaml(text) == [value]


def test_lines_are_counted_as_editors_count_them() -> None:
    text = "a: 'one\u2028two\x85three'\nb: 1\r\nc: 2\n"

    (parsed,) = yaml_text.documents(text, with_positions=True)

    assert parsed.positions is not None
    assert [parsed.positions[(key,)].line for key in "abc"] == [1, 2, 3]


def _read(folder: Path, name: str, content: str | bytes) -> Reading:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    reading = Reading()
    files.read(path, reading)
    return reading


def test_what_stands_before_a_fault_is_kept_with_its_own_faults(tmp_path: Path) -> None:
    reading = _read(tmp_path, "a.yaml", "a: yes\na: no\n---\nb: [\n")

    (document,) = reading.documents
    assert document.value == {"a": "no"}
    assert [fault.mark.line for fault in document.faults] == [2]
    assert [entry.text for entry in document.ambiguous] == ["yes", "no"]
    assert [(found.fault.rule, found.fault.mark.line) for found in reading.faults] == [("document-parses", 4)]


def test_a_line_is_shown_without_its_mark_and_end_and_any_line_again(tmp_path: Path) -> None:
    (file,) = _read(tmp_path, "a.yaml", b"\xef\xbb\xbfa: 1\r\nb: 2\nc: 3").files

    assert [file.line(number) for number in (3, 1, 2, 2, 4, 1)] == ["c: 3", "a: 1", "b: 2", "b: 2", "", "a: 1"]


def test_json_in_a_yaml_file_is_read_as_json(tmp_path: Path) -> None:
    reading = _read(tmp_path, "a.yaml", '{"a":\n\t"\\ud83d\\ude00"}')

    assert [document.value for document in reading.documents] == [{"a": "\U0001f600"}]


NODE = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s"}}'


def _inventory(*items: str, separator: str = ",\n") -> str:
    return '{"apiVersion": "v1", "kind": "List", "items": [' + separator.join(items) + "]}"


@pytest.mark.parametrize("separator", [",\n", ", "])
def test_a_value_of_an_inventory_stands_where_the_careful_reader_finds_it(tmp_path: Path, separator: str) -> None:
    items = [
        f'{{"kind": "Node", "apiVersion": "v1",{gap}"metadata": '
        f'{{"labels": {{"k": "gr\u00fc\u00df"}},{gap}"name": "{name}"}}}}'
        for name, gap in (("a", " "), ("b", "\n   "), ("c", " "))
    ]
    text = _inventory(*items, separator=separator)
    (file,) = _read(tmp_path, "nodes.json", text).files
    (parsed,) = json_text.documents(text, with_positions=True)

    assert file.inventory is not None
    assert parsed.positions is not None
    for pointer, mark in parsed.positions.items():
        if pointer[:1] == ("items",) and len(pointer) > 2:
            assert file.position(0, pointer)[1:] == mark


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        _inventory(NODE % "a")[:-1],
        _inventory('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}'),
        _inventory('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": 5}}'),
        _inventory(NODE % "a", '{"kind": "Node", "metadata": {"name": "b", "name": "c"}, "apiVersion": "v1"}'),
        _inventory(
            '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "x": '
            + "[" * 100_000
            + "]" * 100_000
            + "}"
        ),
        _inventory('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "x": NaN}'),
    ],
    ids=range(8),
)
def test_what_is_no_sound_inventory_goes_to_the_careful_reader(text: str) -> None:
    assert inventories.read(text.encode()) is None


def test_bytes_that_are_not_utf8_are_found_in_fields_that_nobody_reads() -> None:
    text = _inventory('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "x": "@"}').encode()

    assert inventories.read(text) is not None
    assert inventories.read(text.replace(b"@", b"\xff")) is None


def test_a_null_part_of_a_node_is_an_absent_one() -> None:
    node = nodes.from_value(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": None, "status": None}
    )

    assert isinstance(node, nodes.Node)
    assert node.allocatable == {}


@pytest.mark.parametrize("size", [0, 1, 64 * 1024**2])
def test_a_yaml_file_up_to_the_limit_is_read(tmp_path: Path, size: int) -> None:
    reading = _read(tmp_path, "a.yaml", b"#" * size)

    assert (reading.documents, reading.faults) == ([], [])


@pytest.mark.parametrize(("name", "size"), [("a.yaml", 64 * 1024**2), ("a.json", 2 * 1024**3)])
def test_a_file_one_byte_beyond_its_limit_is_not_read(tmp_path: Path, name: str, size: int) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(size + 1)
    reading = Reading()
    files.read(tmp_path / name, reading)

    (found,) = reading.faults
    assert found.fault.rule == "input-within-limits"
    assert re.match(rf"{size + 1:,} bytes, {size:,} \(.* MiB\) are read", found.fault.message)


def test_json_that_is_no_inventory_has_the_limit_of_yaml(tmp_path: Path) -> None:
    text = b'{"a": "' + b"x" * (64 * 1024**2) + b'"}'

    (found,) = _read(tmp_path, "a.json", text).faults
    assert found.fault.rule == "input-within-limits"
