"""What is written reads back the same by YAML 1.1 and 1.2 readers, and by our own."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from basalt.loading import yaml_text
from basalt.rendering import yaml_writer

_TRICKY = (
    "y n yes no on off true false null ~ . .. .inf .nan nan = << - -- --- ... ? : # & * ! | > ' \" % @ ` [ ] { } "
    "08 010 0o10 0x1F 0b1 1e3 1E3 12e45 1.5e3 1_000 12:30:45 1:30 190:20:30 2001-01-01 2026-11-21T08:42:47Z "
    "+1 -1 .5 5. 1.10 v1.2.3 a:b a: a#b a\\ -a ?a !a %a nvidia.com/gpu $(RANK) {{x}} 4Ti 500m -.inf 0.0 ~x"
).split()
_TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(_TRICKY)
_SCALAR = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT
)
_VALUE = st.recursive(_SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3))
_DOCUMENT = st.dictionaries(_TEXT, _VALUE, min_size=1, max_size=4)


class _Yaml12(yaml.SafeLoader):
    """PyYAML with the scalars of YAML 1.2's core schema."""


_NUMBER_STARTS = "-+.0123456789"
_FLOAT = r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
_Yaml12.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("null", r"^(null|Null|NULL|~|)$", ["n", "N", "~", ""]),
    ("int", r"^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", list(_NUMBER_STARTS)),
    ("float", _FLOAT, list(_NUMBER_STARTS)),
):
    _Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def _readings(text: str) -> list[Any]:
    own = [parsed.value for parsed in yaml_text.documents(text)]
    return [yaml.safe_load(text), yaml.load(text, _Yaml12), *own]


@given(_DOCUMENT)
def test_every_reader_takes_back_the_same_value(document: dict[str, Any]) -> None:
    text = yaml_writer.document(document)

    for reading in _readings(text):
        assert reading == document


@given(_DOCUMENT)
def test_no_reader_finds_an_ambiguous_scalar(document: dict[str, Any]) -> None:
    (parsed,) = yaml_text.documents(yaml_writer.document(document))

    assert parsed.ambiguous == ()


@pytest.mark.parametrize("text", _TRICKY)
def test_tricky_text_stays_text_as_key_and_value(text: str) -> None:
    for reading in _readings(yaml_writer.document({text: [text]})):
        assert reading == {text: [text]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "k: {}\n"),
        ([], "k: []\n"),
        ([1, {"a": 1, "b": [2]}], "k:\n- 1\n- a: 1\n  b:\n  - 2\n"),
        ("one\ntwo\n", "k: |\n  one\n  two\n"),
        ("one\n  two", "k: |-\n  one\n    two\n"),
        (" one\ntwo\n", 'k: " one\\ntwo\\n"\n'),
        ("one \ntwo\n", 'k: "one \\ntwo\\n"\n'),
        ("one\n\n", 'k: "one\\n\\n"\n'),
        ("\ttab\n", 'k: "\\ttab\\n"\n'),
        (1e16, "k: 1.0e+16\n"),
        ("nvidia.com/gpu", "k: nvidia.com/gpu\n"),
        ("12e45", 'k: "12e45"\n'),
        ("\u2028", 'k: "\\u2028"\n'),
    ],
)
def test_value_is_written_so(value: object, text: str) -> None:
    assert yaml_writer.document({"k": value}) == text
